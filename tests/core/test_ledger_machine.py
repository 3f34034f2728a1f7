"""Random work on real services and the real database, many things at a time: whatever happens, the books hold."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from cambist.db.engine import connect
from cambist.domain.intents import SPENDING
from tests.support.money_model import ASSETS, MERCHANTS, ORDER, MoneyModel
from tests.support.sandbox_actions import DECISIONS, SandboxActions

FULL = os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full"
SEED = int(os.environ.get("CAMBIST_TEST_SEED", "20261121"))
RUNS, STEPS = (300, 200) if FULL else (4, 70)

merchants = st.integers(0, MERCHANTS - 1)
assets = st.tuples(merchants, st.integers(0, len(ASSETS) - 1))
amounts = st.integers(1, 40)
numbers = st.integers(0, 10_000)
picks = st.lists(numbers, min_size=1, max_size=8)
symbols = st.sampled_from(["USDX", "MEM"])
parts = st.none() | st.integers(1, 10)


class LedgerMachine(RuleBasedStateMachine):
    """Plans work of every sort, and then has all of it done at once."""

    database: ClassVar[Callable[[], AbstractContextManager[str]]]
    totals: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.plan: list[Awaitable[None]] = []
        self.told: set[str] = set()
        self.stack = ExitStack()
        url = self.stack.enter_context(type(self).database())
        self.runner = self.stack.enter_context(asyncio.Runner(loop_factory=asyncio.new_event_loop))
        self.db = connect(url, application_name="cambist-tests", pool_size=20, pool_overflow=20)
        self.stack.callback(lambda: self.run(self.db.close()))
        self.money_model = MoneyModel(self.db)
        self.run(self.money_model.open())
        self.sandbox_actions = SandboxActions(self.money_model)

    def run(self, work: Any) -> Any:
        async def inner():
            return await work

        return self.runner.run(inner())

    def teardown(self) -> None:
        try:
            self.all_at_once()
            type(self).totals.update(self.money_model.done)
            type(self).totals.update(self.money_model.refusals)
        finally:
            self.stack.close()

    @initialize()
    def fund(self):
        """Everybody begins with something of everything."""
        for merchant in range(MERCHANTS):
            self.plan += [self.money_model.deposit((merchant, asset), 200, 150) for asset in range(len(ASSETS))]
            self.plan += [self.sandbox_actions.pay(merchant, symbol, 20, [10, 15]) for symbol in ("USDX", "MEM")]
            self.plan.append(self.sandbox_actions.mine(merchant, 4))
        self.all_at_once()

    @rule(deposits=st.lists(st.tuples(assets, st.integers(1, 100), st.integers(0, 100)), min_size=1, max_size=15))
    def deposit(self, deposits):
        self.plan += [self.money_model.deposit(*deposit) for deposit in deposits]

    @rule(picks=picks)
    def take_back(self, picks):
        self.plan.append(self.money_model.take_back(self._deposits(picks)))

    @rule(picks=picks)
    def come_back(self, picks):
        self.plan.append(self.money_model.come_back(self._deposits(picks)))

    @rule(picks=picks, units=amounts)
    def end_orders(self, picks, units):
        self.plan.append(self.money_model.end_orders(self._deposits(picks), units))

    @rule(picks=picks)
    def release(self, picks):
        self.plan += [self.money_model.release(row) for row in self._deposits(picks)]

    @rule(
        asset=assets,
        batch=st.lists(amounts, min_size=1, max_size=5),
        kind=st.sampled_from(sorted(SPENDING)),
        twins=st.integers(1, 3),
    )
    def pay_out(self, asset, batch, kind, twins):
        self.plan += [self.money_model.pay_out(asset, batch, kind) for _ in range(2 * twins)]

    @rule(picks=picks, units=amounts, more=st.integers(0, 10))
    def refund(self, picks, units, more):
        self.plan += [self.money_model.refund(row, units, from_available=more) for row in self._deposits(picks)]

    @rule(told=st.lists(st.tuples(numbers, st.sampled_from(ORDER)), min_size=1, max_size=16), copies=st.integers(1, 3))
    def tell(self, told, copies):
        """Tell the same several times at once, in another order."""
        updates = self.money_model.updates([(payout_id, what) for payout_id, what in self._payouts(told)])
        self.plan += [self.money_model.tell(updates[::direction]) for direction in (1, -1, 1)[:copies] if updates]

    @rule(pick=numbers)
    def both(self, pick):
        """Tell that it is dead, and that it was mined: whoever is told first, it was."""
        for payout_id, _ in self._payouts([(pick, "final")]):
            self.plan += [
                self.money_model.tell(self.money_model.updates([(payout_id, what)])) for what in ("failed", "final")
            ]

    @rule(merchant=merchants, units=st.integers(-50, 50).filter(bool))
    def grant(self, merchant, units):
        self.plan.append(self.money_model.grant(merchant, units))

    @rule(rows_max=st.sampled_from([1, 3, 1000]), twins=st.integers(1, 3))
    def roll_up(self, rows_max, twins):
        self.plan += [self.money_model.roll_up(rows_max) for _ in range(twins)]

    @rule(
        merchant=merchants, symbol=symbols, amount=st.integers(1, 20), deposits=st.lists(st.integers(1, 20), max_size=4)
    )
    def pay_in_sandbox(self, merchant, symbol, amount, deposits):
        self.plan.append(self.sandbox_actions.pay(merchant, symbol, amount, deposits))

    @rule(pick=numbers, symbol=symbols, amount=st.integers(1, 20), confirmations=st.integers(0, 4))
    def deposit_in_sandbox(self, pick, symbol, amount, confirmations):
        self.plan.append(self.sandbox_actions.deposit(pick, symbol, amount, confirmations))

    @rule(merchant=merchants, blocks=st.integers(1, 5))
    def mine(self, merchant, blocks):
        self.plan.append(self.sandbox_actions.mine(merchant, blocks))

    @rule(merchant=merchants, depth=st.integers(1, 8), drop=st.booleans())
    def reorganise(self, merchant, depth, drop):
        self.plan.append(self.sandbox_actions.reorg(merchant, depth, drop=drop))

    @rule(merchant=merchants, seconds=st.sampled_from([60, 3_700, 90_000]))
    def wait(self, merchant, seconds):
        self.plan.append(self.sandbox_actions.wait(merchant, seconds))

    @rule(merchant=merchants, symbol=symbols, amounts=st.lists(st.integers(1, 15), min_size=1, max_size=3))
    def pay_out_in_sandbox(self, merchant, symbol, amounts):
        self.plan += [self.sandbox_actions.pay_out(merchant, symbol, amount) for amount in amounts]

    @rule(pick=numbers, amount=parts, twins=st.integers(1, 2))
    def refund_in_sandbox(self, pick, amount, twins):
        self.plan += [self.sandbox_actions.refund(pick, amount) for _ in range(twins)]

    @rule(merchant=merchants, picks=picks, decision=st.sampled_from(DECISIONS), amount=parts)
    def resolve(self, merchant, picks, decision, amount):
        self.plan += [self.sandbox_actions.resolve(merchant, pick, decision, amount) for pick in picks]

    @rule(merchant=merchants, pick=numbers)
    def fail(self, merchant, pick):
        self.plan.append(self.sandbox_actions.fail(merchant, pick))

    @rule()
    def all_at_once(self):
        plan, self.plan = self.plan, []
        self.told.clear()
        self.run(self.money_model.all_at_once(plan))
        self.run(self.money_model.check())

    # What is there depends on who was faster, so that nothing is drawn from it: hypothesis must find its way again.

    def _deposits(self, picks: list[int]) -> list[int]:
        rows = list(self.money_model.coming)
        return sorted({rows[pick % len(rows)] for pick in picks})

    def _payouts(self, told):
        """Name payouts by number; each is told of in one way at a time, as its slot's lock sees to."""
        names = list(self.money_model.going)
        for pick, what in told if names else ():
            payout_id = names[pick % len(names)]
            if payout_id not in self.told:
                self.told.add(payout_id)
                yield payout_id, what


@pytest.mark.campaign
@pytest.mark.timeout(0 if FULL else 600)
def test_whatever_is_done_at_once_no_unit_is_lost_doubled_or_invented(databases):
    @seed(SEED)
    class Machine(LedgerMachine):
        totals: ClassVar[Counter[str]] = Counter()

        @staticmethod
        def database():
            return databases.fresh()

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=RUNS,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    # Both kinds of answers came, or nothing was tested.
    assert Machine.totals["done"] > RUNS * STEPS / 2
    assert Machine.totals["INSUFFICIENT_BALANCE"] > RUNS / 2
