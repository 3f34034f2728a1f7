"""Cancels what waits: nothing signs it any more, the signer has voided it, and then its money goes back.

Whoever asks marks the intent, behind its lock and only while it has no slot; from that commit on no engine signs it.
The gateway itself marks what it gives up: that fails, for the reason that is written down with the mark.
What is left to be known is what its signer did before: its own memory outlives a database that is out of a backup. So
the signer voids the reference first, and says what it had signed. The money goes back only where that is nothing, or is
proven to be dead. A crash in between loses nothing: the signer is asked once more, and answers alike. What nothing
proves waits for a transaction that an operator names (``settling.py``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeAlias

import structlog
from msgspec import structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.failures import SENTENCES, Failure
from cambist.domain.intents import AskedBy
from cambist.plugin import ChainError, Dated
from cambist.services.receiving.deposits.rows import lock_cursor
from cambist.signer.protocol import Voided

from . import cancel_store, finality_store, store
from .context import EngineContext
from .counts import mined_count
from .handler import IntentHandlers, IntentUpdate, lock_spending
from .nonce_slots import MINED_STATES, fill_gaps
from .reviving import taken_back
from .rows import IntentRow
from .settling import settle_named

CANCELLED_AT_ONCE_MAX = 100
PROOF_PAUSE = timedelta(seconds=30)
WAITS_FOR_PROOF = "signed_before"

REASONS: Mapping[AskedBy, str] = {
    AskedBy.SESSION: SENTENCES[Failure.CANCELLED_BY_MERCHANT],
    AskedBy.KEY: SENTENCES[Failure.CANCELLED_BY_KEY],
    AskedBy.OPERATOR: SENTENCES[Failure.CANCELLED_BY_OPERATOR],
    AskedBy.PLATFORM: SENTENCES[Failure.CANCELLED],
}

LockAccounts: TypeAlias = Callable[[AsyncConnection, Sequence[IntentUpdate]], Awaitable[None]]

log = structlog.get_logger(__name__)


async def cancel_asked(context: EngineContext) -> bool:
    """Cancel what somebody asked for, or what was given up, a bounded number; return whether money went back.

    Raises SignerUnavailableError: then nothing was cancelled that is not cancelled the next time.
    """
    now, chain_scope = context.clock.now(), context.chain_scope
    async with context.db.autocommit() as conn:
        asked = await cancel_store.cancelling(conn, chain_scope, now, CANCELLED_AT_ONCE_MAX)
    if not asked:
        return False
    # No lock is held meanwhile: since the mark, nobody but us does anything with them.
    told = await context.signer.void(chain_scope.mode, chain_scope.info.id, [one.update.reference for one in asked])
    signed = {intent.id: voided for intent, voided in zip(asked, told, strict=True) if not voided.is_unsigned}
    dead = await _proven_dead(context, [one for one in asked if one.id in signed], signed)
    # What was proven to be dead may be so no more: a reorg that is deeper than any proof gives a nonce back.
    mined, free = await taken_back(context, [one for one in asked if one.id in dead and signed[one.id].tx_id is None])
    asked = [one for one in asked if one.id not in mined]
    unproven = [one for one in asked if one.id in signed and one.id not in dead - free]
    given_back = await _give_back(context, [one for one in asked if one not in unproven])
    settled = await settle_named(context, unproven, signed, partial(_end, context))
    for intent in unproven:
        if intent.id not in settled:
            await _keep(context, intent, signed[intent.id])
    return given_back > 0 or bool(settled)


async def give_back(
    conn: AsyncConnection, handlers: IntentHandlers, intents: Sequence[IntentRow], now: datetime, lock: LockAccounts
) -> int:
    """End those that are still to be cancelled, and return how many; the caller holds the chain's cursor.

    Nothing of them was ever signed, or all of it is dead. ``lock`` locks the accounts that handlers post to.
    """
    still = await cancel_store.lock_cancelling(conn, intents)
    ended = [one for one in intents if one.id in still]
    if not ended:
        return 0
    await lock(conn, [one.update for one in ended])
    by_reason: dict[tuple[str, bool], list[IntentRow]] = {}
    for one in ended:
        by_reason.setdefault(_why(one), []).append(one)
    for (reason, was_cancelled), some in by_reason.items():
        await finality_store.finish(conn, some, "failed", reason, now)
        updates = [structs.replace(one.update, reason=reason, was_cancelled=was_cancelled) for one in some]
        await handlers.on_failed(conn, updates, now)
    return len(ended)


def _why(intent: IntentRow) -> tuple[str, bool]:
    """Return the sentence that says why it ends, and whether that is because somebody asked for it."""
    if intent.given_up_reason is not None:
        # What is given up fails, unless a person has denied it.
        return intent.given_up_reason, intent.cancel_asked_by is AskedBy.OPERATOR
    return REASONS[intent.cancel_asked_by or AskedBy.PLATFORM], True


async def _give_back(context: EngineContext, intents: Sequence[IntentRow]) -> int:
    if not intents:
        return 0
    async with context.db.transaction() as conn:
        await lock_cursor(conn, *context.chain_scope.key)
        return await _end(context, conn, *intents)


async def _end(context: EngineContext, conn: AsyncConnection, *intents: IntentRow) -> int:
    return await give_back(conn, context.handlers, intents, context.clock.now(), partial(_lock, context))


async def _lock(context: EngineContext, conn: AsyncConnection, updates: Sequence[IntentUpdate]) -> None:
    await lock_spending(conn, context.chain_scope.mode, updates)


async def _keep(context: EngineContext, intent: IntentRow, signed: Voided) -> None:
    """Keep the money of what may have been sent after all, and look for a proof later.

    A nonce that nobody has used yet is used by a transfer of nothing: then what was signed for it is dead.
    """
    now = context.clock.now()
    if intent.reason == WAITS_FOR_PROOF and signed.tx_id is None and signed.slot_number is not None:
        await _use_nonce(context, intent, signed.slot_number)
    async with context.db.transaction() as conn:
        fresh = await context.defer(conn, [intent], WAITS_FOR_PROOF, now + PROOF_PAUSE, now)
        if fresh:
            await cancel_store.note_signed(conn, intent, signed)
    if fresh:
        facts = {"reference": intent.update.reference, "sender": signed.sender, "sequence": signed.slot_number}
        context.alert("cancel_unproven", **facts, tx_id=signed.tx_id)


async def _use_nonce(context: EngineContext, intent: IntentRow, sequence: int) -> None:
    """Ask for a transfer of nothing under each nonce up to this one that none of ours ever had."""
    try:
        mined = await mined_count(context, intent.source)
    except ChainError as error:
        log.warning("nonce_unknown", chain=context.chain_scope.info.id, error=str(error))
        return
    if mined is not None and mined <= sequence:
        await fill_gaps(context, intent.source, mined, sequence + 1)


async def _proven_dead(context: EngineContext, intents: Sequence[IntentRow], signed: Mapping[int, Voided]) -> set[int]:
    """Return those of which nothing that was signed can ever be mined: by what the database knows, or the chain."""
    dead: set[int] = set()
    dated: dict[int, Dated] = {}
    if not intents:
        return dead
    async with context.db.autocommit() as conn:
        for intent in intents:
            voided = signed[intent.id]
            if voided.sender != intent.source.address or voided.slot_number is None:
                continue
            if voided.tx_id is None:
                if await _is_nonce_used(conn, context, intent, voided.slot_number):
                    dead.add(intent.id)
            elif voided.tx_id in await cancel_store.dead_txs(conn, intent):
                dead.add(intent.id)
            else:
                dated[intent.id] = Dated(tx_id=voided.tx_id, valid_until=voided.slot_number)
    return dead | await _expired(context, dated)


async def _is_nonce_used(conn: AsyncConnection, context: EngineContext, intent: IntentRow, sequence: int) -> bool:
    """Whether something else was mined under this nonce: what is not ours, or another transfer of ours, deep."""
    use = await store.slot_use(conn, context.chain_scope, intent.source.pk, sequence)
    if use is None:
        return False
    return use.state == "dead" if use.intent_pk == intent.id else use.state in MINED_STATES


async def _expired(context: EngineContext, dated: Mapping[int, Dated]) -> set[int]:
    if not dated:
        return set()
    try:
        answers = await context.expired(list(dated.values()))
    except ChainError as error:
        log.warning("expiry_unproven", chain=context.chain_scope.info.id, txs=len(dated), error=str(error))
        return set()
    return {pk for pk, is_dead in zip(dated, answers, strict=True) if is_dead}
