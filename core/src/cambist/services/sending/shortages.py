"""What was planned and cannot be sent yet waits for what it lacks, which is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain import allocation
from cambist.domain.allocation import Allocation, Funding
from cambist.domain.intents import WAITS_FOR_TURN
from cambist.services.addresses.wallets import OwnAddress
from cambist.services.chains.sendable import not_sendable

from . import defer_store
from .context import EngineContext
from .gas.funding import ask_for_gas
from .gas.loans import ask_for_loan
from .rows import IntentRow, OwnPath

GAS_PAUSE = timedelta(seconds=1)
FUNDS_PAUSE = timedelta(seconds=2)
EMPTY_STATION_PAUSE = timedelta(seconds=15)
REFUSED_PAUSE = timedelta(seconds=60)

WAITS_FOR_FUNDS = "collection"
WAITS_FOR_GAS = "gas"
WAITS_FOR_STATION = "gas_station_empty"
WAITS_FOR_SIGNERS_FILE = "token_not_sendable"

_SHORTAGE = {
    "gas": (WAITS_FOR_STATION, EMPTY_STATION_PAUSE),
    "wallet": (WAITS_FOR_FUNDS, FUNDS_PAUSE),
    "payment": (WAITS_FOR_FUNDS, REFUSED_PAUSE),
    "account": (WAITS_FOR_FUNDS, REFUSED_PAUSE),
}


class _Group(Struct, frozen=True):
    """Intents that wait for the same, and for how long. ``keeps_retry``: something else must come first."""

    intents: Sequence[IntentRow]
    reason: str
    pause: timedelta
    keeps_retry: bool = False


async def let_wait(  # noqa: PLR0913  each by name
    context: EngineContext,
    source: OwnPath,
    funding: Funding[IntentRow],
    allocated: Allocation[IntentRow],
    short: Sequence[IntentRow],
    *,
    station: OwnAddress,
    is_gas_coming: bool,
) -> None:
    """Let them wait for what they lack, and ask for it. ``is_gas_coming``: gas was, when the address was looked at."""
    now, is_station = context.clock.now(), source.purpose == "gas"
    needs_gas = [intent for intent, _ in allocated.needs_gas]
    needs_loan = [intent for intent, _ in allocated.needs_loan]
    lacking = 0
    if not (is_station or is_gas_coming):
        lacking = allocation.gas_needed(
            source.purpose,
            [fee for _, fee in allocated.needs_gas],
            allocated.left,
            short_of_native=any(intent.contract is None for intent in short),
            wallet_transfers=context.settings.wallet_gas_transfers,
        )
    before = [
        _Group([*funding.maybe_spent, *allocated.maybe_spent], WAITS_FOR_TURN, GAS_PAUSE, keeps_retry=True),
        *await _short(context, source, short),
    ]
    gas = _Group(needs_gas, *((WAITS_FOR_STATION, EMPTY_STATION_PAUSE) if is_station else (WAITS_FOR_GAS, GAS_PAUSE)))
    loan = _Group(needs_loan, WAITS_FOR_GAS, GAS_PAUSE)
    groups = [group for group in (*before, gas, loan) if group.intents]
    fresh = 0
    if lacking > 0 or needs_loan:
        async with context.db.transaction() as conn:
            await defer_store.lock(conn, [intent for group in groups for intent in group.intents])
            for group in before:
                await _defer(context, conn, group, now)
            if lacking > 0 and not await ask_for_gas(conn, context, source, lacking, now):
                gas = _Group(gas.intents, gas.reason, REFUSED_PAUSE)
            fresh = await _defer(context, conn, gas, now)
            if needs_loan:
                await _defer(context, conn, loan, now)
                stake = sum(stake for _, stake in allocated.needs_loan)
                await ask_for_loan(conn, context, station, source, stake, now)
    else:
        for group in groups:
            told = await _defer_alone(context, group, now)
            fresh += told if group is gas else 0
    if is_station and (waiting := fresh + len(short)):
        context.alert("gas_station_empty", waiting=waiting, address=source.address)


async def _short(context: EngineContext, source: OwnPath, short: Sequence[IntentRow]) -> Sequence[_Group]:
    """Return what is short: those apart whose token is not collected, since the signer's file does not have it yet."""
    contracts, unknown = {one.contract for one in short if one.contract is not None}, set[str]()
    if contracts and context.chain_scope.mode == "live":
        async with context.db.autocommit() as conn:
            unknown = set(await not_sendable(conn, context.chain_scope.info.id, sorted(contracts)))
    return [
        _Group([one for one in short if one.contract in unknown], WAITS_FOR_SIGNERS_FILE, REFUSED_PAUSE),
        _Group([one for one in short if one.contract not in unknown], *_SHORTAGE[source.purpose]),
    ]


async def _defer(context: EngineContext, conn: AsyncConnection, group: _Group, now: datetime) -> int:
    return await context.defer(conn, group.intents, group.reason, now + group.pause, now, keeps_retry=group.keeps_retry)


async def _defer_alone(context: EngineContext, group: _Group, now: datetime) -> int:
    """Let a group wait by itself; return for how many the reason is new.

    Who has waited for just this before goes on by a single statement: there is nothing to tell of it.
    """
    if all(intent.reason == group.reason for intent in group.intents):
        async with context.db.autocommit() as conn:
            await defer_store.defer_again(
                conn, group.intents, group.reason, now + group.pause, now, keeps_retry=group.keeps_retry
            )
        return 0
    async with context.db.transaction() as conn:
        return await _defer(context, conn, group, now)
