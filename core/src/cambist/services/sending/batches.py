"""Sends the intents that wait: one sender at a time, planned, funded, given nonce slots, signed, stored, broadcast."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain import allocation
from cambist.domain.allocation import Allocation, Funding, PendingOutflow
from cambist.domain.failures import SENTENCES, Failure
from cambist.domain.intents import CANCELLABLE, WAITS_FOR_TURN, IntentKind
from cambist.plugin import ChainUnavailableError, FeeAboveCeilingError, Plan, Token
from cambist.services.addresses.wallets import OwnAddress
from cambist.services.chains.sendable import not_sendable
from cambist.services.receiving.deposits.rows import lock_cursor
from cambist.signer.protocol import SignerUnavailableError

from . import defer_store, finality_store, store
from .cancelling import cancel_asked
from .context import EngineContext
from .failures import Failures
from .gas.funding import ask_for_gas, what_is_left
from .gas.loans import ask_for_loan, keep_lent, sponsor_of
from .giving_way import Failed, Tried, end_rest, forget_gone, give_way, note_rest
from .handler import updated
from .intents import WAITS_FOR_CANCELLATION, mark_given_up
from .nonce_slots import Ready, reserve_again, reserve_and_sign
from .rests import Rests
from .rows import IntentRow, OwnPath

GAS_PAUSE = timedelta(seconds=1)
FUNDS_PAUSE = timedelta(seconds=2)
EMPTY_STATION_PAUSE = timedelta(seconds=15)
FEE_PAUSE = timedelta(seconds=15)
REFUSED_PAUSE = timedelta(seconds=60)
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

WAITS_FOR_FUNDS = "collection"
WAITS_FOR_GAS = "gas"
WAITS_FOR_STATION = "gas_station_empty"
WAITS_FOR_FEES = "fees_above_ceiling"
WAITS_FOR_CALL = "call"
WAITS_FOR_OPERATOR = "paused"
WAITS_FOR_REINSTATEMENT = "merchant_suspended"
WAITS_FOR_SIGNERS_FILE = "token_not_sendable"

_SHORTAGE = {
    "gas": (WAITS_FOR_STATION, EMPTY_STATION_PAUSE),
    "wallet": (WAITS_FOR_FUNDS, FUNDS_PAUSE),
    "payment": (WAITS_FOR_FUNDS, REFUSED_PAUSE),
    "account": (WAITS_FOR_FUNDS, REFUSED_PAUSE),
}


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
        if await context.is_paused():
            more = True
            break
        intents, until = by_sender[source_pk], rests.until(source_pk, now)
        source = intents[0].source
        if until is not None and not is_alone:
            # What is new of a sender that rests waits: were it tried at once, whoever asks often would fail every tick.
            # What an operator has tried again is tried all the same.
            await give_way(context, source, until)
            intents = [one for one in intents if one.is_retried]
            if not intents:
                continue
        found = await _try(context, failures, rests, intents, station)
        await note_rest(context, rests, source, found, met=met, is_alone=is_alone)
        if until is not None and await end_rest(context, rests, source, until):
            found.more = True
        more |= found.more
        met += [one.error for one in found.failed]
        if sum(isinstance(error, SILENCE) for error in met) >= SILENT_SENDERS_MAX:
            break
    return more


class _Asked(Struct):
    """Which intents the chain was asked to plan together, and whether it answered."""

    intents: Sequence[IntentRow] = ()
    is_answered: bool = False


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
        if number and (loop.time() > deadline - SENDER_TIMEOUT_S / 2 or await context.is_paused()):
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
            if asked.is_answered:
                found.planned.update(one.id for one in asked.intents)
    found.more |= bool(found.planned) and not found.failed and sum(map(len, groups)) < len(intents)
    return found


async def _send_from(context: EngineContext, intents: Sequence[IntentRow], station: OwnAddress, asked: _Asked) -> bool:
    """Return whether more of them could be sent at once. ``asked`` is told what the chain is asked for."""
    source, now = intents[0].source, context.clock.now()
    async with context.db.autocommit() as conn:
        outflow, gas = await what_is_left(conn, context, source)
        sponsor = await sponsor_of(conn, context, source, station, now)
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
    funding = await _plannable(context, source, funding, now)
    asked.intents = funding.funded
    allocated = await _allocate(context, source, funding, outflow, sponsor)
    asked.is_answered = True
    given_up = [] if outflow.slots else _given_up(source, funding.short, now)
    short = [intent for intent in funding.short if intent not in given_up]
    await _store_waiting(context, source, funding, allocated, short=short, given_up=given_up)
    if not allocated.ready:
        return False
    sent, unreached = await _send(context, source, allocated.ready)
    considered = len(funding.funded) + len(short) + len(funding.maybe_spent)
    return unreached or (sent == len(funding.funded) and len(intents) > considered)


async def _send(context: EngineContext, source: OwnPath, ready: Sequence[Ready]) -> tuple[int, bool]:
    """Return how many were signed, and whether a refusal kept others back that can be asked for at once."""
    reserved = await reserve_and_sign(context, source, ready)
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


async def _store_waiting(  # noqa: PLR0913  each by name
    context: EngineContext,
    source: OwnPath,
    funding: Funding[IntentRow],
    allocated: Allocation[IntentRow],
    *,
    short: Sequence[IntentRow],
    given_up: Sequence[IntentRow],
) -> None:
    """Fail what is refused, and let the others wait for what they lack."""
    await _fail(context, [*allocated.refused, *((intent, SHORT) for intent in given_up)])
    now = context.clock.now()
    is_station = source.purpose == "gas"
    maybe_spent = [*funding.maybe_spent, *allocated.maybe_spent]
    needs_gas = [intent for intent, _ in allocated.needs_gas]
    needs_loan = [intent for intent, _ in allocated.needs_loan]
    gas_reason, gas_pause = (WAITS_FOR_STATION, EMPTY_STATION_PAUSE) if is_station else (WAITS_FOR_GAS, GAS_PAUSE)
    reason, pause = _SHORTAGE[source.purpose]
    lacking = 0
    if not is_station:
        lacking = allocation.gas_needed(
            source.purpose,
            [fee for _, fee in allocated.needs_gas],
            allocated.left,
            short_of_native=any(intent.contract is None for intent in short),
            wallet_transfers=context.settings.wallet_gas_transfers,
        )
    if not (maybe_spent or short or needs_gas or needs_loan or lacking > 0):
        return
    async with context.db.transaction() as conn:
        await defer_store.lock(conn, [*maybe_spent, *short, *needs_gas, *needs_loan])
        await context.defer(conn, maybe_spent, WAITS_FOR_TURN, now + GAS_PAUSE, now, keeps_retry=True)
        unknown = await _unknown_to_signer(conn, context, short)
        await context.defer(conn, unknown, WAITS_FOR_SIGNERS_FILE, now + REFUSED_PAUSE, now)
        await context.defer(conn, [one for one in short if one not in unknown], reason, now + pause, now)
        if lacking > 0 and not await ask_for_gas(conn, context, source, lacking, now):
            gas_pause = REFUSED_PAUSE
        fresh = await context.defer(conn, needs_gas, gas_reason, now + gas_pause, now)
        if needs_loan:
            await context.defer(conn, needs_loan, WAITS_FOR_GAS, now + GAS_PAUSE, now)
            await ask_for_loan(conn, context, source, sum(stake for _, stake in allocated.needs_loan), now)
    if is_station and (waiting := fresh + len(short)):
        context.alert("gas_station_empty", waiting=waiting, address=source.address)


async def _unknown_to_signer(
    conn: AsyncConnection, context: EngineContext, short: Sequence[IntentRow]
) -> Sequence[IntentRow]:
    """Return those whose token is not collected either, since it does not stand in the signer's file yet."""
    contracts = {one.contract for one in short if one.contract is not None}
    if not contracts or context.chain_scope.mode != "live":
        return []
    unknown = await not_sendable(conn, context.chain_scope.info.id, sorted(contracts))
    return [one for one in short if one.contract in unknown]


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
