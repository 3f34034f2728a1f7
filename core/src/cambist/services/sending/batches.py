"""Sends the intents that wait: one sender at a time, planned, funded, given nonce slots, signed, stored, broadcast."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct, structs

from cambist.domain import allocation
from cambist.domain.allocation import Allocation, Funding, PendingOutflow
from cambist.domain.failures import SENTENCES, Failure
from cambist.domain.intents import CANCELLABLE, IntentKind
from cambist.plugin import ChainUnavailableError, FeeAboveCeilingError, Plan, Token
from cambist.services.addresses.wallets import OwnAddress
from cambist.services.receiving.deposits.rows import lock_cursor
from cambist.signer.protocol import SignerUnavailableError

from . import finality_store, store
from .cancelling import cancel_asked
from .context import EngineContext
from .failures import Failures
from .gas.funding import what_is_left
from .gas.loans import keep_lent
from .giving_way import Failed, Tried, end_rest, forget_gone, give_way, note_rest
from .handler import updated
from .intents import WAITS_FOR_CANCELLATION, mark_given_up
from .nonce_slots import Ready, reserve_again, reserve_and_sign
from .rests import Rests
from .rows import IntentRow, OwnPath
from .shortages import GAS_PAUSE, WAITS_FOR_GAS, let_wait

FEE_PAUSE = timedelta(seconds=15)
CALL_PAUSE = timedelta(seconds=5)
SUSPENDED_PAUSE = timedelta(minutes=10)
SHORT_PATIENCE = timedelta(minutes=10)
SILENCE = (ChainUnavailableError, SignerUnavailableError)
SILENT_SENDERS_MAX = 3
"""Senders of a tick whose chain or signer may fail to answer before the rest is left to the next tick."""
SENDER_TIMEOUT_S = 35.0
"""How long one sender may take: after judging deposits there is time for one that hangs, and then it gives way."""
REFERENCES_MAX = 20
"""Intents that are named in the log where all of them fail together."""

SHORT = SENTENCES[Failure.ADDRESS_SHORT]

WAITS_FOR_FEES = "fees_above_ceiling"
WAITS_FOR_CALL = "call"
WAITS_FOR_OPERATOR = "paused"
WAITS_FOR_REINSTATEMENT = "merchant_suspended"


async def send_waiting(context: EngineContext, failures: Failures, rests: Rests, station: OwnAddress) -> bool:
    """Send one batch of each sender; return True if more intents could be sent at once.

    What is raised about one sender is noted, and keeps none of the others from sending. An outage of the chain or the
    signer is met by all of them, and ends this after ``SILENT_SENDERS_MAX``. ``rests`` says who comes last.
    """
    now = context.clock.now()
    async with context.db.autocommit() as conn:
        waiting, is_any_held = await store.waiting_and_held(conn, context.chain_scope, now, context.settings.batch_max)
    if is_any_held:
        async with context.db.transaction() as conn:
            held = await store.held_back(conn, context.chain_scope, now, context.settings.batch_max)
            await context.defer(conn, held, WAITS_FOR_REINSTATEMENT, now + SUSPENDED_PAUSE, now, keeps_retry=True)
    by_sender: dict[int, list[IntentRow]] = {}
    for intent in waiting:
        by_sender.setdefault(intent.source.pk, []).append(intent)
    rests.forget_past(now)
    more, met, is_alone = False, list[Exception](), len(by_sender) == 1
    for source_pk in rests.in_order(by_sender):
        intents, until = by_sender[source_pk], rests.until(source_pk, now)
        source = intents[0].source
        if until is not None and not is_alone:
            if await context.is_paused():
                more = True
                break
            # What is new of a sender that rests waits: were it tried at once, whoever asks often would fail every tick.
            # What an operator has tried again is tried all the same.
            await give_way(context, source, until)
            intents = [one for one in intents if one.is_retried]
            if not intents:
                continue
        found = await _try(context, failures, rests, intents, station)
        if found.is_paused:
            more = True
            break
        await note_rest(context, rests, source, found, met=met, is_alone=is_alone)
        if until is not None and await end_rest(context, rests, source, until):
            found.more = True
        more |= found.more
        met += [one.error for one in found.failed]
        if sum(isinstance(error, SILENCE) for error in met) >= SILENT_SENDERS_MAX:
            break
    return more


class _Asked(Struct):
    """Which intents the chain was asked to plan together, and whether it answered; or that sending is paused."""

    intents: Sequence[IntentRow] = ()
    is_answered: bool = False
    is_paused: bool = False


async def _try(
    context: EngineContext, failures: Failures, rests: Rests, intents: Sequence[IntentRow], station: OwnAddress
) -> Tried:
    """Send what can be sent of one sender: together, or after failures one by one until the chain or signer is silent.

    One more is begun as long as it has half of the sender's time.
    """
    source, loop = intents[0].source, asyncio.get_running_loop()
    await forget_gone(context, rests, source.pk)
    groups, found, deadline = rests.groups(source.pk, intents), Tried(), loop.time() + SENDER_TIMEOUT_S
    for number, group in enumerate(groups):
        if number and loop.time() > deadline - SENDER_TIMEOUT_S / 2:
            break
        asked = _Asked()
        try:
            async with asyncio.timeout_at(deadline):
                found.more |= await _send_from(context, group, station, asked)
        except Exception as error:  # noqa: BLE001  a plugin may raise anything; it is raised when the rest is sent
            failed = asked.intents or group
            references = [one.update.reference for one in failed[:REFERENCES_MAX]]
            failures.note("sending_failed", error, address=source.address, references=references)
            found.failed.append(Failed(failed, error))
            if isinstance(error, (*SILENCE, TimeoutError)):
                break
        else:
            if asked.is_paused:
                found.is_paused = number == 0
                break
            if asked.is_answered:
                found.planned.update(one.id for one in asked.intents)
    found.more |= bool(found.planned) and not found.failed and sum(map(len, groups)) < len(intents)
    return found


async def _send_from(context: EngineContext, intents: Sequence[IntentRow], station: OwnAddress, asked: _Asked) -> bool:
    """Return whether more of them could be sent at once. ``asked`` is told what the chain is asked for.

    Where sending is paused nothing is begun: that is read with what is left, right before each batch.
    """
    source, now = intents[0].source, context.clock.now()
    async with context.db.autocommit() as conn:
        left = await what_is_left(conn, context, source, now)
    outflow, gas = left.outflow, left.gas
    if left.is_paused:
        asked.is_paused = True
        return False
    room = context.settings.in_flight_max - outflow.slots
    if room <= 0:
        # What is under way may be waiting for just these.
        intents = [intent for intent in intents if intent.update.kind == IntentKind.REPAIR]
        room = len(intents)
    if not intents:
        return False
    balance = allocation.spendable_balance(
        await _held(context, source, intents),
        outflow,
        gas.units,
        kept=gas.kept,
        balances_count_waiting=context.chain.balances_count_waiting,
    )
    funding = await _called(context, allocation.fund(intents, balance, room), now)
    if left.is_returning:
        funding = await _plannable(context, source, funding, now)
    asked.intents = funding.funded
    # After a loan to it has failed, nobody lends to it for a while, so that it pays instead.
    sponsor = None if left.has_loan_failed else station.address
    allocated = await _allocate(context, source, funding, outflow, sponsor)
    asked.is_answered = True
    given_up = [] if outflow.slots else _given_up(source, funding.short, now)
    short = [intent for intent in funding.short if intent not in given_up]
    await _fail(context, [*allocated.refused, *((intent, SHORT) for intent in given_up)])
    await let_wait(context, source, funding, allocated, short, station=station, is_gas_coming=left.is_gas_coming)
    if not allocated.ready:
        return False
    sent, unreached = await _send(context, source, allocated.ready, left.next_sequence)
    considered = len(funding.funded) + len(short) + len(funding.maybe_spent)
    return unreached or (sent == len(funding.funded) and len(intents) > considered)


async def _send(context: EngineContext, source: OwnPath, ready: Sequence[Ready], ours: int) -> tuple[int, bool]:
    """Return how many were signed, and whether a refusal kept others back that can be asked for at once."""
    reserved = await reserve_and_sign(context, source, ready, ours)
    await context.broadcast(reserved.signed)
    if reserved.impossible is not None:
        await _fail(context, [reserved.impossible])
    if reserved.signed_before is not None:
        await context.broadcast(await reserve_again(context, source, reserved.signed_before))
    return len(reserved.signed), reserved.unreached


async def _held(context: EngineContext, source: OwnPath, intents: Sequence[IntentRow]) -> dict[str | None, int]:
    tokens: dict[str | None, Token] = {None: context.chain_scope.info.native}
    tokens |= {intent.contract: intent.token for intent in intents}
    held = await context.chain.balances([(source.address, token) for token in tokens.values()])
    return dict(zip(tokens, held, strict=True))


async def _called(context: EngineContext, funding: Funding[IntentRow], now: datetime) -> Funding[IntentRow]:
    """Return the intents whose call is known, if they make one. The others have their units, and wait for it.

    Calls are built outside of the engine, right before they are signed, since they are out of date soon.
    """
    uncalled = [intent for intent in funding.funded if intent.lacks_call(now)]
    if not uncalled:
        return funding
    async with context.db.transaction() as conn:
        await context.defer(conn, uncalled, WAITS_FOR_CALL, now + CALL_PAUSE, now, keeps_retry=True)
    return structs.replace(funding, funded=[intent for intent in funding.funded if not intent.lacks_call(now)])


async def _plannable(
    context: EngineContext, source: OwnPath, funding: Funding[IntentRow], now: datetime
) -> Funding[IntentRow]:
    """Return the intents that can be planned now. While a loan is being returned, none: plans might count on it."""
    if not funding.funded or await keep_lent(context, source):
        return funding
    async with context.db.transaction() as conn:
        await context.defer(conn, funding.funded, WAITS_FOR_GAS, now + GAS_PAUSE, now, keeps_retry=True)
    return structs.replace(funding, funded=[])


async def _allocate(
    context: EngineContext,
    source: OwnPath,
    funding: Funding[IntentRow],
    outflow: PendingOutflow,
    sponsor: str | None,
) -> Allocation[IntentRow]:
    if not funding.funded:
        return allocation.allocate(source.purpose, funding, [])
    promised = {source.address: outflow.covered} if outflow.slots else {}
    requests = [intent.chain_intent for intent in funding.funded]
    try:
        plans = await context.chain.plan(requests, sponsor=sponsor, promised=promised)
    except FeeAboveCeilingError as error:
        plans = [Plan(above_ceiling=str(error))] * len(requests)
    allocated = allocation.allocate(source.purpose, funding, plans)
    if allocated.above_ceiling:
        intents, reasons = zip(*allocated.above_ceiling, strict=True)
        now = context.clock.now()
        async with context.db.transaction() as conn:
            fresh = await context.defer(conn, intents, WAITS_FOR_FEES, now + FEE_PAUSE, now)
        if fresh:
            context.alert("fees_above_ceiling", waiting=fresh, error=reasons[0])
    return allocated


def _given_up(source: OwnPath, short: Sequence[IntentRow], now: datetime) -> Sequence[IntentRow]:
    """Return the collections of what is not there, although nothing is pending: others can be asked for instead.

    A token that keeps a share of each transfer is one reason. The deposits are tried again, later.
    """
    if source.purpose not in allocation.RECEIVING:
        return []
    return [intent for intent in short if now - intent.created_at >= SHORT_PATIENCE]


async def _fail(context: EngineContext, refused: Sequence[tuple[IntentRow, str]]) -> None:
    """Give up what never can be sent, each for its reason.

    Merchants' money goes back as when somebody cancels it: the database may be out of a backup, so that the signer is
    asked first what it has signed. What is the gateway's own just ends.
    """
    if not refused:
        return
    reasons = {intent.id: reason for intent, reason in refused}
    async with context.db.transaction() as conn:
        await lock_cursor(conn, *context.chain_scope.key)
        still = await store.lock_waiting(conn, [intent for intent, _ in refused])
        ended = [intent for intent, _ in refused if intent.id in still]
        now = context.clock.now()
        for intent in ended:
            if intent.update.kind not in CANCELLABLE:
                await finality_store.finish(conn, [intent], "failed", reasons[intent.id], now)
                await context.handlers.on_failed(conn, [updated(intent.update, reason=reasons[intent.id])], now)
        given_up = [intent for intent in ended if intent.update.kind in CANCELLABLE]
        if given_up:
            await mark_given_up(conn, {intent.id: reasons[intent.id] for intent in given_up}, now)
            waiting = [updated(intent.update, reason=WAITS_FOR_CANCELLATION) for intent in given_up]
            await context.handlers.on_waiting(conn, waiting, now)
    for intent in ended:
        context.alert("refused", reference=intent.update.reference, reason=reasons[intent.id])
    if given_up:
        await cancel_asked(context)
