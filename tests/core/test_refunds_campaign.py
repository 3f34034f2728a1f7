"""Everything at once: deposits, refunds, decisions, failures and reorganizations, and books that hold throughout."""

import asyncio
import os
from random import Random

import pytest

from cambist.services.errors import ServiceError
from cambist.services.sandbox.requests import FailPayout
from tests.support.payment_env import PaymentEnv
from tests.support.refunds import REQUIRED, RefundEnv

pytestmark = pytest.mark.slow

FULL = os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full"
SEEDS, ROUNDS = (30, 60) if FULL else (2, 40)
FIRST = int(os.environ.get("CAMBIST_TEST_SEED", "0"))
AT_ONCE = 4


class Chaos:
    """Does anything that a merchant, a customer or the chain may do, at any time."""

    def __init__(self, payment_env: PaymentEnv, refund_env: RefundEnv, random: Random) -> None:
        self.payment_env, self.refund_env, self.random = payment_env, refund_env, random
        self.payments: list[str] = []
        self.done: dict[str, int] = {}

    def amount(self) -> str:
        return self.random.choice(("1", "2.5", "4", "6", "10", "13"))

    async def pay(self) -> None:
        self.payments.append((await self.payment_env.create(self.payment_env.test)).payment.payment_id)

    async def deposit(self) -> None:
        payment_id, amount = self.random.choice(self.payments), self.amount()
        other = self.random.random() < 0.15
        token = {"token": "MEM"} if other else {}
        await self.payment_env.deposit(
            payment_id, amount=amount, confirmations=self.random.choice((0, REQUIRED)), **token
        )

    async def refund(self) -> None:
        fields = {"amount": self.amount()} if self.random.random() < 0.7 else {}
        await self.refund_env.refund(self.random.choice(self.payments), **fields)

    async def decide(self) -> None:
        waiting = await self.refund_env.waiting()
        if waiting:
            one = self.random.choice(waiting).deposit_id
            await self.random.choice((self.refund_env.accept, self.refund_env.release, self.refund_env.refund_deposit))(
                one
            )

    async def fail(self) -> None:
        refunds = await self.refund_env.refunds()
        if refunds:
            refund_id = self.random.choice(sorted(refunds))
            await self.payment_env.sandbox.fail_payout(self.payment_env.test, FailPayout(payout_id=refund_id))

    async def send(self) -> None:
        await self.refund_env.send()

    async def mine(self) -> None:
        await self.payment_env.mine(self.random.randint(1, REQUIRED + 1))

    async def reorg(self) -> None:
        await self.payment_env.reorg(self.random.randint(1, 6), self.random.choice(("drop", "return")))

    async def pass_time(self) -> None:
        await self.payment_env.advance(self.random.choice((60, 3601, 2 * 86_400)))

    async def step(self) -> None:
        actions = (self.pay, self.deposit, self.refund, self.decide, self.fail, self.send, self.mine, self.reorg)
        weights = (1, 6, 4, 4, 1, 1, 3, 1)
        (action,) = self.random.choices((*actions, self.pass_time), (*weights, 0.5))
        try:
            await action()
        except ServiceError:
            return
        self.done[action.__name__] = self.done.get(action.__name__, 0) + 1


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
async def test_the_books_hold_whatever_happens_in_whatever_order(db, clock, ids, seed):
    payment_env = await PaymentEnv(db, clock, ids).open()
    refund_env = RefundEnv(payment_env)
    chaos = Chaos(payment_env, refund_env, Random(seed))
    for _ in range(3):
        await chaos.pay()
    for _ in range(ROUNDS):
        await asyncio.gather(*(chaos.step() for _ in range(AT_ONCE)))
        await refund_env.check_books()
    assert {"deposit", "refund", "decide"} <= set(chaos.done), chaos.done
    await payment_env.mine(2 * REQUIRED)
    await refund_env.finish()
    await refund_env.check_books()
    async with db.autocommit() as conn:
        still = await conn.exec_driver_sql(
            "SELECT status FROM payouts WHERE status NOT IN ('completed', 'failed') AND mode = 'sandbox'"
        )
        assert still.all() == []
