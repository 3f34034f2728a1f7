"""Looks for who pays a bridge's deposit out, as the other chain shows it.

Whatever the provider's server says is a hint to look. A fill and a refund of one deposit are never both credited: the
exchange is ended by the first, and each is claimed from a deposit row that holds it.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import msgspec
import structlog
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import ChainBlock
from cambist.deadlines import within
from cambist.domain.exchanges import Step
from cambist.plugin import (
    BridgeDeposit,
    BridgeFill,
    FoundLog,
    LogQuery,
    StateUnavailableError,
    Units,
)
from cambist.services.receiving.deposits.blocks import height_before, moment
from cambist.services.sending import finality_store

from . import posting
from .arriving import find_call
from .outputs import are_confirmed, claim, lock_arrived, lock_cursors, sum_free
from .rows import ExchangeRow, lock, save, save_on
from .two_chains import Reach, Sides, connected_sides, read_reach, search
from .unseen import came_unseen, change_in
from .worker import ExchangeWorker, later

SOON = timedelta(seconds=2)
PAUSE = timedelta(seconds=60)
EAGER = timedelta(minutes=3)
"""How long after its deposit a fill is looked for every few seconds; later, once a minute and whenever money comes."""
ALERT_PAUSE = timedelta(minutes=10)

log = structlog.get_logger(__name__)


async def find_fill(worker: ExchangeWorker, row: ExchangeRow) -> None:
    """Look for the fill of a deposit that is final; where none can come any more, for its refund from now on."""
    sides = connected_sides(worker, row)
    if sides is None:
        worker.alert("not_followed", row, reason="its provider or one of its chains is not there")
        await later(worker, row, ALERT_PAUSE)
        return
    deposit = row.bridge_deposit or await _read_deposit(worker, row, sides)
    if deposit is None:
        return
    async with worker.db.autocommit() as conn:
        reach = await read_reach(worker, conn, row, row.dest_chain)
    if reach is None:
        await later(worker, row, PAUSE)
        return
    first = row.fill_from if row.searched_to is None else row.searched_to
    if first is None:
        first = await _before_call(worker, row, sides, reach)
    if first is None:
        return
    found, searched_to = await _find_fill(worker, sides, deposit, first, reach)
    is_new = row.broadcast_at is None or worker.clock.now() - row.broadcast_at < EAGER
    # Contracts fill by the time of the block: behind a final one that is later, nobody can.
    deep_s = None if reach.deep_time is None else reach.deep_time.timestamp()
    is_expired = searched_to >= reach.deep and deep_s is not None and deep_s > deposit.fill_deadline
    if found is None and (is_expired or not is_new):
        found = await hinted(worker, row, sides, deposit)
    if found is not None:
        await _filled(worker, row, *found)
        return
    now = worker.clock.now()
    if is_expired:
        if await save_on(worker.db, row, now, step=Step.REFUNDING, searched_to=None, due_at=now):
            log.info("exchange_expired", txn_id=row.txn_id, deadline=deposit.fill_deadline)
        return
    pause = SOON if is_new or searched_to < reach.height else PAUSE
    done = min(searched_to, reach.deep)
    await save_on(worker.db, row, now, searched_to=max(first, done), due_at=now + pause)


async def _before_call(worker: ExchangeWorker, row: ExchangeRow, sides: Sides, reach: Reach) -> int | None:
    """Return a height of the other chain from before the call, by the time of the call's block; stored from now on.

    None is stored where the call was forgotten, or the other chain was not watched yet: its fill may be long ago.
    """
    async with worker.db.autocommit() as conn:
        call = await find_call(conn, row)
    if call is None:
        await later(worker, row, SOON)
        return None
    async with sides.source.view() as view:
        called = await view.block(call.height)
    async with sides.dest.view() as view:
        height = await height_before(view, reach.height, moment(called.time))
    async with worker.db.transaction() as conn:
        locked = await lock(conn, row.pk)
        if locked.step is not Step.FILLING or locked.tx_id != call.tx_id:
            return None
        await save(conn, locked, worker.clock.now(), fill_from=height)
    return height


async def _read_deposit(worker: ExchangeWorker, row: ExchangeRow, sides: Sides) -> BridgeDeposit | None:
    """Return the deposit that the call's receipt tells of, stored from now on."""
    async with worker.db.autocommit() as conn:
        call = await find_call(conn, row)
    receipt = None if call is None else await sides.source.receipt(call.tx_id)
    if call is None or receipt is None:
        await later(worker, row, SOON)
        return None
    async with worker.db.autocommit() as conn:
        is_of_chain = await finality_store.is_deep(conn, worker.scope(row, row.source_chain), receipt.block)
    if not is_of_chain:
        # A node that is behind tells of the block from before a reorg, where the deposit had another number. What is
        # stored with the call may be that block, too: it was the chain's before the gateway was away for long.
        log.warning("deposit_receipt_of_another_block", txn_id=row.txn_id, chain=row.source_chain, tx_id=call.tx_id)
        await later(worker, row, SOON)
        return None
    deposit = sides.provider.deposit(sides.source.info, receipt, worker.infos)
    if deposit is None or not _is_asked(row, deposit):
        # The reader that judged the call was wrong, or the contract did something else.
        worker.alert("deposit_unclear", row, tx_id=row.tx_id, read=str(deposit))
        await later(worker, row, ALERT_PAUSE)
        return None
    async with worker.db.transaction() as conn:
        locked = await lock(conn, row.pk)
        if locked.step is not Step.FILLING or locked.tx_id != receipt.tx_id:
            return None
        await save(conn, locked, worker.clock.now(), deposit=msgspec.to_builtins(deposit))
    return deposit


def _is_asked(row: ExchangeRow, deposit: BridgeDeposit) -> bool:
    return (
        deposit.units == row.given
        and (deposit.chain, deposit.contract) == (row.dest_chain, row.dest_contract)
        and deposit.units_out >= row.units_min
        and deposit.recipient == row.recipient
        and deposit.refund_to == row.sender
    )


async def _find_fill(
    worker: ExchangeWorker, sides: Sides, deposit: BridgeDeposit, first: int, reach: Reach
) -> tuple[tuple[BridgeFill, FoundLog] | None, int]:
    """Return the fill, if the blocks that the watcher has read tell of one, and up to which height was looked."""

    def query(low: int, high: int) -> LogQuery:
        return sides.provider.fill_query(sides.dest.info, deposit, sides.source.info, low, high)

    searched_to = first
    async for logs, last in search(worker, sides.dest, query, first, reach.height):
        searched_to = last
        for found in logs:
            fill = sides.provider.fill(sides.dest.info, deposit, sides.source.info, found)
            if fill is not None:
                return (fill, found), found.height
    return None, searched_to


async def hinted(
    worker: ExchangeWorker, row: ExchangeRow, sides: Sides, deposit: BridgeDeposit
) -> tuple[BridgeFill, FoundLog] | None:
    """Return the fill in the transaction that the provider names, if the chain shows one there. A hint never raises."""
    try:
        asked = sides.provider.status(sides.source.info, deposit)
        said = await within(worker.build_timeout_s, asked, of=sides.provider)
        tx_id = said.tx_id if said.state == "filled" else None
        async with asyncio.timeout(worker.build_timeout_s):
            receipt = None if tx_id is None else await sides.dest.receipt(tx_id)
    except Exception as error:  # noqa: BLE001  whatever a provider says, what follows must not depend on it
        log.info("bridge_status_unknown", txn_id=row.txn_id, chain=row.dest_chain, error=repr(error))
        return None
    if receipt is None:
        return None
    for one in receipt.logs:
        found = FoundLog(tx_id=receipt.tx_id, height=receipt.block.height, block_hash=receipt.block.hash, log=one)
        fill = sides.provider.fill(sides.dest.info, deposit, sides.source.info, found)
        if fill is not None:
            return fill, found
    log.warning("bridge_says_filled", txn_id=row.txn_id, tx_id=tx_id)
    return None


async def _filled(worker: ExchangeWorker, row: ExchangeRow, fill: BridgeFill, found: FoundLog) -> None:
    """End an exchange whose fill is deep enough, by the deposit that it is to us.

    A token that keeps a share of each transfer brings less than the fill says. What has arrived is credited, and it
    ends the exchange if it is no less than was promised; else somebody has to look.
    """
    async with worker.db.transaction() as conn:
        await lock_cursors(conn, row)
        reach = await read_reach(worker, conn, row, row.dest_chain)
        hash_ = select(ChainBlock.hash).where(
            ChainBlock.chain == row.dest_chain, ChainBlock.scope == row.scope, ChainBlock.height == found.height
        )
        known = await conn.scalar(hash_)
        where = (row.dest_chain, row.scope, fill.tx_id, row.recipient_pk or 0, row.dest_contract)
        arrived = await lock_arrived(conn, *where)
        locked = await lock(conn, row.pk)
        now = worker.clock.now()
        if locked.step is not Step.FILLING:
            return
        is_deep = reach is not None and found.height <= reach.deep and known in {None, found.block_hash}
        if not is_deep or (arrived and not are_confirmed(arrived)):
            await save(conn, locked, now, dest_tx_id=fill.tx_id, due_at=now + SOON)
            return
        block = {"unseen_height": found.height, "unseen_hash": found.block_hash}
        if row.recipient_pk is None:
            await _close(worker, conn, locked, now, fill.units, fill.tx_id, **block)
            return
        units = Units(min(fill.units, sum_free(arrived)))
        if units >= locked.units_min:
            await claim(conn, locked, arrived, units, "output", now)
            await _close(worker, conn, locked, now, units, fill.tx_id)
            return
        if arrived:
            await _unclear(worker, conn, locked, now, fill, units)
            return
    await _filled_unseen(worker, row, fill, found)


async def _filled_unseen(worker: ExchangeWorker, row: ExchangeRow, fill: BridgeFill, found: FoundLog) -> None:
    """Credit native coin of which no transfer is told: the fill says how much, and the balance that it has come.

    Where no node knows the past any more, the log of the pinned contract is what there is.
    """
    change, is_told = None, False
    if row.dest_contract is None:
        try:
            change = await change_in(worker, row.dest_chain, row.recipient, found.height)
        except StateUnavailableError as error:
            worker.alert("output_not_measured", row, tx_id=fill.tx_id, error=str(error))
            is_told = True
    async with worker.db.transaction() as conn:
        await lock_cursors(conn, row)
        where = (row.dest_chain, row.scope, fill.tx_id, row.recipient_pk or 0, row.dest_contract)
        arrived = await lock_arrived(conn, *where)
        locked = await lock(conn, row.pk)
        now = worker.clock.now()
        if locked.step is not Step.FILLING or arrived:
            return
        units = Units(0) if change is None else await came_unseen(conn, locked, change)
        if units < fill.units and not is_told:
            await _unclear(worker, conn, locked, now, fill, units)
            return
        await posting.post_unseen(conn, locked, fill.units, f"{fill.tx_id}:{locked.closings}")
        seen = {"unseen_units": fill.units, "unseen_height": found.height, "unseen_hash": found.block_hash}
        await _close(worker, conn, locked, now, fill.units, fill.tx_id, **seen)


async def _unclear(  # noqa: PLR0913, PLR0917  what was seen of which fill
    worker: ExchangeWorker, conn: AsyncConnection, row: ExchangeRow, now: datetime, fill: BridgeFill, seen: Units
) -> None:
    """Tell the operator that too little of a fill is seen, and look again later: the money stays where it is."""
    facts = {"seen": str(seen), "filled": str(fill.units), "least": str(row.units_min)}
    worker.alert("output_unclear", row, tx_id=fill.tx_id, **facts)
    await save(conn, row, now, due_at=now + ALERT_PAUSE)


async def _close(  # noqa: PLR0913, PLR0917  what was paid out, and where
    worker: ExchangeWorker,
    conn: AsyncConnection,
    row: ExchangeRow,
    now: datetime,
    units: Units,
    tx_id: str,
    **changed: object,
) -> None:
    await posting.post_closed(conn, row, refunded=False)
    closed = {"is_closed": True, "closings": row.closings + 1, "dest_tx_id": tx_id}
    await worker.endings.succeed(conn, row, now, units, **closed, **changed)
