"""Looks for what pays an expired deposit of a bridge back, on its own chain.

One transfer may be for several deposits, and names none: it is allotted to those that it covers, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import structlog
from msgspec import Struct
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import ExchangePart
from cambist.db.structs import one_of
from cambist.domain.exchanges import Step
from cambist.domain.failures import SENTENCES, Failure
from cambist.plugin import BridgeDeposit, LogQuery, Units
from cambist.services.receiving.deposits.blocks import moment

from . import posting
from .arriving import find_call
from .filling import hinted
from .outputs import Arrived, claim, lock_arrived, lock_cursors, sum_free
from .rows import ExchangeRow, lock, save, save_on
from .two_chains import connected_sides, read_reach, search
from .worker import ExchangeWorker, later

SOON = timedelta(seconds=2)
PAUSE = timedelta(seconds=60)
ALERT_PAUSE = timedelta(minutes=10)
LATE = timedelta(hours=24)
"""How long after its deadline a deposit may come back: bridges pay back in bundles, some hours later."""

NOT_FILLED = SENTENCES[Failure.NOT_FILLED]

log = structlog.get_logger(__name__)


async def find_refund(worker: ExchangeWorker, row: ExchangeRow) -> None:
    """Look for what pays an expired deposit back on its own chain. One transfer may be for several deposits.

    Where nothing does yet, its provider may know that it was filled after all.
    """
    sides, deposit = connected_sides(worker, row), row.bridge_deposit
    if sides is None or deposit is None:
        worker.alert("not_followed", row, reason="its provider or one of its chains is not there")
        await later(worker, row, ALERT_PAUSE)
        return
    async with worker.db.autocommit() as conn:
        call = await find_call(conn, row)
        reach = await read_reach(worker, conn, row, row.source_chain)
    if call is None or reach is None:
        await later(worker, row, SOON)
        return

    def query(low: int, high: int) -> LogQuery:
        return sides.provider.refund_query(sides.source.info, deposit, low, high)

    first = call.height if row.searched_to is None else row.searched_to
    seen, missing, searched_to = dict(row.refunds), list[int](), first - 1
    async for logs, last in search(worker, sides.source, query, first, reach.deep):
        searched_to = last
        for tx_id, height in {found.tx_id: found.height for found in logs}.items():
            receipt = await sides.source.receipt(tx_id)
            if receipt is None:
                # Another node than told of the log may not have it yet: what it pays back is asked for again.
                log.warning("refund_receipt_missing", txn_id=row.txn_id, chain=row.source_chain, tx_id=tx_id)
                missing.append(height)
                continue
            units = sides.provider.refund(sides.source.info, deposit, receipt)
            if units is not None:
                seen[tx_id] = str(units)
    next_from, is_behind = min([searched_to + 1, *missing]), searched_to < reach.deep
    # By the chain's own time, as its contract goes by that.
    is_late = reach.deep_time is not None and reach.deep_time > moment(deposit.fill_deadline) + LATE
    is_over = await _claim_refund(
        worker, row, deposit, seen, searched_to=next_from, is_behind=is_behind, is_late=is_late
    )
    if not is_over and await hinted(worker, row, sides, deposit) is not None:
        await _back_to_filling(worker, row)


async def _back_to_filling(worker: ExchangeWorker, row: ExchangeRow) -> None:
    """Look for the fill once more: a reorg that is deeper than any proof has brought it, or a node had not told it."""
    now = worker.clock.now()
    if await save_on(worker.db, row, now, step=Step.FILLING, searched_to=None, refunds={}, due_at=now):
        log.warning("exchange_filled_after_all", txn_id=row.txn_id)


async def _claim_refund(  # noqa: PLR0913  what was seen, how far, and whether it should have come
    worker: ExchangeWorker,
    row: ExchangeRow,
    deposit: BridgeDeposit,
    seen: Mapping[str, str],
    *,
    searched_to: int,
    is_behind: bool,
    is_late: bool,
) -> bool:
    """End an exchange whose deposit has come back: out of all that was paid back and is nobody else's.

    Return whether that is over, or goes on at once.

    Transfers name no deposits, so that those of a wallet share what has come in the order in which they are looked at;
    one that is just as large comes first.
    """
    async with worker.db.transaction() as conn:
        await lock_cursors(conn, row)
        pools = [await _pool(conn, row, deposit, tx_id, Units(int(told))) for tx_id, told in seen.items()]
        locked = await lock(conn, row.pk)
        now = worker.clock.now()
        if locked.step is not Step.REFUNDING:
            return True
        left, chosen = row.given, []
        for pool in sorted(pools, key=lambda one: one.free != row.given):
            share = Units(min(left, pool.free))
            left = Units(left - share)
            chosen.append((pool, share))
        if left:
            pause = SOON if is_behind or any(pool.is_coming for pool in pools) else PAUSE
            if sum(pool.told for pool in pools) - sum(pool.claimed for pool in pools) >= row.given:
                worker.alert("refund_not_stored", locked, contract=deposit.refund_contract, seen=str(seen))
            elif pause == PAUSE and is_late:
                # The token may refuse the wallet, which leaves no trace there: somebody has to look.
                facts = {"deposit_id": deposit.deposit_id, "contract": deposit.refund_contract}
                worker.alert("refund_late", locked, tx_id=deposit.tx_id, to=deposit.refund_to, **facts)
                pause = ALERT_PAUSE
            await save(conn, locked, now, refunds=dict(seen), searched_to=searched_to, due_at=now + pause)
            return pause == SOON
        for pool, share in chosen:
            await claim(conn, locked, pool.arrived, share, "refund", now)
        await posting.post_closed(conn, locked, refunded=True)
        closed = {"is_closed": True, "closings": locked.closings + 1, "refunds": {}}
        await worker.endings.fail(conn, locked, now, NOT_FILLED, **closed)
    return True


class Pool(Struct, frozen=True, kw_only=True):
    """What one transaction paid back to the wallet, and how much of it no exchange has claimed and is confirmed."""

    told: Units
    claimed: Units
    arrived: Sequence[Arrived]
    free: Units
    is_coming: bool


async def _pool(conn: AsyncConnection, row: ExchangeRow, deposit: BridgeDeposit, tx_id: str, told: Units) -> Pool:
    where = (row.source_chain, row.scope, tx_id, row.source_pk, deposit.refund_contract)
    arrived = await lock_arrived(conn, *where)
    claimed = await conn.scalar(
        select(func.coalesce(func.sum(ExchangePart.units), 0)).where(
            one_of(ExchangePart.deposit_pk, [one.deposit.id for one in arrived]),
            ExchangePart.role == "refund",
            ~ExchangePart.is_gone,
        )
    )
    confirmed = [one for one in arrived if one.deposit.status == "confirmed"]
    return Pool(
        told=told,
        claimed=Units(int(claimed or 0)),
        arrived=confirmed,
        free=Units(max(0, min(sum_free(confirmed), told - int(claimed or 0)))),
        is_coming=len(confirmed) < len(arrived),
    )
