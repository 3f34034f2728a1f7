"""Follows every exchange to its end: claims those whose time it is, and does for each what its step asks for.

Any number of workers may do so at once: a claim moves an exchange's time on, and what is decided is decided behind the
locks of its rows. So a claim that is lost with its worker costs seconds, and one that is had twice does nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

import structlog
from sqlalchemy import delete, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import BusyError
from cambist.db.models import Exchange, ExchangePart
from cambist.domain.exchanges import Kind, Step

from . import posting
from .arriving import find_output
from .clearing import clear, give_back_turn
from .ending import Endings
from .filling import find_fill
from .handler import NOT_SEEN
from .outputs import lock_cursors
from .queued import prepare_call
from .refunding import find_refund
from .rows import SELECT, SHOWN, ExchangeRow, exchange_row, lock, shown_row
from .worker import ExchangeWorker, later

CLAIM = timedelta(seconds=20)
"""How soon somebody looks again at an exchange whose worker has died, or whose step has failed."""
RENEW_S = 5.0
PERMITS = 4
SENT_PAUSE = timedelta(seconds=60)
REOPENED_MAX = 50

log = structlog.get_logger(__name__)

# Nobody needs to wait until it is time to look at one whose output may just have come: it is as due as any.
# Each provider has permits of its own for what it builds on a chain, and each two chains have some for what follows
# them: one that is slow is in nobody's way. Of one that another worker has claimed meanwhile, the time has moved on.
_CLAIM = f"""
WITH ready AS (
    SELECT id, due_at, due_at AS ready_at, step, provider, source_chain, dest_chain
    FROM exchanges WHERE due_at <= $1 AND mode = 'live' AND source_chain = ANY($2::text[])
    UNION ALL
    SELECT e.id, e.due_at, $1, e.step, e.provider, e.source_chain, e.dest_chain
    FROM exchanges e
    WHERE e.step = 'filling' AND e.due_at > $1 AND e.mode = 'live' AND e.source_chain = ANY($2::text[]) AND EXISTS (
        SELECT FROM deposits d WHERE d.status = 'detected' AND d.chain = e.dest_chain AND d.scope = e.scope
            AND d.address_pk = e.recipient_pk AND d.contract IS NOT DISTINCT FROM e.dest_contract
            AND d.detected_at > e.updated_at
    )
), lanes AS (
    SELECT r.id, r.due_at, row_number() OVER (PARTITION BY l.lane ORDER BY r.ready_at) AS nth,
        coalesce(b.busy, 0) AS busy
    FROM ready r
        CROSS JOIN LATERAL (
            SELECT CASE r.step WHEN 'queued' THEN r.provider ELSE r.dest_chain END || '<' || r.source_chain
        ) l (lane)
        LEFT JOIN unnest($4::text[], $5::bigint[]) AS b (lane, busy) ON b.lane = l.lane
), due AS (
    SELECT e.id FROM exchanges e JOIN lanes ON lanes.id = e.id AND lanes.nth <= $6 - lanes.busy
    WHERE e.due_at = lanes.due_at ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED
), claimed AS (
    UPDATE exchanges e SET due_at = $3 FROM due WHERE e.id = due.id RETURNING e.*
)
SELECT row_to_json(shown)::text FROM (SELECT {SHOWN} FROM claimed e ORDER BY e.id) AS shown
"""  # noqa: S608  constants
# What somebody decides about it just now moves its time on as well, and is not waited for.
_RENEW = """
UPDATE exchanges SET due_at = $1 WHERE id = (
    SELECT id FROM exchanges WHERE id = $2 AND due_at = $3 FOR NO KEY UPDATE SKIP LOCKED
)
"""
# Claims that are gone; and fills that no deposit of ours tells of, in a block that is not there any more.
_GONE = f"""
(SELECT DISTINCT p.exchange_pk FROM exchange_parts p WHERE p.is_gone AND ($1::bigint IS NULL OR EXISTS (
    SELECT FROM exchanges e WHERE e.id = p.exchange_pk AND e.project_pk = $1
)) LIMIT {REOPENED_MAX})
UNION
(SELECT e.id FROM chain_cursors c JOIN exchanges e ON e.dest_chain = c.chain AND e.scope = c.scope
    LEFT JOIN chain_blocks b ON b.chain = c.chain AND b.scope = c.scope AND b.height = e.unseen_height
WHERE e.kind = 'bridge' AND e.unseen_height > c.height - 1024
    AND (e.unseen_height > c.height OR b.hash <> e.unseen_hash)
ORDER BY e.id LIMIT {REOPENED_MAX})
"""  # noqa: S608  a constant


def lane_of(row: ExchangeRow) -> str:
    """Return whose permits an exchange takes while it is looked at: its provider's while its call is built."""
    return f"{row.provider if row.step is Step.QUEUED else row.dest_chain}<{row.source_chain}"


async def claim_due(worker: ExchangeWorker, busy: Mapping[str, int] | None = None) -> Sequence[ExchangeRow]:
    """Return exchanges whose time it is, which nobody else gets for a while; ``busy`` are permits taken, by lane."""
    now, busy = worker.clock.now(), busy or {}
    values = (now, sorted(worker.chains), now + CLAIM, list(busy), list(busy.values()), PERMITS)
    async with worker.db.autocommit() as conn:
        return [shown_row(shown) for shown in (await conn.exec_driver_sql(_CLAIM, values)).scalars()]


@asynccontextmanager
async def claim_kept(worker: ExchangeWorker, row: ExchangeRow) -> AsyncIterator[None]:
    """Renew a claim until the block ends, so that nobody else claims the exchange meanwhile.

    It is renewed no more once something else has said when to look at the exchange.
    """
    is_over = asyncio.Event()
    renewing = asyncio.create_task(_renew(worker, row, is_over))
    try:
        yield
    finally:
        is_over.set()
        await renewing


async def _renew(worker: ExchangeWorker, row: ExchangeRow, is_over: asyncio.Event) -> None:
    claimed = row.due_at
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(is_over.wait(), RENEW_S)
            return
        until = worker.clock.now() + CLAIM
        try:
            async with worker.db.autocommit() as conn:
                if (await conn.exec_driver_sql(_RENEW, (until, row.pk, claimed))).rowcount:
                    claimed = until
        except (SQLAlchemyError, BusyError, OSError) as error:  # a claim that ends early may be had twice: no harm
            log.warning("exchange_claim_not_renewed", txn_id=row.txn_id, error=repr(error))


async def count_open(conn: AsyncConnection) -> Mapping[tuple[str, str], int]:
    """Return how many live exchanges have not ended, by kind and step."""
    is_open = Exchange.due_at.is_not(None), Exchange.mode == "live"
    counted = select(Exchange.kind, Exchange.step, func.count().label("number")).where(*is_open)
    rows = await conn.execute(counted.group_by(Exchange.kind, Exchange.step))
    return {(row.kind, row.step): row.number for row in rows}


async def follow_exchange(worker: ExchangeWorker, row: ExchangeRow) -> None:
    """Do what an exchange's step asks for. Raises ChainError, and whatever a plugin raises."""
    match row.step:
        case Step.QUEUED:
            await prepare_call(worker, row)
        case Step.SENT:
            # The engine says at once when a transaction is final, or will never be.
            await later(worker, row, SENT_PAUSE)
        case Step.ARRIVING:
            await give_back_turn(worker, row)
            await find_output(worker, row)
        case Step.FILLING:
            await give_back_turn(worker, row)
            await find_fill(worker, row)
        case Step.REFUNDING:
            await find_refund(worker, row)
        case Step.CLEARING:
            await clear(worker, row)
        case Step.ENDED:
            return


async def reopen_orphaned(worker: ExchangeWorker, project_pk: int | None = None) -> int:
    """Open exchanges again whose claims a reorg has ended, of all projects or one; return how many."""
    async with worker.db.autocommit() as conn:
        pks = (await conn.exec_driver_sql(_GONE, (project_pk,))).scalars().all()
    for pk in sorted(pks):
        try:
            async with worker.db.transaction() as conn:
                await _reopen(worker, conn, pk)
        except Exception as error:  # one that cannot be opened again keeps no other
            worker.alerts["not_reopened"] += 1
            log.exception("exchange_not_reopened", exchange=pk, error=repr(error))
    return len(pks)


async def _reopen(worker: ExchangeWorker, conn: AsyncConnection, pk: int) -> None:
    """Drop an exchange's claims, whose credit went with their deposits, and look for them again.

    What still stands of them stays available, and is claimed again as it is.
    """
    row = exchange_row((await conn.execute(SELECT.where(Exchange.id == pk))).one())
    await lock_cursors(conn, row)
    row, now = await lock(conn, pk), worker.clock.now()
    gone = await conn.execute(delete(ExchangePart).where(ExchangePart.exchange_pk == pk).returning(ExchangePart.role))
    roles = set(gone.scalars())
    if not row.is_finished or not (roles or (row.kind is Kind.BRIDGE and row.unseen_height is not None)):
        return
    if row.unseen_units and row.kind is Kind.BRIDGE:
        life = f"{row.dest_tx_id}:{row.closings - 1}"
        await posting.post_unseen(conn, row, row.unseen_units, life, back=True)
    if row.kind is Kind.SWAP:
        await worker.endings.reopen(conn, row, now, Step.ARRIVING)
        return
    await reopen_bridge(worker.endings, conn, row, now, is_refund="refund" in roles)


async def reopen_bridge(
    endings: Endings, conn: AsyncConnection, row: ExchangeRow, now: datetime, *, is_refund: bool
) -> None:
    """Look again for the fill or the refund that had ended a bridge: what it took is between two chains once more."""
    await posting.post_closed(conn, row, refunded=is_refund, back=True)
    step = Step.REFUNDING if is_refund else Step.FILLING
    changed: dict[str, object] = {
        "is_closed": False,
        "closings": row.closings + 1,
        "searched_to": None,
        "refunds": {},
        **NOT_SEEN,
    }
    await endings.reopen(conn, row, now, step, **changed)
