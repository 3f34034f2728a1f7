"""What the engine says of the calls and approvals of exchanges, in the transaction in which it happens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

import structlog
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Exchange, OutboundIntent
from cambist.db.structs import one_of
from cambist.domain.exchanges import Kind, MadeFor, Status, Step
from cambist.domain.failures import SENTENCES, Failure
from cambist.plugin import Call
from cambist.services.sending.batches import WAITS_FOR_CALL
from cambist.services.sending.handler import IntentHandler, IntentUpdate

from . import posting
from .calls import Readers
from .ending import Endings
from .rows import ExchangeRow, lock_by_intents, save

log = structlog.get_logger(__name__)

FAILED_WITHOUT_REASON = SENTENCES[Failure.NOT_SENT]
OF_SIGNER = "signer: "
NOT_SEEN = {"unseen_units": 0, "unseen_height": None, "unseen_hash": None}


class ExchangeHandler(IntentHandler):
    """Serves the kinds swap and bridge: the calls themselves."""

    def __init__(self, endings: Endings, readers: Readers) -> None:
        self._endings, self._readers = endings, readers

    async def recognizes(self, conn: AsyncConnection, one: IntentUpdate, call: Call) -> bool | None:
        row = (await lock_by_intents(conn, [one.intent_pk])).get(one.intent_pk)
        return None if row is None else self._readers.is_call_of(row, call)

    async def on_waiting(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        async for row, one in _changes(conn, updates):
            if row.is_finished:
                await _forget(conn, row, one, now)
                continue
            due_at = now if one.reason == WAITS_FOR_CALL else row.due_at
            waiting = await save(conn, row, now, step=Step.QUEUED, waits_for=one.reason, due_at=due_at)
            if row.made_for is MadeFor.PAYOUT:
                await self._endings.payouts.on_waiting(conn, waiting, now)

    async def on_broadcast(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        async for row, one in _changes(conn, updates):
            if row.is_finished:
                continue
            begun = row.broadcast_at or now
            # A call that is known again was made before the heights that are stored.
            looked: dict[str, object] = {"fill_from": None, "searched_to": None} if one.was_forgotten else {}
            told = {"waits_for": None, "tx_id": one.tx_id, "broadcast_at": begun}
            sent = await save(conn, row, now, step=Step.SENT, **told, **looked)
            if row.made_for is MadeFor.PAYOUT:
                await self._endings.payouts.on_sent(conn, sent, now)

    async def on_final(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Post that what was given has left the wallet. What comes of it is looked for from now on."""
        async for row, one in _changes(conn, updates):
            await posting.post_sent(conn, row, _life(one))
            if row.status is Status.SUCCEEDED or row.is_closed:
                continue
            step = Step.ARRIVING if row.kind is Kind.SWAP else Step.FILLING
            looked: dict[str, object] = {"searched_to": None}
            if row.step is not Step.SENT or row.tx_id != one.tx_id:
                # An earlier call than the one whose height is stored: it may have been filled before that.
                looked["fill_from"] = None
            await self._endings.reopen(conn, row, now, step, tx_id=one.tx_id, deposit=None, **looked)

    async def on_failed(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Give back what was set aside."""
        async for row, one in _changes(conn, updates):
            if row.status is Status.FAILED:
                continue
            await posting.post_failed(conn, row, _life(one))
            if row.is_closed:
                log.error("filled_exchange_was_never_sent", txn_id=row.txn_id)
                await _clear(conn, row, now)
                continue
            tx_id = one.tx_id or row.tx_id
            failed = await self._endings.fail(conn, row, now, one.reason or FAILED_WITHOUT_REASON, tx_id=tx_id)
            await _clear(conn, failed, now)

    async def on_undone(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Post that a deep reorg put it back into the wallet: it is under way again, unless it was filled meanwhile."""
        async for row, one in _changes(conn, updates):
            await posting.post_sent(conn, row, _life(one), back=True)
            if row.unseen_units and row.kind is Kind.SWAP:
                await posting.post_unseen(conn, row, row.unseen_units, _life(one), back=True)
            if not row.is_closed:
                await self._endings.reopen(conn, row, now, Step.SENT, deposit=None, searched_to=None, **NOT_SEEN)


class ApprovalHandler(IntentHandler):
    """Wakes the exchange whose allowance was given, or never will be."""

    async def on_final(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        await _wake(conn, updates, now)

    async def on_failed(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        await _wake(conn, updates, now)


async def _forget(conn: AsyncConnection, row: ExchangeRow, one: IntentUpdate, now: datetime) -> None:
    """Fail a call that nobody wants any more: its exchange has ended, and a reorg has thrown its transaction away."""
    if one.reason != WAITS_FOR_CALL:
        return
    ended = {"state": "failed", "reason": row.error or FAILED_WITHOUT_REASON, "finished_at": now, "updated_at": now}
    await conn.execute(update(OutboundIntent).where(OutboundIntent.id == one.intent_pk).values(**ended))
    if row.is_closed:
        log.error("filled_exchange_was_never_sent", txn_id=row.txn_id)
        await posting.post_failed(conn, row, f"forgotten:{one.incarnation}")
    await _clear(conn, row, now)


async def _clear(conn: AsyncConnection, row: ExchangeRow, now: datetime) -> None:
    """Look for what is left of the allowance of a call that takes nothing, also where its turn was given back.

    The call had used it up, and then a reorg took that back.
    """
    if row.approvals:
        await save(conn, row, now, step=Step.CLEARING, due_at=now)


def approval_reference(txn_id: str, number: int) -> str:
    """Return the name of an exchange's approval, for ever."""
    return f"approval:{txn_id}:{number}"


async def _wake(conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
    txn_ids = sorted({one.reference.split(":")[1] for one in updates})
    waiting = one_of(Exchange.txn_id, txn_ids), Exchange.due_at.is_not(None)
    await conn.execute(update(Exchange).where(*waiting).values(due_at=now))


async def _changes(
    conn: AsyncConnection, updates: Sequence[IntentUpdate]
) -> AsyncIterator[tuple[ExchangeRow, IntentUpdate]]:
    """Yield the exchanges that the updates are about, locked."""
    by_intent = {one.intent_pk: one for one in updates}
    rows = await lock_by_intents(conn, list(by_intent))
    for missing in by_intent.keys() - rows.keys():
        log.error("exchange_missing", intent=by_intent[missing].reference)
    for intent_pk, row in rows.items():
        yield row, by_intent[intent_pk]


def _life(one: IntentUpdate) -> str:
    """Name the life of a transaction: one that replaces another has its own, and each time that it is mined again."""
    return f"{one.tx_id or '-'}:{one.incarnation}"
