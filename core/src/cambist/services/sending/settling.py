"""Ends what may have been sent by the transaction that used its nonce: an operator names it, and the engine proves it.

The operator says only where to look. What the transaction is, is read out of the bytes that were signed: they make its
id and carry its sender's signature. That it was mined, all endpoints that answer must say alike, and more than one
where there are several; that its block stays, the watcher's chain says. Where it is the transfer itself, which the
database has forgotten, it is stored, and finished as any other. Where it is something else, what was signed under its
nonce can never be mined, and the money goes back. Anything less than that changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import structlog
from msgspec import structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import EXCHANGING
from cambist.domain.refusals import SENTENCES, WishRefusal
from cambist.plugin import ChainError, FoundTx, Movement, UnreadablePayloadError
from cambist.services.audit.entries import GATEWAY, Action, record
from cambist.services.receiving.deposits.rows import lock_cursor
from cambist.signer.protocol import Voided

from . import cancel_store, settle_store
from .context import EngineContext
from .rows import IntentRow
from .settle_store import Mined

UNKNOWN = SENTENCES[WishRefusal.UNKNOWN_TX]
OF_ANOTHER_SENDER = SENTENCES[WishRefusal.OTHER_SENDER]
OF_ANOTHER_NONCE = SENTENCES[WishRefusal.OTHER_NONCE]
NOT_THE_SIGNED_ONE = SENTENCES[WishRefusal.NOT_THE_SIGNED_TX]
UNCLEAR = SENTENCES[WishRefusal.UNCLEAR]
WAITS_FOR_WITNESSES = SENTENCES[WishRefusal.LOOKED_AT_AGAIN]

Nature: TypeAlias = Literal["own", "other", "unclear"]
GiveBack: TypeAlias = Callable[[AsyncConnection, IntentRow], Awaitable[int]]

log = structlog.get_logger(__name__)


async def settle_named(
    context: EngineContext, intents: Sequence[IntentRow], signed: Mapping[int, Voided], give_back: GiveBack
) -> set[int]:
    """Look at the transactions that operators have named; return the intents that they end."""
    if not intents:
        return set()
    async with context.db.autocommit() as conn:
        named = await settle_store.named(conn, intents)
    return {
        intent.id
        for intent in intents
        if intent.id in named and await _settle(context, intent, signed[intent.id], named[intent.id], give_back)
    }


async def _settle(context: EngineContext, intent: IntentRow, signed: Voided, tx_id: str, give_back: GiveBack) -> bool:
    """Return whether it ends. Where it is not mined, not final, or endpoints do not agree, it is looked at again.

    Whatever a plugin stumbles over, by an operator's free text or a stranger's bytes, ends nothing but this attempt.
    """
    own = intent.update
    try:
        mined = await _find_mined(context, tx_id)
    except ChainError as error:
        log.warning(
            "settling_waits", chain=context.chain_scope.info.id, reference=own.reference, tx_id=tx_id, error=str(error)
        )
        return await _wait(context, intent, tx_id, WAITS_FOR_WITNESSES)
    except Exception:
        log.exception("settling_failed", reference=own.reference, tx_id=tx_id)
        return await _refuse(context, intent, tx_id, UNKNOWN)
    refusal = UNKNOWN if mined is None else _foreign(intent, signed, mined.found)
    if mined is None or refusal is not None:
        return await _refuse(context, intent, tx_id, refusal)
    if mined.status.block is None:
        return await _wait(context, intent, tx_id, None)
    nature = await _nature(context, intent, signed, mined)
    async with context.db.transaction() as conn:
        await lock_cursor(conn, *context.chain_scope.key)
        if not await settle_store.is_final(conn, context.chain_scope, mined):
            await settle_store.note_waiting(conn, intent, tx_id, None, context.clock.now())
            return False
        if await settle_store.owner_of(conn, context.chain_scope, mined.found.tx.tx_id) not in {None, intent.id}:
            # Two that are alike in all: the one that has it was sent, and this one was not.
            nature = "other"
        if nature != "unclear":
            ended = await (give_back(conn, intent) if nature == "other" else _remember(conn, context, intent, mined))
            if not ended:
                # Another engine is at it.
                return False
            await settle_store.note(conn, intent, tx_id, None, context.clock.now())
            told = {"chain": own.chain, "tx_hash": mined.found.tx.tx_id, "found": nature}
            subject = await settle_store.public_id(conn, intent)
            await record(conn, GATEWAY, Action.SETTLED, context.clock.now(), subject=subject, details=told)
    if nature == "unclear":
        return await _refuse(context, intent, tx_id, UNCLEAR)
    log.warning("settled", reference=own.reference, tx_id=mined.found.tx.tx_id, nature=nature)
    return True


async def _find_mined(context: EngineContext, tx_id: str) -> Mined | None:
    """Return the transaction and what became of it, None where nobody knows it. Raises ChainError."""
    found = await context.chain.find_tx(tx_id)
    if found is None:
        return None
    status = await context.chain.witnessed(found.tx.tx_id)
    if status.block is not None:
        # The watcher has forgotten the hashes of old blocks.
        async with context.chain.view() as view:
            seen = await view.block(status.block.height)
        if seen.hash != status.block.hash:
            raise ChainError(f"{found.tx.tx_id} is said to be in a block {seen.height} that is not the chain's")
    if status.block is not None and found.sequence is not None:
        used = await context.chain.next_sequence(found.sender)
        if used is None or used <= found.sequence:
            raise ChainError(f"{found.tx.tx_id} is said to be mined, and its nonce not to be used")
    return None if status.state == "unknown" else Mined(found=found, status=status)


def _foreign(intent: IntentRow, signed: Voided, found: FoundTx) -> str | None:
    """Return why it says nothing of what was signed, None where it does: it has the same nonce, or is the same."""
    source = intent.source.address
    if found.sender != source or signed.sender != source:
        other = found.sender if found.sender != source else signed.sender
        return OF_ANOTHER_SENDER.format(found=other, wanted=source)
    if signed.tx_id is not None:
        return None if found.tx.tx_id == signed.tx_id else NOT_THE_SIGNED_ONE.format(wanted=signed.tx_id)
    if found.sequence != signed.slot_number:
        return OF_ANOTHER_NONCE.format(found=found.sequence, wanted=signed.slot_number)
    return None


async def _nature(context: EngineContext, intent: IntentRow, signed: Voided, mined: Mined) -> Nature:
    """Tell whether it is the transfer of the intent, by what was signed and by nothing else.

    A call is an exchange's where it does what the exchange was promised, as its provider's reader tells: it was built
    by then otherwise than it would be now. Where it failed it has moved nothing, whatever it is.
    """
    if signed.tx_id is not None:
        return "own"
    own = intent.update
    try:
        effects = context.family.effects(context.chain_scope.info, mined.found.payload)
    except UnreadablePayloadError:
        return "unclear"
    except Exception:
        log.exception("settling_failed", reference=own.reference, tx_id=mined.found.tx.tx_id)
        return "unclear"
    if own.kind in EXCHANGING:
        if effects.call is None or mined.status.state != "succeeded":
            return "other"
        async with context.db.transaction() as conn:
            is_own = await context.handlers.recognizes(conn, own, effects.call)
        return "unclear" if is_own is None else "own" if is_own else "other"
    if effects.call is not None:
        # A token that is registered no more is called as any contract is.
        return "unclear" if effects.call.to_address == own.contract else "other"
    wanted = Movement(contract=own.contract, recipient=own.to_address, amount=own.units, tag=intent.tag)
    return "own" if effects.movements == (wanted,) else "other"


async def _remember(conn: AsyncConnection, context: EngineContext, intent: IntentRow, mined: Mined) -> int:
    if intent.id not in await cancel_store.lock_cancelling(conn, [intent]):
        return 0
    now = context.clock.now()
    await settle_store.remember(conn, context.chain_scope, intent, mined, now)
    update = structs.replace(intent.update, tx_id=mined.found.tx.tx_id, was_forgotten=True)
    await context.handlers.on_broadcast(conn, [update], now)
    return 1


async def _wait(context: EngineContext, intent: IntentRow, tx_id: str, why: str | None) -> bool:
    async with context.db.autocommit() as conn:
        await settle_store.note_waiting(conn, intent, tx_id, why, context.clock.now())
    return False


async def _refuse(context: EngineContext, intent: IntentRow, tx_id: str, refusal: str | None) -> bool:
    log.warning("settling_refused", reference=intent.update.reference, tx_id=tx_id, reason=refusal)
    async with context.db.autocommit() as conn:
        await settle_store.note(conn, intent, tx_id, refusal, context.clock.now())
    return False
