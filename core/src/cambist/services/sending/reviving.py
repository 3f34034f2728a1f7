"""Takes up what was signed for a nonce that something else had used, where a reorg has taken that away again.

A nonce slot is dead once something else is mined there, deep in the chain. A reorg deeper than that takes the proof
back: the nonce is free, and what was signed for it may be mined after all. So whoever would sign its intent anew, or
give its money back, asks the chain first; such a slot is followed again, as if it had never been given up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import ChainError

from . import cancel_store, finality_store, gap_store, store
from .context import EngineContext
from .counts import NonceDoubtedError, mined_count
from .gap_store import DeadSlot
from .handler import updated
from .rows import IntentRow, OwnPath

LOST_FOR = timedelta(days=7)
LOST_MAX = 100
LOST_PAUSE = timedelta(seconds=60)
"""Lost slots are looked at as often as this, the newest of one week: each look is a question to a node."""

log = structlog.get_logger(__name__)


async def revive(
    context: EngineContext, conn: AsyncConnection, intents: Sequence[IntentRow], mined: int | None
) -> set[int]:
    """Open dead slots again in which these intents may happen, or have; return whose they are. The intents are locked.

    Below ``mined``, all nonces of the sender are used; without it, only what is mined itself counts: as a node tells
    by its id, or as the watcher has read it. Raises ChainError.
    """
    slots = await gap_store.dead_slots(conn, [intent.id for intent in intents])
    known = await _mined_among(context, slots)
    read = await finality_store.read_in_blocks(conn, context.chain_scope, [slot.pk for slot in slots])
    chosen: dict[int, DeadSlot] = {}
    for slot in slots:
        if mined is not None and slot.sequence is not None and slot.sequence >= mined:
            chosen.setdefault(slot.intent_pk, slot)
    chosen |= {slot.intent_pk: slot for slot in slots if slot.pk in read or known & set(slot.tx_ids)}
    if chosen:
        now = context.clock.now()
        await gap_store.open_again(conn, [slot.pk for slot in chosen.values()], now)
        back = [updated(one.update, tx_id=chosen[one.id].tx_ids[-1]) for one in intents if one.id in chosen]
        await context.handlers.on_broadcast(conn, back, now)
        log.warning("nonce_free_again", chain=context.chain_scope.info.id, references=[one.reference for one in back])
    return set(chosen)


async def revive_vacated(
    context: EngineContext, conn: AsyncConnection, sender: OwnPath, mined: int, first: int
) -> set[int]:
    """Open again the dead slots of what waits, from nonce ``mined`` to before ``first``; return whose they are."""
    waiting = await gap_store.waiting_for_vacated(conn, context.chain_scope, sender.pk, mined, first)
    locked = await store.lock_waiting(conn, waiting) if waiting else set()
    return await revive(context, conn, [one for one in waiting if one.id in locked], mined)


async def taken_back(context: EngineContext, intents: Sequence[IntentRow]) -> tuple[set[int], set[int]]:
    """Return which of these, all to be cancelled, were mined after all, and which may be yet; the first are followed.

    All of them have dead slots. Where the chain does not answer, all may be mined; where its count of one sender is
    doubted, all of that sender.
    """
    if not intents:
        return set(), set()
    try:
        counts = {one.source.pk: await _used(context, one.source) for one in intents}
        async with context.db.transaction() as conn:
            locked = await cancel_store.lock_cancelling(conn, intents)
            revived = await revive(context, conn, [one for one in intents if one.id in locked], None)
            slots = await gap_store.dead_slots(conn, [one.id for one in intents])
    except ChainError as error:
        log.warning("nonce_unknown", chain=context.chain_scope.info.id, error=str(error))
        return set(), {one.id for one in intents}
    sources = {one.id: one.source.pk for one in intents}
    free = {
        slot.intent_pk
        for slot in slots
        if slot.sequence is not None and slot.sequence >= counts[sources[slot.intent_pk]]
    }
    return revived, free - revived


async def _used(context: EngineContext, sender: OwnPath) -> int:
    """Return below which all nonces of a sender are used: none of them, where the chain's count is doubted."""
    try:
        return await mined_count(context, sender) or 0
    except NonceDoubtedError as error:
        log.warning("nonce_unknown", chain=context.chain_scope.info.id, error=str(error))
        return 0


class LostSlots:
    """Looks now and then whether what was signed in lost slots is mined after all, though it was sent anew or failed.

    Whoever tells nodes of it again says nothing to us, and nothing of ours need be waiting for its nonce.
    """

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._asked_at: datetime | None = None

    async def check(self) -> None:
        """Tell the operator, once, of each that is mined: it is paid once too often. Raises ChainError."""
        context, now = self._context, self._context.clock.now()
        if self._asked_at is not None and now - self._asked_at < LOST_PAUSE:
            return
        async with context.db.autocommit() as conn:
            slots = await gap_store.lost_slots(conn, context.chain_scope, now - LOST_FOR, LOST_MAX)
        known = await _mined_among(context, slots)
        self._asked_at = now
        mined = {slot.pk: slot for slot in slots if known.intersection(slot.tx_ids)}
        if mined:
            async with context.db.autocommit() as conn:
                fresh = await gap_store.note_found(conn, sorted(mined))
            for pk in sorted(fresh):
                for tx_id in known.intersection(mined[pk].tx_ids):
                    context.alert("mined_again", reference=mined[pk].reference, tx_id=tx_id)


async def _mined_among(context: EngineContext, slots: Sequence[DeadSlot]) -> set[str]:
    tx_ids = [tx_id for slot in slots for tx_id in slot.tx_ids]
    if not tx_ids:
        return set()
    statuses = await context.chain.transactions(tx_ids)
    return {tx_id for tx_id, status in zip(tx_ids, statuses, strict=True) if status.block is not None}
