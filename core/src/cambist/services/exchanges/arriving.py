"""What a swap's call, which is final, has brought: deposits of its transaction, or coin that only the balance shows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import OutboundSlot, OutboundTx
from cambist.domain.exchanges import Step
from cambist.plugin import ChainError, ContractChain, Span, StateUnavailableError, Units

from . import posting
from .outputs import Arrived, are_confirmed, claim, lock_cursors, lock_free, sum_free
from .rows import ExchangeRow, lock, save
from .unseen import came_unseen, change_in, may_be_filled
from .worker import ExchangeWorker, later

PAUSE = timedelta(seconds=3)
UNCLEAR_PAUSE = timedelta(minutes=5)
FILL_PAUSE = timedelta(seconds=10)
FILLS_FIRST = timedelta(minutes=30)
"""How long coin of a swap waits for bridges to whose fill some of it may belong."""


class MinedCall(Struct, frozen=True):
    """Where the call stands that is final, and which of its lives that is."""

    tx_id: str
    height: int
    block_hash: str | None
    incarnation: int

    @property
    def life(self) -> str:
        return f"{self.tx_id}:{self.incarnation}"


async def find_call(conn: AsyncConnection, row: ExchangeRow) -> MinedCall | None:
    """Return the final transaction of an exchange's call, None where a reorg has just taken it back."""
    tx = OutboundTx
    found = await conn.execute(
        select(tx.tx_id, tx.height, tx.block_hash, tx.incarnation)
        .join(OutboundSlot, OutboundSlot.id == tx.slot_pk)
        .where(OutboundSlot.intent_pk == row.intent_pk, tx.state == "final", tx.role == "main", tx.succeeded.is_(True))
    )
    one = found.one_or_none()
    return None if one is None else MinedCall(one.tx_id, one.height, one.block_hash, one.incarnation)


async def find_output(worker: ExchangeWorker, row: ExchangeRow) -> None:
    """Claim the output of a swap, and what came back of the source, once all of it is confirmed."""
    async with worker.db.autocommit() as conn:
        call = await find_call(conn, row)
    if call is None:
        await later(worker, row, PAUSE)
        return
    if row.recipient_pk is None:
        await _paid_to_somebody(worker, row, call)
        return
    async with worker.db.transaction() as conn:
        await lock_cursors(conn, row)
        outputs = await _arrived(conn, row, call, row.dest_contract)
        returned = await _arrived(conn, row, call, row.source_contract)
        locked = await lock(conn, row.pk)
        now = worker.clock.now()
        if locked.step is not Step.ARRIVING:
            return
        if not are_confirmed([*outputs, *returned]) and (outputs or returned):
            await save(conn, locked, now, due_at=now + PAUSE)
            return
        if outputs:
            units = sum_free(outputs)
            await claim(conn, locked, outputs, units, "output", now)
            await claim(conn, locked, returned, sum_free(returned), "returned", now)
            await worker.endings.succeed(conn, locked, now, units, dest_tx_id=call.tx_id)
            return
    await _unseen(worker, row, call)


async def _arrived(conn: AsyncConnection, row: ExchangeRow, call: MinedCall, contract: str | None) -> Sequence[Arrived]:
    return await lock_free(conn, row.dest_chain, row.scope, call.tx_id, row.recipient_pk, contract)


async def _unseen(worker: ExchangeWorker, row: ExchangeRow, call: MinedCall) -> None:
    """Credit native coin of which no transfer is told. Its block was read, so that no row of it can come any more.

    A token's transfers are always told: where there is none, somebody has to look.
    """
    change = None
    if row.dest_contract is None:
        try:
            known = worker.changes.pop((row.pk, call.life), None)
            change = known or await change_in(worker, row.dest_chain, row.recipient, call.height)
        except StateUnavailableError as error:
            worker.alert("output_not_measured", row, tx_id=call.tx_id, error=str(error))
            await later(worker, row, UNCLEAR_PAUSE)
            return
    async with worker.db.transaction() as conn:
        await lock_cursors(conn, row)
        outputs = await _arrived(conn, row, call, row.dest_contract)
        returned = await _arrived(conn, row, call, row.source_contract)
        still = await find_call(conn, row)
        locked = await lock(conn, row.pk)
        now = worker.clock.now()
        if locked.step is not Step.ARRIVING or outputs or still != call:
            return
        units = Units(0) if change is None else await came_unseen(conn, locked, change)
        if units < row.units_min:
            worker.alert("output_unclear", locked, tx_id=call.tx_id, seen=str(units), least=str(row.units_min))
            await save(conn, locked, now, due_at=now + UNCLEAR_PAUSE)
            return
        if change is not None and await may_be_filled(
            conn, locked, call.height, units - row.units_min, now - FILLS_FIRST
        ):
            worker.changes[row.pk, call.life] = change
            await save(conn, locked, now, due_at=now + FILL_PAUSE)
            return
        await claim(conn, locked, returned, sum_free(returned), "returned", now)
        await posting.post_unseen(conn, locked, units, call.life)
        seen = {"unseen_units": units, "unseen_height": call.height, "unseen_hash": call.block_hash}
        await worker.endings.succeed(conn, locked, now, units, dest_tx_id=call.tx_id, **seen)


async def _paid_to_somebody(worker: ExchangeWorker, row: ExchangeRow, call: MinedCall) -> None:
    """End a swap whose output went to somebody else: the call is final, and gives no less than was promised."""
    units = row.units_min
    chain = worker.chain(row.dest_chain)
    try:
        if chain is not None:
            units = Units(max(units, await _paid_by(worker, chain, row, call)))
    except ChainError as error:
        worker.alert("output_not_measured", row, tx_id=call.tx_id, error=str(error))
    async with worker.db.transaction() as conn:
        await lock_cursors(conn, row)
        still = await find_call(conn, row)
        locked = await lock(conn, row.pk)
        if locked.step is Step.ARRIVING and still == call:
            await worker.endings.succeed(conn, locked, worker.clock.now(), units, dest_tx_id=call.tx_id)


async def _paid_by(worker: ExchangeWorker, chain: ContractChain, row: ExchangeRow, call: MinedCall) -> int:
    """Return how much a call paid to its recipient, as its own transfers tell. Raises ChainError.

    Where they tell too little, as of coin that a contract paid where nodes offer no traces, the recipient's balance
    does. Others may have paid there in the same block, too: of it no more than the quote is believed.
    """
    recipient = worker.families[chain.info.family].address_key(row.recipient)
    async with chain.view() as view:
        scanned = await view.scan(Span(first=call.height, last=call.height), frozenset([recipient]))
    wanted = (call.tx_id, row.recipient, row.dest_contract)
    told = sum(one.amount for one in scanned.transfers if (one.tx_id, one.recipient, one.contract) == wanted)
    if told >= row.units_min:
        return told
    before, after = [await chain.balance(row.recipient, row.dest, at) for at in (call.height - 1, call.height)]
    return min(row.quoted_units, after - before)
