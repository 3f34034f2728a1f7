"""The pure part of sending: which intents of an address are sent now. By property, over all that facts can be."""

from collections import Counter
from collections.abc import Sequence

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec import Struct
from msgspec.structs import replace

from cambist.domain.allocation import (
    Allocation,
    Funding,
    PendingOutflow,
    SpendableBalance,
    allocate,
    fee_within,
    fund,
    gas_needed,
    spendable_balance,
)
from cambist.plugin import Fee, Plan, Step, Token, Units

pytestmark = pytest.mark.slow

CONTRACTS = (None, "0xa", "0xb")
# Made once: whatever is made at a draw is checked again at each, which takes longer than to draw.
UNITS, UP_TO_3, UP_TO_6, ROOM = st.integers(0, 60), st.integers(0, 3), st.integers(0, 6), st.integers(0, 8)
PRICES = st.integers(1, 8)
PRICES_NOW = {price: st.none() | st.integers(1, price) for price in range(1, 9)}
RESERVES, SPARES, LOANS = st.sampled_from([0, 0, 2]), st.sampled_from([0, 0, 3]), st.sampled_from([0, 0, 7])
PURPOSES = st.sampled_from(["gas", "wallet", "payment"])
COIN_ALONE, ANY_CONTRACT = st.just(None), st.sampled_from(CONTRACTS)
HELD = st.fixed_dictionaries(dict.fromkeys(CONTRACTS, st.integers(0, 200)))
AMOUNTS = st.fixed_dictionaries(dict.fromkeys(CONTRACTS, st.sampled_from([0, 0, 5, 20])))
GAS = st.integers(-10, 150)
REFUSED = st.sampled_from([None, None, None, None, "never"])
ABOVE_CEILING = st.sampled_from([None, None, None, None, "too dear"])
IS_LEFT_OUT = st.sampled_from([False, False, False, True])


class Transfer(Struct, frozen=True):
    number: int
    contract: str | None
    outgoing_units: int


class Case(Struct, frozen=True, kw_only=True):
    """An address, what waits there, and what the chain says of it."""

    purpose: str
    intents: Sequence[Transfer]
    held: dict[str | None, int]
    outflow: PendingOutflow
    gas: int | None
    kept: int
    counts_waiting: bool
    room: int
    plans: Sequence[Plan]

    @property
    def balance(self) -> SpendableBalance:
        return spendable_balance(
            self.held, self.outflow, self.gas, kept=self.kept, balances_count_waiting=self.counts_waiting
        )

    def run(self) -> tuple[Funding[Transfer], Allocation[Transfer]]:
        funding = fund(self.intents, self.balance, self.room)
        return funding, allocate(self.purpose, funding, [self.plans[one.number] for one in funding.funded])


@st.composite
def fees(draw: st.DrawFn) -> Fee:
    price = draw(PRICES)
    return Fee(
        limit=draw(UP_TO_6),
        price=price,
        extra=Units(draw(UP_TO_3)),
        price_now=draw(PRICES_NOW[price]),
        covered=draw(UP_TO_6),
        reserve=Units(draw(RESERVES)),
        spare=draw(SPARES),
    )


FEES = fees()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    purpose = draw(PURPOSES)
    contracts = COIN_ALONE if purpose == "gas" else ANY_CONTRACT
    intents = [Transfer(number, draw(contracts), draw(UNITS)) for number in range(draw(ROOM))]
    gas = None if purpose == "gas" else draw(GAS)
    return Case(
        purpose=purpose,
        intents=intents,
        held=draw(HELD),
        outflow=PendingOutflow(0, 0, draw(AMOUNTS), draw(AMOUNTS)),
        gas=gas,
        kept=max(0, gas) if gas is not None and draw(st.booleans()) else 0,
        counts_waiting=draw(st.booleans()),
        room=draw(ROOM),
        plans=[plan(draw, one) for one in intents],
    )


def plan(draw: st.DrawFn, intent: Transfer) -> Plan:
    refused = draw(REFUSED)
    above_ceiling = None if refused else draw(ABOVE_CEILING)
    token = Token(symbol="T", contract=intent.contract, decimals=0, label="T")
    step = Step(sender="own", to_address="them", token=token, amount=Units(intent.outgoing_units), fee=draw(FEES))
    return Plan(
        step=None if refused or above_ceiling or draw(IS_LEFT_OUT) else step,
        refused=refused,
        above_ceiling=above_ceiling,
        loan=Units(draw(LOANS)),
    )


def without_spare(plan: Plan) -> Plan:
    return plan if plan.step is None else replace(plan, step=replace(plan.step, fee=replace(plan.step.fee, spare=0)))


def at_the_price_of_now(plan: Plan) -> Plan:
    step = plan.step
    assert step is not None
    least = step.fee.price if step.fee.price_now is None else step.fee.price_now
    return replace(plan, step=replace(step, fee=replace(step.fee, price=least)))


def kept_for_ever(allocated: Allocation[Transfer]) -> int:
    """Return what the address keeps, whatever is sent: one reserve, for all of it."""
    return max((step.fee.reserve for _, step in allocated.ready), default=0)


def numbers(intents: Sequence[Transfer]) -> list[int]:
    return [one.number for one in intents]


@settings(deadline=None)
@given(cases())
def test_nothing_is_lost_and_the_order_is_kept(case):
    funding, allocated = case.run()
    groups = [funding.funded, funding.short, funding.maybe_spent]
    considered = sorted(number for group in groups for number in numbers(group))
    assert considered == list(range(len(considered))), "the first ones, none left out and none twice"
    assert len(considered) == len(case.intents) or len(funding.funded) == case.room
    assert len(funding.funded) <= case.room
    pairs = [allocated.ready, allocated.refused, allocated.above_ceiling, allocated.needs_gas, allocated.needs_loan]
    outcome = [numbers([one for one, _ in group]) for group in pairs] + [numbers(allocated.maybe_spent)]
    assert sorted(number for group in outcome for number in group) == numbers(funding.funded)
    assert all(group == sorted(group) for group in [*outcome, *map(numbers, groups)])


@settings(deadline=None)
@given(cases())
def test_no_more_is_spent_than_there_is(case):
    _, allocated = case.run()
    spent = Counter()
    for intent, step in allocated.ready:
        spent[intent.contract] += intent.outgoing_units
        spent[None] += step.fee.cost_max
    spent[None] += kept_for_ever(allocated)
    for contract, units in spent.items():
        pending = case.outflow.units[contract] + case.outflow.just_mined[contract]
        assert not units or units <= case.held[contract] - pending


@settings(deadline=None)
@given(cases())
def test_fees_are_never_paid_out_of_a_merchants_coin(case):
    _, allocated = case.run()
    paid = sum(step.fee.cost_max for _, step in allocated.ready) + kept_for_ever(allocated)
    assert case.gas is None or not paid or paid <= case.gas


@settings(deadline=None)
@given(cases())
def test_what_is_kept_for_fees_is_sent_to_nobody(case):
    funding, _ = case.run()
    sent = sum(one.outgoing_units for one in funding.funded if one.contract is None)
    assert not sent or sent <= case.balance.units[None] - case.kept


@pytest.mark.parametrize("contract, units, is_sent", [(None, 6, True), (None, 7, False), ("0xa", 10, True)])
def test_coin_that_is_kept_for_fees_counts_as_lacking_for_whoever_sends_coin(contract, units, is_sent):
    balance = SpendableBalance(units={None: 10, "0xa": 10}, gas=4, maybe_spent={}, kept=4)
    found = fund([Transfer(0, contract, units)], balance, 1)
    assert (len(found.funded), len(found.short)) == (is_sent, not is_sent)


@settings(deadline=None)
@given(cases())
def test_spare_work_is_allowed_where_there_is_enough_and_has_nobody_wait(case):
    _, allocated = case.run()
    _, before = replace(case, plans=[without_spare(plan) for plan in case.plans]).run()
    assert numbers([one for one, _ in allocated.ready]) == numbers([one for one, _ in before.ready])
    for intent, step in allocated.ready:
        planned = case.plans[intent.number].step.fee
        assert (step.fee.limit, step.fee.spare) in {
            (planned.limit, planned.spare),
            (planned.limit + planned.spare, 0),
        }
    for name in ("refused", "above_ceiling", "needs_gas", "needs_loan", "maybe_spent"):
        assert len(getattr(allocated, name)) == len(getattr(before, name))


@pytest.mark.parametrize("coin, limit", [(3, 1), (4, 1), (5, 4), (9, 4)])
def test_what_is_allowed_beside_leaves_enough_for_who_comes_next(coin, limit):
    """Who would wait, and be brought coin, while that waits to be mined."""
    token = Token(symbol="A", contract="0xa", decimals=0, label="A")
    step = Step(
        sender="own",
        to_address="them",
        token=token,
        amount=Units(1),
        fee=Fee(limit=1, price=1, spare=3, extra=Units(0)),
    )
    left = coin
    for number in range(2):
        balance = SpendableBalance(units={None: left, "0xa": 1}, gas=left, maybe_spent={})
        found = allocate("wallet", fund([Transfer(number, "0xa", 1)], balance, 1), [Plan(step=step)])
        ((_, sent),) = found.ready
        assert number or sent.fee.limit == limit
        left -= sent.fee.cost_max


@settings(deadline=None)
@given(cases())
def test_behind_who_waits_for_a_fee_all_others_wait(case):
    _, allocated = case.run()
    if allocated.needs_gas:
        first = allocated.needs_gas[0][0].number
        served = [one.number for group in (allocated.ready, allocated.needs_loan) for one, _ in group]
        assert all(number < first for number in served)


@settings(deadline=None)
@given(cases())
def test_what_is_short_has_not_been_there_for_those_before_it(case):
    spendable, (funding, _) = case.balance, case.run()
    for intent in funding.short:
        before = [one for one in funding.funded if one.contract == intent.contract and one.number < intent.number]
        left = spendable.units[intent.contract] - sum(one.outgoing_units for one in before)
        kept = case.kept if intent.contract is None and intent.outgoing_units else 0
        assert left + spendable.maybe_spent[intent.contract] < intent.outgoing_units + kept


@settings(deadline=None)
@given(cases())
def test_the_facts_are_left_as_they_were(case):
    balance = case.balance
    funding = fund(case.intents, balance, case.room)
    left = funding.left.copy()
    allocate(case.purpose, funding, [case.plans[one.number] for one in funding.funded])
    assert (balance, funding.left) == (case.balance, left)


@settings(deadline=None)
@given(fees(), st.integers(0, 100))
def test_a_fee_is_lowered_to_what_there_is_but_not_below_what_the_next_block_takes(fee, units):
    lowered = fee_within(fee, units)
    assert lowered.price <= fee.price
    assert lowered == fee or (fee.price_now is not None and lowered.price >= fee.price_now)
    if lowered.price < fee.price:
        assert lowered.cost_max <= units


@settings(deadline=None)
@given(cases())
def test_with_the_gas_that_was_asked_for_what_needs_gas_can_be_sent(case):
    """All of it at the prices of now. Where prices have room to rise, the first may take it from those behind it."""
    _, allocated = case.run()
    if not allocated.needs_gas or case.purpose == "gas":
        return
    intents, owed = zip(*allocated.needs_gas, strict=True)
    brought = allocated.left.copy()
    needed = gas_needed(case.purpose, owed, brought, short_of_native=False, wallet_transfers=3)
    brought.units[None] = max(0, brought.units[None]) + needed
    brought.gas = None if brought.gas is None else brought.gas + needed
    plans = [case.plans[intent.number] for intent in intents]
    waiting = Funding(left=brought, funded=list(intents))
    assert intents[0] not in [intent for intent, _ in allocate(case.purpose, waiting, plans).needs_gas]
    assert not allocate(case.purpose, waiting, [at_the_price_of_now(plan) for plan in plans]).needs_gas


def test_a_reserve_is_set_aside_once_and_out_of_what_lets_a_price_be_higher():
    def of(units: int, fee: Fee, count: int) -> Allocation[Transfer]:
        left = SpendableBalance(units={None: units}, gas=units, maybe_spent={})
        token = Token(symbol="T", contract=None, decimals=0, label="T")
        plan = Plan(step=Step(sender="own", to_address="them", token=token, amount=Units(0), fee=fee))
        waiting = [Transfer(number, None, 0) for number in range(count)]
        return allocate("payment", Funding(left=left, funded=waiting), [plan] * count)

    fee = Fee(limit=10, price=20, price_now=10, reserve=Units(100))
    (ready,) = of(220, fee, 1).ready
    assert ready[1].fee.price == 12
    flat = replace(fee, price=10, price_now=None)
    found = of(300, flat, 3)
    assert (len(found.ready), len(found.needs_gas)) == (2, 1)
    assert gas_needed("payment", [flat], found.left, short_of_native=False, wallet_transfers=3) == 100
