"""Everything at once: payouts and batches are asked for while others end, and the books add up afterwards."""

import asyncio
from itertools import count
from random import Random

import pytest
from sqlalchemy import select

from cambist.db.models.payouts import Payout
from cambist.domain.intents import IntentKind
from cambist.domain.payouts import Status
from cambist.plugin import Units
from cambist.services.errors import ForbiddenError
from cambist.services.payouts.read import COLUMNS, payout_row
from tests.support.payout_env import PURPOSES, person

pytestmark = pytest.mark.slow

ROUNDS = 8
AT_ONCE = 25
FUNDS = 400


async def everything(payout_env):
    async with payout_env.db.transaction() as conn:
        rows = await conn.execute(select(*COLUMNS).order_by(Payout.id))
        return [payout_row(row) for row in rows]


async def one_thing(payout_env, random, payouts, numbers):
    amount = random.randint(1, 30)
    choice = random.randrange(8)
    try:
        if choice == 0:
            await payout_env.pay(amount=f"0.{amount:06}", header_key=f"key {random.randrange(20)}:{amount}")
        elif choice == 1:
            keys = random.sample(range(20), 5)
            rows = [{"toAddress": person(), "amount": "0.000003", "idempotencyKey": f"row {key}"} for key in keys]
            await payout_env.pay_all(rows)
        elif choice == 2:
            held = Units(random.randint(0, amount))
            await payout_env.queue(random.choice([IntentKind.WITHDRAWAL, IntentKind.REFUND]), amount, held_units=held)
        elif payouts:
            chosen = random.sample(payouts, min(len(payouts), 4))
            what = random.choice(["waiting", "broadcast", "final", "failed", "undone"])
            if what == "undone":
                chosen = [one for one in chosen if one.status == Status.COMPLETED]
            # What lives twice is told of elsewhere: here, every update is about a transaction of its own.
            fields = {} if what == "waiting" else {"tx_id": f"0x{next(numbers)}"}
            await payout_env.happens(what, *chosen, **fields)
    except ForbiddenError as error:
        return error.code
    return None


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_happens_at_once_no_unit_is_lost_or_made_and_nobody_waits_in_a_circle(payout_env, seed):
    random = Random(seed)
    await payout_env.fund(FUNDS)
    await payout_env.fund(FUNDS, "held")
    refusals = set()
    numbers = count()
    for _ in range(ROUNDS):
        payouts = await everything(payout_env)
        refusals |= set(
            await asyncio.gather(*[one_thing(payout_env, random, payouts, numbers) for _ in range(AT_ONCE)])
        )
    assert refusals <= {None, "INSUFFICIENT_BALANCE", "RECEIVABLE_OUTSTANDING"}
    payouts = await everything(payout_env)
    assert {payout.status for payout in payouts} >= {Status.COMPLETED, Status.FAILED, Status.BROADCAST}
    found = dict.fromkeys(PURPOSES, 0) | await payout_env.balances()
    under_way = [payout for payout in payouts if payout.status not in {Status.COMPLETED, Status.FAILED}]
    sent = sum(payout.units for payout in payouts if payout.status == Status.COMPLETED)
    assert found["pending"] == sum(payout.units for payout in under_way)
    assert found["custody_wallet"] == 2 * FUNDS - sent
    owed = found["available"] + found["pending"] + found["held"] + found["receivable"]
    assert owed == found["custody_wallet"]
    assert (
        len({payout.intent_pk for payout in payouts})
        == len(payouts)
        == await payout_env.payment_env.count("outbound_intents")
    )
