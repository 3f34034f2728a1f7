"""Chains on which an operator has paused watching or sending: a row each, which every process reads every second.

A paused watcher reads nothing. A paused sender signs and broadcasts nothing new, and goes on following what is out.
Only live chains are paused; simulated ones belong to their projects.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.cached import Cached
from cambist.db.engine import Database
from cambist.db.structs import columns_of, to_struct
from cambist.plugin import ChainInfo
from cambist.ports import Clock
from cambist.registry import Registry

from .errors import ConflictError, NotFoundError, UnavailableError

CACHE_S = 1.0


class Pausable(StrEnum):
    """What can be paused on a chain."""

    WATCHING = "watching"
    SENDING = "sending"


class Pause(Struct, frozen=True, kw_only=True):
    """What is paused, why, by whom (an operator's identifier, or ``admin key``) and since when."""

    chain: str
    what: Pausable
    reason: str
    paused_by: str
    paused_at: datetime


Pauses = Mapping[tuple[str, str], Pause]
"""By chain and what is paused there."""

_COLUMNS = columns_of(Pause, models.ChainPause)
# Text: it is asked every second while something is replaced or swept, and takes this process less than half the time.
_ALL = "SELECT chain, what, reason, paused_by, paused_at FROM chain_pauses"


async def pause(conn: AsyncConnection, registry: Registry, new: Pause) -> None:
    """Pause watching or sending.

    Raises NotFoundError for an unknown chain, ConflictError where nothing watches it or sends on it, since it is
    simulated or has no endpoint, and where it is paused.
    """
    chain = registry.chains.get(new.chain)
    if chain is None:
        raise chain_not_found(new.chain)
    if chain.availability != "live":
        raise ConflictError("CHAIN_NOT_CHANGEABLE", f"{new.chain} is {chain.availability}: there is nothing to pause.")
    row = asdict(new) | {"what": str(new.what)}
    made = await conn.execute(insert(models.ChainPause).values(row).on_conflict_do_nothing())
    if not made.rowcount:
        raise ConflictError("PAUSED_ALREADY", f"{_title(new.what)} on {new.chain} is paused already.")


async def resume(conn: AsyncConnection, chain: str, what: Pausable) -> Pause:
    """Resume what was paused, also on a chain that is not configured any more; return how it had been paused.

    Raises ConflictError.
    """
    table = models.ChainPause
    gone = await conn.execute(delete(table).where(table.chain == chain, table.what == str(what)).returning(*_COLUMNS))
    row = gone.one_or_none()
    if row is None:
        raise ConflictError("NOT_PAUSED", f"{_title(what)} on {chain} is not paused.")
    return to_struct(Pause, row)


async def load(conn: AsyncConnection) -> Pauses:
    """Return all that is paused."""
    rows = [to_struct(Pause, row) for row in await conn.exec_driver_sql(_ALL)]
    return {(row.chain, row.what): row for row in rows}


def refuse_payments(pauses: Pauses, chain: ChainInfo, mode: str) -> None:
    """Refuse to ask for money on a live chain that nobody watches. Raises UnavailableError."""
    if mode == "live" and (chain.id, Pausable.WATCHING) in pauses:
        raise UnavailableError("CHAIN_UNAVAILABLE", f"Payments on {chain.name} are not available right now.")


def chain_not_found(chain: str) -> NotFoundError:
    return NotFoundError("CHAIN_NOT_FOUND", f"There is no chain {chain}.")


def _title(what: Pausable) -> str:
    return what.capitalize()


class ChainPauses(Cached[Pauses]):
    """One process's copy of what is paused, never older than a second."""

    def __init__(self, db: Database, clock: Clock) -> None:
        super().__init__(db, clock, load, CACHE_S)
        self._told: dict[tuple[str, str], tuple[bool, float]] = {}

    async def are_in_force(self, chain: str, what: Pausable) -> bool:
        """Whether this is paused on a live chain, as far as the newest says that this process knows."""
        is_paused, asked_at = self._told.get((chain, what), (False, float("-inf")))
        read = self._fresh()
        if self._clock.monotonic() - asked_at < CACHE_S and (read is None or read[1] <= asked_at):
            return is_paused
        return (chain, what) in await self.get()

    def tell(self, chain: str, what: Pausable, *, is_paused: bool, asked_at: float) -> None:
        """Take what somebody has read beside something else, which they asked for at this time of the clock's."""
        self._told[chain, what] = is_paused, asked_at

    def forget(self) -> None:
        super().forget()
        self._told.clear()
