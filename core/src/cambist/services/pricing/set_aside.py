"""Price sources that an operator has set aside: a row each, which every process reads every second."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import structlog
from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.cached import Cached
from cambist.db.engine import BusyError, Database
from cambist.db.structs import columns_of, to_struct
from cambist.ports import Clock
from cambist.services.errors import ConflictError, NotFoundError

CACHE_S = 1.0

log = structlog.get_logger(__name__)


class SetAside(Struct, frozen=True, kw_only=True):
    """A source that is not believed, why, by whom and since when."""

    source: str
    reason: str
    set_aside_by: str
    set_aside_at: datetime


Sources = Mapping[str, SetAside]

_COLUMNS = columns_of(SetAside, models.PriceSourceSetAside)


async def set_aside(conn: AsyncConnection, known: Collection[str], new: SetAside) -> None:
    """Have a source not be believed. Raises NotFoundError for one that is not configured, and ConflictError."""
    if new.source not in known:
        raise NotFoundError("PRICE_SOURCE_NOT_FOUND", f"There is no price source {new.source}.")
    made = await conn.execute(insert(models.PriceSourceSetAside).values(asdict(new)).on_conflict_do_nothing())
    if not made.rowcount:
        raise ConflictError("SET_ASIDE_ALREADY", f"{new.source} is set aside already.")


async def take_back(conn: AsyncConnection, source: str) -> SetAside:
    """Have a source be believed again; return how it had been set aside. Raises ConflictError."""
    table = models.PriceSourceSetAside
    gone = await conn.execute(delete(table).where(table.source == source).returning(*_COLUMNS))
    row = gone.one_or_none()
    if row is None:
        raise ConflictError("NOT_SET_ASIDE", f"{source} is not set aside.")
    return to_struct(SetAside, row)


async def load(conn: AsyncConnection) -> Sources:
    """Return all that are set aside."""
    rows = [to_struct(SetAside, row) for row in await conn.execute(select(*_COLUMNS))]
    return {row.source: row for row in rows}


class SetAsideSources(Cached[Sources]):
    """One process's copy, never older than a second while the database answers, and else the last one."""

    def __init__(self, db: Database, clock: Clock) -> None:
        super().__init__(db, clock, load, CACHE_S)
        self._last: Sources | None = None

    async def get(self) -> Sources:
        """Return it. Raises what the database raises where it has never been read."""
        try:
            self._last = await super().get()
        except (SQLAlchemyError, BusyError, OSError):
            if self._last is None:
                raise
            log.warning("prices.set_aside_unknown")
        return self._last
