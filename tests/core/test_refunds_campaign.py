"""Everything at once: deposits, refunds, decisions, failures and reorganizations, and books that hold throughout.

What goes wrong is steered to where the money is: a reorganization takes a deposit of which something was spent, what
fails is a refund that is in no block, and what is in a wallet leaves it, so that what a reorganization takes is owed.
"""

import asyncio
import os
from random import Random
from typing import Any

import pytest

from cambist.plugin import Units
from cambist.services.errors import ServiceError
from cambist.services.sandbox.requests import FailPayout
from tests.support.payment_env import PaymentEnv
from tests.support.refunds import REQUIRED, RefundEnv

pytestmark = pytest.mark.slow

FULL = os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full"
SEEDS, ROUNDS = (30 if FULL else 1), 60
FIRST = int(os.environ.get("CAMBIST_TEST_SEED", "0"))
AT_ONCE = 4
DEEP_MAX = 16
SPENT = f"""
SELECT c.height - d.height + 1 FROM deposits d JOIN sandbox_chains c ON c.project_pk = d.scope AND c.chain = d.chain
WHERE d.chain = 'memory' AND d.scope = $1 AND d.status = 'confirmed' AND d.available_units + d.returned_units > 0
    AND d.height > c.height - {DEEP_MAX}
ORDER BY d.returned_units > 0 DESC, d.height DESC, d.id LIMIT 2
"""  # noqa: S608  a constant
"""How deep a reorganization takes each of some deposits of which something was spent, at best sent back."""
REFUNDABLE = """
SELECT payment_id FROM payments WHERE scope = $1 AND status IN ('paid', 'overpaid', 'underpaid', 'refunded') ORDER BY id
"""
SENT = """
SELECT tx_id FROM payouts p WHERE p.scope = $1 AND p.tx_id IS NOT NULL
    AND EXISTS (SELECT FROM refund_parts r WHERE r.payout_pk = p.id) ORDER BY p.id
"""
"""Refunds that have taken something from a deposit."""
LOCK_TIP = "SELECT FROM sandbox_chains WHERE chain = 'memory' AND project_pk = $1 FOR UPDATE"
HAVE_REVERT = "UPDATE sandbox_transfers SET reverts = true WHERE tx_id = ANY($1)"
UNMINED = """
SELECT p.payout_id FROM payouts p WHERE p.scope = $1 AND p.kind = 'refund' AND p.status NOT IN ('completed', 'failed')
    AND NOT EXISTS (SELECT FROM sandbox_transfers t WHERE t.tx_id = p.tx_id AND t.height IS NOT NULL) ORDER BY p.id
"""


class Chaos:
    """Does anything that a merchant, a customer or the chain may do, at any time."""

    def __init__(self, payment_env: PaymentEnv, refund_env: RefundEnv, random: Random) -> None:
        self.payment_env, self.refund_env, self.random = payment_env, refund_env, random
        self.payments: list[str] = []
        self.done: dict[str, int] = {}
        self.weights = {
            self.pay: 1, self.deposit: 6, self.refund: 4, self.decide: 4, self.fail: 1, self.send: 1, self.mine: 3,
            self.reorg: 3, self.pay_out: 1, self.pass_time: 0.5,
        }  # fmt: skip

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
        await self.refund_env.refund(self.random.choice(await self._asked(REFUNDABLE) or self.payments), **fields)

    async def pay_out(self) -> None:
        """Have everything leave the wallet."""
        available = (await self.payment_env.balance("USDX")).get("available", 0)
        if available:
            await self.refund_env.pay_out(Units(available))

    async def decide(self) -> None:
        waiting = await self.refund_env.waiting()
        if waiting:
            one = self.random.choice(waiting).deposit_id
            await self.random.choice((self.refund_env.accept, self.refund_env.release, self.refund_env.refund_deposit))(
                one
            )

    async def fail(self) -> None:
        """Have a refund that is in no block revert."""
        if found := await self._asked(UNMINED):
            failing = FailPayout(payout_id=self.random.choice(found))
            await self.payment_env.sandbox.fail_payout(self.payment_env.test, failing)

    async def _asked(self, statement: str) -> list[Any]:
        async with self.payment_env.db.autocommit() as conn:
            found = await conn.exec_driver_sql(statement, (self.payment_env.test.project_pk,))
            return list(found.scalars())

    async def send(self) -> None:
        await self.refund_env.send()

    async def mine(self) -> None:
        await self.payment_env.mine(self.random.randint(1, REQUIRED + 1))

    async def reorg(self) -> None:
        """Take a deposit of which something was spent, and have what sent it back revert from now on, by chance.

        That is written to the chain at once: whoever asked for it afterwards would meet blocks that others have mined.
        """
        depth = self.random.choice(await self._asked(SPENT) or [self.random.randint(1, 6)])
        reverting = [tx_id for tx_id in await self._asked(SENT) if self.random.random() < 1 / 2]
        async with self.payment_env.db.transaction() as conn:
            await conn.exec_driver_sql(LOCK_TIP, (self.payment_env.test.project_pk,))
            await conn.exec_driver_sql(HAVE_REVERT, (reverting,))
        await self.payment_env.reorg(depth, self.random.choice(("drop", "return")))

    async def pass_time(self) -> None:
        await self.payment_env.advance(self.random.choice((60, 3601, 2 * 86_400)))

    async def step(self) -> None:
        (action,) = self.random.choices(list(self.weights), list(self.weights.values()))
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
    assert {"deposit", "refund", "decide", "reorg"} <= set(chaos.done), chaos.done
    await payment_env.mine(2 * REQUIRED)
    await refund_env.finish()
    await refund_env.check_books()
    async with db.autocommit() as conn:
        still = await conn.exec_driver_sql(
            "SELECT status FROM payouts WHERE status NOT IN ('completed', 'failed') AND mode = 'sandbox'"
        )
        assert still.all() == []
