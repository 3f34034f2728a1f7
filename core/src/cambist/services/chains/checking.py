"""Whether an endpoint that was added is what it should be: the worker asks it for blocks that are stored.

It is connected alone, beside what is in use, so that nothing depends on it before it was found good. What claims a
request has a minute; where it dies, another worker asks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import ColumnElement, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import BusyError, Database
from cambist.db.models import ChainBlock, ChainEndpoint, Cursor
from cambist.db.structs import columns_of, to_struct
from cambist.plugin import Chain, ChainError, printable
from cambist.registry import ChainConnections, SetupError
from cambist.secrets import SecretsBox, SecretsError
from cambist.services.audit.entries import GATEWAY, Action, record

from .hosts import resolved_problem
from .setups import lock_endpoints, opened

CLAIM: Final = timedelta(seconds=90)
CHECK_TIMEOUT_S: Final = 30.0
LAG_BLOCKS_MAX: Final = 3
"""How far behind what was read an endpoint may be: nodes are not all as fast."""
BLOCKS_COMPARED: Final = 8
TRIES: Final = 3
"""The newest blocks differ for a moment where a reorg is under way."""
TRY_PAUSE_S: Final = 1.0
REASON_CHARS_MAX: Final = 400

log = structlog.get_logger(__name__)
_DATABASE = (SQLAlchemyError, BusyError)


class Claimed(Struct, frozen=True, kw_only=True):
    """An endpoint that this worker is to check."""

    pk: int
    endpoint_id: str
    chain: str
    origin: str
    name: str
    url_encrypted: bytes
    replaces_pk: int | None


class _Stored(Struct, frozen=True):
    height: int
    hash: str


async def claim(conn: AsyncConnection, chains: Sequence[str], now: datetime) -> Claimed | None:
    """Return an endpoint of these chains that nobody is checking, and claim it; None where there is none."""
    waiting = (
        select(ChainEndpoint.id)
        .where(ChainEndpoint.state == "checking", ChainEndpoint.chain.in_(chains), _unclaimed(now))
        .order_by(ChainEndpoint.id)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    mine = update(ChainEndpoint).where(ChainEndpoint.id == waiting).values(claimed_until=now + CLAIM)
    row = (await conn.execute(mine.returning(*columns_of(Claimed, ChainEndpoint)))).one_or_none()
    return None if row is None else to_struct(Claimed, row)


def _unclaimed(now: datetime) -> ColumnElement[bool]:
    return ChainEndpoint.claimed_until.is_(None) | (ChainEndpoint.claimed_until < now)


async def check(db: Database, connections: ChainConnections, box: SecretsBox, claimed: Claimed) -> str | None:
    """Return why the endpoint is not taken, in a sentence; None where it is good."""
    try:
        url = opened(box, claimed.endpoint_id, claimed.url_encrypted)
        if (problem := await resolved_problem(url)) is not None:
            return problem
        setup = replace(connections.setups[claimed.chain], endpoints=(url,), quorum=1)
        async with asyncio.timeout(CHECK_TIMEOUT_S), connections.beside(claimed.chain, setup) as alone:
            return await _compared(db, alone, claimed.chain)
    except TimeoutError:
        return f"It did not answer within {CHECK_TIMEOUT_S:.0f} s."
    except (ChainError, SetupError, SecretsError) as error:
        return printable(f"It cannot be asked: {error}")[:REASON_CHARS_MAX]
    except _DATABASE:
        raise
    except Exception as error:
        # Not its text: a plugin that stumbles may repeat what it was given, and that holds keys.
        log.exception("endpoint_not_checked", chain=claimed.chain, endpoint=claimed.endpoint_id)
        return f"It cannot be asked: its plugin failed with {type(error).__name__}."


async def _compared(db: Database, alone: Chain, chain: str) -> str | None:
    problem: str | None = None
    for number in range(TRIES):
        if number:
            await asyncio.sleep(TRY_PAUSE_S)
        async with db.autocommit() as conn:
            stored = await _stored(conn, chain)
        problem = await _problem(alone, stored)
        if problem is None:
            return None
    return problem


async def _problem(alone: Chain, stored: Sequence[_Stored]) -> str | None:
    async with alone.view() as view:
        head = await view.head()  # which chain it serves was asked before that
        if not stored:
            return None
        newest = stored[0].height
        if head.height < newest - LAG_BLOCKS_MAX:
            return (
                f"It is {newest - head.height} blocks behind: its newest is {head.height}, and {newest} is read."
                " Add it again when it has caught up."
            )
        for block in stored:
            if block.height <= head.height and (await view.block(block.height)).hash != block.hash:
                return f"Its block {block.height} is another than the one that was read: this is not the same chain."
    return None


async def _stored(conn: AsyncConnection, chain: str) -> Sequence[_Stored]:
    """Return the last block that was read, and some below it, ever wider apart."""
    cursor = select(Cursor.height, Cursor.hash).where(Cursor.chain == chain, Cursor.scope == 0)
    found = (await conn.execute(cursor)).one_or_none()
    if found is None:
        return []
    height: int = found.height
    below = [height - 4**step for step in range(BLOCKS_COMPARED - 1)]
    blocks = (
        select(ChainBlock.height, ChainBlock.hash)
        .where(ChainBlock.chain == chain, ChainBlock.scope == 0, ChainBlock.height.in_(below))
        .order_by(ChainBlock.height.desc())
    )
    rows = (await conn.execute(blocks)).all()
    return [_Stored(height, found.hash), *(_Stored(row.height, row.hash) for row in rows)]


async def finish_check(conn: AsyncConnection, claimed: Claimed, reason: str | None, now: datetime) -> bool:
    """Store what came of a check, and remove what a good endpoint replaces. False where it was removed meanwhile."""
    await lock_endpoints(conn, claimed.chain)
    # One of the file that is no good stays removed, and does not come back with the next start.
    state = "in_use" if reason is None else "removed" if claimed.origin == "file" else "refused"
    mine = update(ChainEndpoint).where(ChainEndpoint.id == claimed.pk, ChainEndpoint.state == "checking")
    stored = await conn.execute(mine.values(state=state, reason=reason, claimed_until=None, changed_at=now))
    if not stored.rowcount:
        return False
    if reason is None and claimed.replaces_pk is not None:
        replaced = ChainEndpoint.id == claimed.replaces_pk, ChainEndpoint.state == "in_use"
        await conn.execute(update(ChainEndpoint).where(*replaced).values(state="removed", changed_at=now))
    told = {"chain": claimed.chain, "name": claimed.name, "state": state} | (
        {} if reason is None else {"reason": reason}
    )
    await record(conn, GATEWAY, Action.CHAIN_ENDPOINT_CHECKED, now, subject=claimed.endpoint_id, details=told)
    return True
