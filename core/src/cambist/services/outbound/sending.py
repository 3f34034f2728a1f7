"""What waits is sent: planned, funded, given its place in the sender's sequence, signed, stored, and only then out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import FeeAboveCeilingError, Plan, Step, Token, Units
from cambist.services.wallet_addresses import OwnAddress, gas_station

from . import settled_store, store
from .desk import Desk, retold
from .funding import ask_for_gas, fee_within, gas_left, lean_price
from .handing_out import hand_out
from .lending import ask_for_loan, keep_lent, sponsor_of
from .locking import hold_still, lock_spending
from .mending import REPAIR
from .placing import place, place_again
from .rows import IntentRow, OwnPath
from .store import Burden

GAS_PAUSE = timedelta(seconds=1)
FUNDS_PAUSE = timedelta(seconds=2)
DRY_PAUSE = timedelta(seconds=15)
FEE_PAUSE = timedelta(seconds=15)
REFUSED_PAUSE = timedelta(seconds=60)
SHORT_PATIENCE = timedelta(minutes=10)

UNPLANNED = "The chain has no plan for it."
SHORT = "The address holds less than what it has received."

WAITS_FOR_TURN = "turn"
WAITS_FOR_FUNDS = "collection"
WAITS_FOR_GAS = "gas"
WAITS_FOR_STATION = "gas_station_empty"
WAITS_FOR_FEES = "fees_above_ceiling"


class Purse(Struct, kw_only=True):
    """What a sender can spend: what the chain says, less what is already on its way out.

    ``gas`` is the part of its native coin that may be spent on fees; None: all of it. ``unsure`` is what it may have
    beyond that, unless the balance that it comes from is older than the latest that left. ``counted_twice`` is the
    part of it, in native coin, that the balance may lack already because it waits to be mined.
    """

    token: dict[str | None, int]
    gas: int | None
    unsure: Mapping[str | None, int]
    counted_twice: int = 0

    @property
    def for_fees(self) -> int:
        """How much there is for fees; below zero where too much was spent before."""
        left = max(0, self.token[None])
        return left if self.gas is None else min(left, self.gas)

    def take_fee(self, cost: int) -> bool:
        """Set a fee aside, or return False where the platform has not enough for it here."""
        if self.for_fees < cost:
            return False
        self.token[None] -= cost
        if self.gas is not None:
            self.gas -= cost
        return True

    def take(self, contract: str | None, units: int) -> bool:
        """Set units aside, or return False where there are not enough."""
        if self.token[contract] < units:
            return False
        self.token[contract] -= units
        return True


class Batch(Struct, kw_only=True):
    """The intents of one sender, as they are sorted out."""

    source: OwnPath
    ready: list[tuple[IntentRow, Step]]
    refused: list[tuple[IntentRow, str]]
    short: list[IntentRow]
    unsure: list[IntentRow]
    thirsty: list[tuple[IntentRow, Step]]
    borrowing: list[tuple[IntentRow, Units]]


async def send_waiting(desk: Desk) -> bool:
    """Send what can be sent; return whether more of it waits for no reason but its number."""
    now = desk.clock.now()
    async with desk.db.transaction() as conn:
        waiting = await store.waiting(conn, desk.site, now, desk.settings.batch_max)
        station = await gas_station(conn, desk.site.info.family, desk.site.mode)
    groups: dict[int, list[IntentRow]] = {}
    for intent in waiting:
        groups.setdefault(intent.source.row, []).append(intent)
    more = False
    for intents in groups.values():
        more |= await _send_from(desk, intents, station)
    return more


async def _send_from(desk: Desk, intents: Sequence[IntentRow], station: OwnAddress | None) -> bool:
    source, now = intents[0].source, desk.clock.now()
    async with desk.db.transaction() as conn:
        burden = await store.burden(conn, desk.site, source.row)
        gas = await gas_left(conn, desk, source)
        sponsor = await sponsor_of(conn, desk, source, station, now)
    room = desk.settings.in_flight_max - burden.slots
    if room <= 0:
        # What is under way may be waiting for just these.
        intents = [intent for intent in intents if intent.sent.kind == REPAIR]
        room = len(intents)
    if not intents:
        return False
    purse = await _purse(desk, source, intents, burden, gas)
    batch = Batch(source=source, ready=[], refused=[], short=[], unsure=[], thirsty=[], borrowing=[])
    affordable = await _on_firm_ground(desk, source, _affordable(batch, intents, purse, room), now)
    try:
        await _sort_out(desk, batch, affordable, purse, burden, sponsor)
    except FeeAboveCeilingError as error:
        async with desk.db.transaction() as conn:
            fresh = await desk.hold(conn, affordable, WAITS_FOR_FEES, now + FEE_PAUSE, now)
        if fresh:
            desk.alert("fees_above_ceiling", waiting=fresh, error=str(error))
    if not burden.slots:
        _give_up_short(batch, now)
    await _settle_the_rest(desk, batch, purse)
    if not batch.ready:
        return False
    mined = await desk.chain.next_sequence(source.address)
    placed = await place(desk, batch.source, batch.ready, mined)
    await hand_out(desk, placed.signed)
    if placed.doubt is not None:
        await hand_out(desk, await place_again(desk, batch.source, placed.doubt))
    if placed.unreached:
        return True
    return len(placed.signed) == len(affordable) and len(intents) > len(affordable) + len(batch.short) + len(
        batch.unsure
    )


async def _purse(desk: Desk, source: OwnPath, intents: Sequence[IntentRow], burden: Burden, gas: int | None) -> Purse:
    tokens: dict[str | None, Token] = {None: desk.site.info.native}
    tokens |= {intent.sent.contract: intent.token for intent in intents}
    held = await desk.chain.balances([(source.address, token) for token in tokens.values()])
    leaving, settling = burden.units, burden.settling
    # What the node has counted already is subtracted twice: too little is known, until it is mined.
    twice = leaving if desk.chain.balances_count_waiting else {}
    return Purse(
        token={
            contract: units - leaving.get(contract, 0) - settling.get(contract, 0)
            for contract, units in zip(tokens, held, strict=True)
        },
        gas=gas,
        unsure={contract: settling.get(contract, 0) + twice.get(contract, 0) for contract in tokens},
        counted_twice=twice.get(None, 0),
    )


def _affordable(batch: Batch, intents: Sequence[IntentRow], purse: Purse, room: int) -> Sequence[IntentRow]:
    """Return those that the purse pays for, as many as there is room for; what it lacks money for takes no room."""
    affordable: list[IntentRow] = []
    for intent in intents:
        if len(affordable) == room:
            break
        contract, units = intent.sent.contract, intent.given
        if purse.take(contract, units):
            affordable.append(intent)
        elif purse.token[contract] + purse.unsure.get(contract, 0) >= units:
            batch.unsure.append(intent)
        else:
            batch.short.append(intent)
    return affordable


async def _on_firm_ground(
    desk: Desk, source: OwnPath, affordable: Sequence[IntentRow], now: datetime
) -> Sequence[IntentRow]:
    """Return those that can be planned now: none while a loan is on its way back, which they might count on."""
    if not affordable or await keep_lent(desk, source):
        return affordable
    async with desk.db.transaction() as conn:
        await desk.hold(conn, affordable, WAITS_FOR_GAS, now + GAS_PAUSE, now)
    return []


async def _sort_out(  # noqa: PLR0913, PLR0917  whose, and what they have
    desk: Desk, batch: Batch, affordable: Sequence[IntentRow], purse: Purse, burden: Burden, sponsor: str | None
) -> None:
    """Say of each intent whether it can be sent, in their order."""
    if affordable:
        if batch.source.purpose == "gas":
            # What it gives and what it pays for that come out of one purse: both for the first, then for the next.
            purse.token[None] += sum(intent.given for intent in affordable)
        promised = {batch.source.address: burden.covered} if burden.slots else {}
        plans = await desk.chain.plan([one.wanted for one in affordable], sponsor=sponsor, promised=promised)
        for intent, plan in zip(affordable, plans, strict=True):
            _file(batch, intent, plan, purse)


def _give_up_short(batch: Batch, now: datetime) -> None:
    """Give up collections of what is not there, although nothing is on its way out: others can be asked for instead.

    A token that keeps a share of each transfer is one reason. The deposits are tried again, later.
    """
    if batch.source.purpose == "payment":
        old = [intent for intent in batch.short if now - intent.created_at >= SHORT_PATIENCE]
        batch.refused += [(intent, SHORT) for intent in old]
        batch.short = [intent for intent in batch.short if intent not in old]


def _file(batch: Batch, intent: IntentRow, plan: Plan, purse: Purse) -> None:
    step = plan.step
    if plan.refused is not None or step is None:
        batch.refused.append((intent, plan.refused or UNPLANNED))
        return
    if batch.source.purpose == "payment":
        step = structs.replace(step, fee=fee_within(step.fee, purse.for_fees))
    given = intent.given if batch.source.purpose == "gas" else 0
    cost = step.fee.cost_max + step.fee.reserve + given
    # Behind one that has to wait for its fee, the others of the same sender wait, too: first come, first served.
    if batch.thirsty or purse.for_fees + purse.counted_twice < cost:
        batch.thirsty.append((intent, step))
    elif not purse.take_fee(cost):
        batch.unsure.append(intent)
    elif plan.loan:
        batch.borrowing.append((intent, plan.loan))
    else:
        batch.ready.append((intent, step))


async def _settle_the_rest(desk: Desk, batch: Batch, purse: Purse) -> None:
    """Fail what is refused, and let the others wait for what they lack."""
    now = desk.clock.now()
    async with desk.db.transaction() as conn:
        await _fail(desk, conn, batch.refused, now)
        await desk.hold(conn, batch.unsure, WAITS_FOR_TURN, now + GAS_PAUSE, now)
        await desk.hold(conn, batch.short, _shortage(batch.source), now + _pause(batch.source), now)
        if not batch.thirsty:
            fresh = 0
        elif batch.source.purpose == "gas":
            thirsty = [intent for intent, _ in batch.thirsty]
            fresh = await desk.hold(conn, thirsty, WAITS_FOR_STATION, now + DRY_PAUSE, now)
        else:
            fresh = 0
            await desk.hold(conn, [intent for intent, _ in batch.thirsty], WAITS_FOR_GAS, now + GAS_PAUSE, now)
        if batch.borrowing:
            await desk.hold(conn, [intent for intent, _ in batch.borrowing], WAITS_FOR_GAS, now + GAS_PAUSE, now)
            await ask_for_loan(conn, desk, batch.source, sum(stake for _, stake in batch.borrowing), now)
        if batch.source.purpose != "gas":
            await ask_for_gas(conn, desk, batch.source, _gas_needed(desk, batch, purse), now)
    if batch.short and batch.source.purpose == "gas":
        fresh += len(batch.short)
    if fresh:
        desk.alert("gas_station_empty", waiting=fresh, address=batch.source.address)
    for intent, reason in batch.refused:
        desk.alert("refused", reference=intent.sent.reference, reason=reason)


def _shortage(source: OwnPath) -> str:
    return WAITS_FOR_STATION if source.purpose == "gas" else WAITS_FOR_FUNDS


def _pause(source: OwnPath) -> timedelta:
    return {"gas": DRY_PAUSE, "wallet": FUNDS_PAUSE}.get(source.purpose, REFUSED_PAUSE)


def _gas_needed(desk: Desk, batch: Batch, purse: Purse) -> int:
    """Return what the fees of all that waits here lack; a main wallet gets some more, for those to come.

    Where native coin is short because fees were paid out of it, that is replaced.
    """
    if not batch.thirsty:
        return -purse.for_fees if any(intent.sent.contract is None for intent in batch.short) else 0
    fees = [step.fee for _, step in batch.thirsty]
    needed: int = sum(fee.cost_max for fee in fees)
    reserve = max(fee.reserve for fee in fees)
    if batch.source.purpose == "payment":
        needed = sum(fee.cost_at(lean_price(fee)) for fee in fees)
    if batch.source.purpose == "wallet":
        average = needed // len(batch.thirsty)
        needed = max(needed, average * desk.settings.wallet_gas_transfers)
    return needed + reserve - purse.for_fees


async def _fail(desk: Desk, conn: AsyncConnection, refused: Sequence[tuple[IntentRow, str]], now: datetime) -> None:
    if not refused:
        return
    await hold_still(conn, desk.site)
    still = await store.lock_waiting(conn, [intent for intent, _ in refused])
    await lock_spending(conn, desk.site, [intent.sent for intent, _ in refused if intent.id in still])
    for intent, reason in refused:
        if intent.id in still:
            await settled_store.finish(conn, [intent], "failed", reason, now)
            await desk.tell(conn, "on_failed", [retold(intent.sent, reason=reason)], now)
