"""Everybody asks at once: a balance is spent once, and a key is for one payout."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tests.support.gateway import named

# What is decided here is decided by the database, on every kind of chain alike.
pytestmark = pytest.mark.parametrize("network", ["anvil"], indirect=True, scope="module")

REQUESTS, COVERED, REPETITIONS = 200, 50, 100
PATH = "/api/merchant/wallet/payout"


@pytest.fixture(autouse=True)
def world(station, blocks) -> None:
    """Let both chains run, and the gas station pay."""


@pytest.fixture
async def rich(merchant, customer, usdx):
    """Give the merchant fifty."""
    assert await merchant.balance(usdx) == {}
    payment = await merchant.pay(usdx, COVERED)
    await customer.pay(payment["depositAddress"], usdx, COVERED)
    await merchant.until(payment, "paid", seconds=180)
    return merchant


async def ask(merchant, body: dict, key: str | None = None) -> tuple[int, dict]:
    """Ask as clients do, again where the gateway is busy: nothing was done then, whether there is a key or not."""
    headers = merchant.headers | ({} if key is None else {"Idempotency-Key": key})
    while True:
        async with merchant.session.post(merchant.url + PATH, json=body, headers=headers) as response:
            answer = await response.json()
            if (response.status, answer.get("code")) != (429, "BUSY"):
                return response.status, answer
        await asyncio.sleep(int(response.headers["Retry-After"]))


async def test_two_hundred_payouts_at_once_of_a_balance_for_fifty_are_fifty(rich, network, usdx, story_db, gateway):
    to_address = network.stranger()
    body = {**named(usdx), "amount": "1", "toAddress": to_address}
    spent = asyncio.Event()

    async def watch() -> int:
        """Look at the balance all the time, for one that is below zero."""
        polls = 0
        while not spent.is_set():
            async with story_db.transaction() as conn:
                below = await conn.exec_driver_sql(
                    "SELECT count(*) FROM ledger_accounts WHERE purpose IN ('available', 'pending', 'held')"
                    " AND balance < 0"
                )
                assert below.scalar_one() == 0
            polls += 1
            await asyncio.sleep(0.02)
        return polls

    watching = asyncio.create_task(watch())
    answers = await asyncio.gather(*(ask(rich, body) for _ in range(REQUESTS)))
    spent.set()
    assert await watching > 0
    assert Counter((status, answer.get("code")) for status, answer in answers) == {
        (201, None): COVERED,
        (403, "INSUFFICIENT_BALANCE"): REQUESTS - COVERED,
    }
    assert (await rich.balance(usdx)).get("available", "0") == "0"
    made = [answer["payout"] for status, answer in answers if status == 201]
    assert len({payout["payoutId"] for payout in made}) == COVERED
    for payout in made:
        await rich.completed(payout)
    assert await network.onlooker.holds(to_address, usdx, COVERED)
    assert await rich.balance(usdx) == {}
    await gateway.reconcile()


async def test_one_key_sent_a_hundred_times_at_once_is_one_payout(rich, network, usdx, gateway):
    to_address = network.stranger()
    body = {**named(usdx), "amount": str(COVERED), "toAddress": to_address}
    answers = await asyncio.gather(*(ask(rich, body, "salary") for _ in range(REPETITIONS)))
    assert Counter((status, answer.get("idempotent")) for status, answer in answers) == {
        (201, None): 1,
        (200, True): REPETITIONS - 1,
    }
    (payout_id,) = {answer["payout"]["payoutId"] for _, answer in answers}
    other = await ask(rich, body | {"amount": "1"}, "salary")
    assert (other[0], other[1]["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")
    await rich.completed({"payoutId": payout_id})
    assert await network.onlooker.holds(to_address, usdx, COVERED)
    assert await rich.balance(usdx) == {}
    await gateway.reconcile()
