"""Reserves nonce slots for intents, has their transactions signed, and stores them: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain, count

import structlog
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import CANCELLABLE, AskedBy, IntentKind
from cambist.plugin import ChainError, Dated, SignedTx, Step, Unprepared
from cambist.signer.protocol import ALREADY_SIGNED, DENIED, VOIDED, SignReply

from . import gap_store, store
from .context import EngineContext
from .counts import WAITS_FOR_COUNT, NonceDoubtedError, mined_count
from .gas.loans import PATIENCE, retry_after
from .handler import updated
from .intents import internal_intent, is_coming, mark_cancelled, mark_denied, submit
from .reviving import revive, revive_vacated
from .rows import IntentRow, OwnPath
from .store import NewTx

REFUSED_PAUSE = timedelta(seconds=60)
REFUSED_MAX = timedelta(days=2)
"""When a signer is asked again at the latest. It may say a time of years ahead, where its clock was wrong once."""
GAPS_MAX = 20
MINED_STATES = ("done", "reverted", "cancelled")
"""States of a slot in which a transaction of ours was mined, deep in the chain."""

Ready = tuple[IntentRow, Step]

log = structlog.get_logger(__name__)


class SignedBefore(Struct, frozen=True):
    """An intent without a nonce that the signer has signed before, and the transaction that came of it."""

    ready: Ready
    refusal: SignReply
    tx: Dated


class Reserved(Struct, frozen=True, kw_only=True):
    """What can be broadcast now. ``unreached``: a refusal kept others back, which may be asked for at once.

    ``signed_before`` is set where that one may get another slot after all: see ``reserve_again``. ``impossible`` is the
    one that the chain could not prepare, and why.
    """

    signed: Sequence[SignedTx]
    unreached: bool
    signed_before: SignedBefore | None = None
    impossible: tuple[IntentRow, str] | None = None


class _Signed(Struct, kw_only=True):
    txs: list[NewTx]
    refusal: SignReply | None = None
    impossible: tuple[IntentRow, str] | None = None


async def reserve_and_sign(context: EngineContext, source: OwnPath, ready: Sequence[Ready], ours: int) -> Reserved:
    """Reserve a slot for each intent, sign, and store, all in one transaction: what is not stored is never broadcast.

    The first refusal ends it, for what stands behind would leave a gap. The signer signs an intent for one slot only.
    So one whose signature a crash has lost gets that very slot again, or another when something else of ours was mined
    there; without nonces, another once the lost one is proven to have expired. Else the database does not know what
    became of it, and a person must say that it may be sent. Where the chain's count of what the sender has sent is not
    believed, nothing is signed, and all of it waits; ``ours`` is the next nonce by our books. Raises ChainError.
    """
    try:
        mined = await mined_count(context, source, ours=ours)
    except NonceDoubtedError as error:
        await _doubt(context, source, [intent for intent, _ in ready], error)
        return Reserved(signed=[], unreached=False)
    return await _reserve(context, source, ready, mined, {})


async def _doubt(
    context: EngineContext, source: OwnPath, intents: Sequence[IntentRow], error: NonceDoubtedError
) -> None:
    now = context.clock.now()
    async with context.db.transaction() as conn:
        fresh = await context.defer(conn, intents, WAITS_FOR_COUNT, now + REFUSED_PAUSE, now)
    if fresh:
        facts = {"counted": error.counted, "unexplained": error.unexplained, "error": str(error)}
        context.alert(WAITS_FOR_COUNT, address=source.address, waiting=fresh, **facts)


async def reserve_again(context: EngineContext, source: OwnPath, signed_before: SignedBefore) -> Sequence[SignedTx]:
    """Sign what was signed before if that is proven to be dead, else defer it.

    The proof takes a while, so it is not made while others wait to be stored, or to be sent.
    """
    try:
        (is_dead,) = await context.expired([signed_before.tx])
    except ChainError as error:
        log.warning("expiry_unproven", chain=context.chain_scope.info.id, txs=1, error=str(error))
        is_dead = False
    intent = signed_before.ready[0]
    if is_dead:
        reserved = await _reserve(
            context, source, [signed_before.ready], None, {intent.id: [signed_before.tx.valid_until]}
        )
        return reserved.signed
    now = context.clock.now()
    async with context.db.transaction() as conn:
        await _defer(context, conn, intent, signed_before.refusal, now)
    return []


async def _reserve(
    context: EngineContext,
    source: OwnPath,
    ready: Sequence[Ready],
    mined: int | None,
    proven: Mapping[int, Sequence[int]],
) -> Reserved:
    now, chain_scope = context.clock.now(), context.chain_scope
    async with context.db.transaction() as conn:
        following = await store.lock_sender(conn, chain_scope, source.pk, mined)
        still = await store.lock_with_dead_slots(conn, [intent for intent, _ in ready], now - PATIENCE)
        ready = [(intent, step) for intent, step in ready if intent.id in still]
        dead = {**{pk: numbers for pk, numbers in still.items() if numbers is not None}, **proven}
        if mined is not None and dead:
            revived = await revive(context, conn, [intent for intent, _ in ready if intent.id in dead], mined)
            ready = [(intent, step) for intent, step in ready if intent.id not in revived]
        nonces: Sequence[int | None] = [None] * len(ready)
        vacated: Sequence[int] = []
        if mined is not None:
            gaps = await gap_store.gaps(conn, chain_scope, source.pk, mined, following, len(ready))
            repairs = sum(intent.update.kind is IntentKind.REPAIR for intent, _ in ready)
            if repairs:
                vacated = await gap_store.vacated(conn, chain_scope, source.pk, mined, following, repairs)
            nonces = _numbered(ready, gaps, vacated, following)
        found = await _sign(context, source, ready, nonces, dead)
        refused = len(found.txs)
        signed_before = None if proven or mined is not None else _signed_before(found.refusal, ready[refused:])
        if mined is not None and found.refusal is not None and found.refusal.refusal == ALREADY_SIGNED:
            again = await _retry_slot(context, conn, source, found, ready[refused], nonces[refused], mined)
            found = _Signed(txs=[*found.txs, *again.txs], refusal=again.refusal, impossible=again.impossible)
        if found.txs:
            used = [tx.sequence for tx in found.txs if tx.sequence is not None]
            following = max([following, *(sequence + 1 for sequence in used)])
            if vacated:
                await gap_store.give_up_vacated(conn, chain_scope, source.pk, used)
            await store.open_slots(conn, chain_scope, source.pk, found.txs, next_sequence=following, now=now)
            sent = [updated(tx.intent.update, tx_id=tx.signed.tx_id) for tx in found.txs]
            await context.handlers.on_broadcast(conn, sent, now)
        if found.refusal is not None and signed_before is None:
            await _defer(context, conn, ready[refused][0], found.refusal, now)
    return Reserved(
        signed=[tx.signed for tx in found.txs],
        unreached=refused + 1 < len(ready),
        signed_before=signed_before,
        impossible=found.impossible,
    )


def _numbered(
    ready: Sequence[Ready], gaps: Sequence[int], vacated: Sequence[int], following: int
) -> Sequence[int | None]:
    """Return each one's nonce: gaps first. What something else had used up before a reorg is for repairs alone.

    Whatever was signed there before may be mined after all, in place of a repair, which moves nothing.
    """
    free = chain(gaps, count(following))
    for_repairs = chain(vacated, free)
    return [next(for_repairs if intent.update.kind is IntentKind.REPAIR else free) for intent, _ in ready]


def _signed_before(refusal: SignReply | None, refused: Sequence[Ready]) -> SignedBefore | None:
    if refusal is None or refusal.refusal != ALREADY_SIGNED or refusal.slot_number is None or not refusal.tx_id:
        return None
    return SignedBefore(refused[0], refusal, Dated(tx_id=refusal.tx_id, valid_until=refusal.slot_number))


async def _sign(
    context: EngineContext,
    source: OwnPath,
    ready: Sequence[Ready],
    nonces: Sequence[int | None],
    dead: Mapping[int, Sequence[int]],
) -> _Signed:
    """Sign up to the first that the chain cannot prepare, or the signer refuses."""
    numbered = [(step, number) for (_, step), number in zip(ready, nonces, strict=True)]
    signed = _Signed(txs=[])
    items = []
    for (intent, _), tx in zip(ready, await context.prepare(source, numbered), strict=True):
        if isinstance(tx, Unprepared):
            signed.impossible = (intent, tx.reason)
            break
        items.append((intent, tx))
    for (intent, tx), reply in zip(items, await context.sign(items, dead), strict=False):
        if reply.signature is None:
            signed.refusal, signed.impossible = reply, None
            break
        signed.txs.append(
            NewTx(
                intent=intent,
                sequence=tx.sequence,
                signed=context.family.seal(tx, reply.signature),
                fee=tx.fee,
                valid_until=tx.valid_until,
            )
        )
    return signed


async def _retry_slot(  # noqa: PLR0913, PLR0917  each by name
    context: EngineContext,
    conn: AsyncConnection,
    source: OwnPath,
    found: _Signed,
    one: Ready,
    offered: int | None,
    mined: int,
) -> _Signed:
    """Sign for the slot that the signer remembers, or for the offered one where that one is proven to be used up."""
    refusal = found.refusal
    if refusal is None or refusal.slot_number is None:
        return _Signed(txs=[], refusal=refusal)
    intent, before = one[0], refusal.slot_number
    use = await store.slot_use(conn, context.chain_scope, source.pk, before)
    if use is None and before >= mined and all(tx.sequence != before for tx in found.txs):
        return await _sign(context, source, [one], [before], {})
    if use is not None and use.intent_pk != intent.id and use.state in MINED_STATES:
        return await _sign(context, source, [one], [offered], {intent.id: [before]})
    return _Signed(txs=[], refusal=refusal)


async def _defer(
    context: EngineContext, conn: AsyncConnection, intent: IntentRow, refusal: SignReply, now: datetime
) -> None:
    if refusal.refusal == DENIED and intent.update.kind in CANCELLABLE:
        await mark_denied(conn, intent.id, now)
        return
    if refusal.refusal == VOIDED and intent.update.kind in CANCELLABLE:
        # It was cancelled before, and the database, out of a backup, has forgotten that.
        await mark_cancelled(conn, intent.id, AskedBy.PLATFORM, now)
        return
    reason = f"signer: {refusal.refusal}"
    said_at = min(refusal.retry_at or now + REFUSED_PAUSE, now + REFUSED_MAX)
    due_at = max(said_at, retry_after(context, intent, now))
    if await context.defer(conn, [intent], reason, due_at, now):
        facts = {"code": refusal.refusal, "reason": refusal.reason, "retry_at": str(refusal.retry_at)}
        context.alert("signer_refused", reference=intent.update.reference, **facts)


async def fill_gaps(context: EngineContext, sender: OwnPath, mined: int, first: int) -> None:
    """Ask for a repair of each gap between what is mined and the first that waits, and tell the operator.

    What stands behind a gap can never be mined. None of ours leaves one: they come from nodes that counted too many,
    and from reorgs that took away what was not ours. What waits takes the nonce again that it had there. More gaps than
    the operator lets a node alone leave are not filled: each costs a transfer.
    """
    async with context.db.transaction() as conn:
        gaps = await gap_store.count_gaps(conn, context.chain_scope, sender.pk, mined, first)
        is_too_wide = gaps > context.settings.nonce_jump_max
        filled = 0 if is_too_wide else await _fill_gaps(conn, context, sender, mined, first)
    if is_too_wide:
        context.alert("gap_too_wide", address=sender.address, gaps=gaps, before=first)
    elif filled:
        context.alert("gap", address=sender.address, gaps=filled, before=first)


async def _fill_gaps(conn: AsyncConnection, context: EngineContext, sender: OwnPath, mined: int, first: int) -> int:
    """Ask for some repairs, unless there are some under way; return how many."""
    if await is_coming(conn, context.chain_scope, sender.pk, IntentKind.REPAIR):
        return 0
    await revive_vacated(context, conn, sender, mined, first)
    span = (context.chain_scope, sender.pk, mined, first, GAPS_MAX)
    found = [*await gap_store.gaps(conn, *span), *await gap_store.vacated(conn, *span)]
    repairs = [
        internal_intent(
            IntentKind.REPAIR,
            context.ids.new("fix"),
            context.chain_scope,
            merchant_pk=sender.merchant_pk,
            source_pk=sender.pk,
            recipient=sender,
            units=0,
        )
        for _ in found[:GAPS_MAX]
    ]
    await submit(conn, repairs, context.clock.now())
    return len(repairs)
