"""What an exchange needs before its call is sent: its turn, an allowance, a call that was tried, and no bad luck.

The engine has found the money and waits for the call. Then, as often as needed::

    build     the provider's call, read and compared
    turn      one exchange at a time for each wallet, token and spender
    simulate  allowance and call together, before anything is paid for
    allow     zero first where something is left, then just what the call takes
    store     the call, fresh: the engine signs it within half a minute, or asks for another
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy import and_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Exchange, OutboundIntent
from cambist.domain.exchanges import Kind, Step
from cambist.domain.failures import BEGINNINGS, SENTENCES, Failure
from cambist.domain.intents import WAITS_FOR_TURN, IntentKind
from cambist.plugin import Call, ChainError, ContractChain, Movement, Units
from cambist.plugin.text import printable
from cambist.services import platform
from cambist.services.addresses.wallets import gas_station
from cambist.services.platform import PlatformSettings
from cambist.services.sending.batches import WAITS_FOR_CALL, WAITS_FOR_REINSTATEMENT
from cambist.services.sending.finality_store import depth
from cambist.services.sending.intents import WAITS_FOR_CANCELLATION, NewIntent, mark_given_up, submit

from .calls import REASON_CHARS_MAX, Built, Never, NotNow, Refused, build, fee_difference
from .handler import OF_SIGNER, approval_reference
from .rows import CallIntent, ExchangeRow, lock, lock_call, save, save_on, when_idle
from .worker import ExchangeWorker

CALL_VALID = timedelta(seconds=30)
TURN_PAUSE = timedelta(seconds=2)
ALLOWANCE_PAUSE = timedelta(seconds=2)
RETRY_PAUSE = timedelta(seconds=15)
REFUSED_PAUSE = timedelta(seconds=30)
RETRY_MIN = timedelta(minutes=2)
"""Where the signer names a time that is later, waiting helps."""
HELD_UP_MAX = timedelta(days=14)
ATTEMPTS_MAX = 3
"""Trials that the provider or the chain may refuse, each with another call, before the exchange fails."""

TOO_LATE = SENTENCES[Failure.TOO_LATE]
WAITS_FOR_ALLOWANCE = "allowance"
WAITS_FOR_PROVIDER = "provider"

log = structlog.get_logger(__name__)


async def prepare_call(worker: ExchangeWorker, row: ExchangeRow) -> None:
    """Do what an exchange needs next whose call waits to be sent."""
    chain, now = worker.chain(row.source_chain), worker.clock.now()
    if row.intent_pk is None:
        raise AssertionError("live exchanges have an intent")
    async with worker.db.transaction() as conn:
        call = await lock_call(conn, row.intent_pk)
        row = await lock(conn, row.pk)
        if row.step is not Step.QUEUED:
            return
        if not call.is_wanted:
            await save(conn, row, now, due_at=when_idle(row.give_up_at, now))
            return
        if call.reason is not None and call.reason.startswith(OF_SIGNER):
            await _wait_for_signer(conn, row, call, now)
            return
        if now >= row.give_up_at:
            await _give_up(conn, row, TOO_LATE, now)
            return
        if call.is_suspended or call.reason != WAITS_FOR_CALL or chain is None:
            # The engine holds the call back, too, and asks for it anew once the merchant is reinstated.
            told = {"waits_for": WAITS_FOR_REINSTATEMENT} if call.is_suspended else {}
            await save(conn, row, now, due_at=when_idle(row.give_up_at, now), **told)
            return
        settings = await platform.load(conn)
    if row.spender is not None and not await _has_turn(worker, row, row.spender, now):
        return
    try:
        _check_switches(settings, row)
        await _prepare(worker, chain, row)
    except NotNow as error:
        pause = max(RETRY_PAUSE, timedelta(seconds=min(error.retry_after_s, 600)))
        log.warning("exchange_waits", txn_id=row.txn_id, reason=str(error))
        await _wait(worker, row, WAITS_FOR_PROVIDER, worker.clock.now() + pause, gives_turn_back=True)
    except Refused as error:
        await _refused(worker, row, error)


async def _refused(worker: ExchangeWorker, row: ExchangeRow, error: Refused) -> None:
    """Try it once more after a while, unless that is of no use, or it was refused often enough."""
    attempts, now = row.attempts + 1, worker.clock.now()
    log.warning("exchange_trial_refused", txn_id=row.txn_id, reason=str(error), attempts=attempts)
    if isinstance(error, Never) or attempts >= ATTEMPTS_MAX:
        await _fail(worker, row, str(error), now)
        return
    await _wait(worker, row, WAITS_FOR_PROVIDER, now + REFUSED_PAUSE, gives_turn_back=True, attempts=attempts)


async def _wait_for_signer(conn: AsyncConnection, row: ExchangeRow, call: CallIntent, now: datetime) -> None:
    """Leave an exchange that the signer holds up until its time is over.

    Where the signer says when, there is as much time after that as there was to begin with.
    """
    valid = row.give_up_at - row.created_at
    if now >= row.give_up_at and call.due_at <= now + RETRY_MIN:
        await _give_up(conn, row, f"{BEGINNINGS[Failure.SIGNER_REFUSED]}{call.reason}", now)
        return
    until = min(call.due_at + valid, row.created_at + HELD_UP_MAX)
    give_up_at = max(row.give_up_at, until) if call.due_at > now + RETRY_MIN else row.give_up_at
    await save(conn, row, now, due_at=when_idle(row.give_up_at, now), give_up_at=give_up_at, waits_for=call.reason)


def _check_switches(settings: PlatformSettings, row: ExchangeRow) -> None:
    """Raise NotNow for what the operator has switched off since it was asked for: nothing more of it is signed."""
    rule = settings.exchanges
    is_on = rule.swap_enabled if row.kind is Kind.SWAP else rule.bridge_enabled
    if not is_on or not rule.is_enabled(row.provider):
        raise NotNow(f"{row.kind}s by {row.provider} are switched off")


async def _has_turn(worker: ExchangeWorker, row: ExchangeRow, spender: str, now: datetime) -> bool:
    """Take the exchange's turn. The database refuses a second one for wallet, token and spender."""
    if row.has_turn:
        return True
    try:
        return await save_on(worker.db, row, now, has_turn=True, spender=spender)
    except IntegrityError:
        waits = {"waits_for": WAITS_FOR_TURN, "due_at": now + TURN_PAUSE}
        await save_on(worker.db, row, now, spender=spender, **waits)
        return False


async def _prepare(worker: ExchangeWorker, chain: ContractChain, row: ExchangeRow) -> None:
    if row.spender is not None and await _is_allowance_coming(worker, chain, row):
        now = worker.clock.now()
        await _wait(worker, row, WAITS_FOR_ALLOWANCE, now + ALLOWANCE_PAUSE)
        return
    async with worker.db.autocommit() as conn:
        station = await gas_station(conn, chain.info.family, row.mode)
    built = await build(worker, row, None if station is None else station.address)
    spender, now = built.effects.spender, worker.clock.now()
    if row.spender not in {None, spender}:
        worker.alert("spender_changed", row, spender=spender)
        raise NotNow(f"{row.provider} takes tokens by another contract now")
    if spender is not None and not await _has_turn(worker, row, spender, now):
        return
    allowances = await _missing_allowances(chain, row, built)
    await _try(chain, row, built, allowances, None if station is None else station.address)
    if allowances:
        await _allow(worker, row, spender or "", allowances[0])
    else:
        await _store(worker, row, built.call)


async def _is_allowance_coming(worker: ExchangeWorker, chain: ContractChain, row: ExchangeRow) -> bool:
    """Whether approvals are under way that the chain does not show yet. Raises Never where one has failed."""
    if not row.approvals:
        return False
    intent = OutboundIntent
    newest = intent.reference == approval_reference(row.txn_id, row.approvals - 1)
    async with worker.db.autocommit() as conn:
        one = (await conn.execute(select(intent.state, intent.reason, intent.units).where(newest))).one()
    if one.state == "failed":
        raise Never(f"{BEGINNINGS[Failure.ALLOWANCE_FAILED]}{one.reason}")
    if one.state == "done":
        return False
    # Mined is enough: what follows has a later nonce of the same sender, so that no reorg brings it before this.
    there = await _allowance(chain, row, str(row.spender))
    return there < one.units or (not one.units and there > 0)


async def _missing_allowances(chain: ContractChain, row: ExchangeRow, built: Built) -> list[Units]:
    """Return what must be approved, one after the other. Tokens such as USDT take no other amount before zero."""
    spender = built.effects.spender
    if spender is None:
        return []
    there = await _allowance(chain, row, spender)
    if there >= row.given:
        return []
    return [Units(0), row.given] if there else [row.given]


async def _allowance(chain: ContractChain, row: ExchangeRow, spender: str) -> Units:
    try:
        return await chain.allowance(row.sender, spender, row.source)
    except ChainError as error:
        raise NotNow(f"{chain.info.id}: {error}") from error


async def _try(
    chain: ContractChain, row: ExchangeRow, built: Built, allowances: list[Units], fee_recipient: str | None
) -> None:
    """Try it all on the newest state. Raises NotNow, and Refused: the state may lag once."""
    spender = built.effects.spender
    calls = [chain.approval(row.source, spender, units) for units in allowances if spender is not None]
    try:
        trials = await chain.simulate(row.sender, [*calls, built.call])
    except ChainError as error:
        raise NotNow(f"{chain.info.id}: {error}") from error
    refused = next((trial.refused for trial in trials if trial.refused is not None), None)
    if refused is None:
        refused = _differs(row, trials[-1].moved, fee_recipient)
    if refused is not None:
        raise Refused(f"{BEGINNINGS[Failure.CHAIN_REFUSED]}{printable(refused)[:REASON_CHARS_MAX]}")


def _differs(row: ExchangeRow, moved: Sequence[Movement] | None, fee_recipient: str | None) -> str | None:
    """Return what a trial shows that was not asked for: a token that keeps a share, more that leaves, another fee."""
    if moved is None:
        return None
    if (wrong := fee_difference(row, moved, fee_recipient)) is not None:
        return wrong
    left = sum(one.amount for one in moved if (one.source, one.contract) == (row.sender, row.source_contract))
    if row.source_contract is not None and left != row.given:
        return f"it would take {left} instead of {row.given}"
    came = sum(one.amount for one in moved if (one.recipient, one.contract) == (row.recipient, row.dest_contract))
    if row.dest_chain == row.source_chain and row.dest_contract is not None and came < row.units_min:
        return f"it would bring {came}, and {row.units_min} was promised"
    others = sorted({one.contract for one in moved if one.source == row.sender} - {row.source_contract}, key=str)
    return f"it would take {others[0]}, too" if others else None


async def _allow(worker: ExchangeWorker, row: ExchangeRow, spender: str, units: Units) -> None:
    """Ask for the next approval: a second one is planned on a state that must show the first."""
    now = worker.clock.now()
    async with worker.db.transaction() as conn:
        locked = await lock(conn, row.pk)
        if locked.step is not Step.QUEUED or locked.approvals != row.approvals:
            return
        await approve(worker, conn, locked, spender, units, now)
        due_at, approvals = now + ALLOWANCE_PAUSE, locked.approvals + 1
        await save(conn, locked, now, approvals=approvals, waits_for=WAITS_FOR_ALLOWANCE, due_at=due_at)


async def approve(  # noqa: PLR0913, PLR0917  who may take how much
    worker: ExchangeWorker,
    conn: AsyncConnection,
    row: ExchangeRow,
    spender: str,
    units: Units,
    now: datetime,
) -> None:
    """Queue an approval behind those that the exchange has asked for already."""
    intent = NewIntent(
        reference=approval_reference(row.txn_id, row.approvals),
        kind=IntentKind.APPROVAL,
        chain_scope=worker.scope(row, row.source_chain),
        merchant_pk=row.merchant_pk,
        source_pk=row.source_pk,
        to_address=spender,
        token=row.source,
        units=units,
        asked_by=row.asked_by,
    )
    await submit(conn, [intent], now)


async def _store(worker: ExchangeWorker, row: ExchangeRow, call: Call) -> None:
    """Hand the call to the engine, unless another worker was faster or it is not waited for any more."""
    now = worker.clock.now()
    async with worker.db.transaction() as conn:
        intent = await lock_call(conn, row.intent_pk or 0)
        locked = await lock(conn, row.pk)
        if not intent.is_wanted or locked.step is not Step.QUEUED:
            return
        await conn.execute(
            update(OutboundIntent)
            .where(OutboundIntent.id == row.intent_pk)
            .values(
                to_address=call.to_address,
                call_data=call.data,
                call_value=call.value,
                call_valid_until=now + CALL_VALID,
                due_at=now,
                updated_at=now,
            )
        )
        # Nothing can be paid out on the other chain before the call that asks for it; but its newest blocks may still
        # give way to others, which are mined later and hold a fill all the same.
        is_bridge = row.dest_chain != row.source_chain
        known = await depth(conn, worker.scope(row, row.dest_chain)) if is_bridge else None
        await save(
            conn,
            locked,
            now,
            waits_for=None,
            due_at=now + CALL_VALID,
            fill_from=None if known is None else max(0, known.deep),
        )


async def _wait(
    worker: ExchangeWorker,
    row: ExchangeRow,
    reason: str,
    due_at: datetime,
    *,
    gives_turn_back: bool = False,
    **changed: object,
) -> None:
    """Look again later. Who ``gives_turn_back`` keeps no turn, unless an allowance for it has been asked for."""
    if gives_turn_back:
        changed["has_turn"] = and_(Exchange.has_turn, Exchange.approvals > 0)
    await save_on(worker.db, row, worker.clock.now(), waits_for=reason, due_at=due_at, **changed)


async def _fail(worker: ExchangeWorker, row: ExchangeRow, reason: str, now: datetime) -> None:
    async with worker.db.transaction() as conn:
        call = await lock_call(conn, row.intent_pk or 0)
        locked = await lock(conn, row.pk)
        if call.is_wanted and locked.step is Step.QUEUED:
            await _give_up(conn, locked, reason, now)


async def _give_up(conn: AsyncConnection, row: ExchangeRow, reason: str, now: datetime) -> None:
    """Have an exchange fail whose call waits: intent and exchange are locked, and the engine has not taken it.

    The engine ends it once the signer has voided the call: a database out of a backup may have forgotten that it was
    signed.
    """
    await mark_given_up(conn, {row.intent_pk or 0: reason}, now)
    await save(conn, row, now, waits_for=WAITS_FOR_CANCELLATION, due_at=when_idle(row.give_up_at, now))
