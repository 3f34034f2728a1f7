"""A provider that hangs, fails, lags or lies: nothing missed, nothing doubled, and the other chain as fast as ever.

Payments, an end user's account and a tracker must all bear it.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.support.networks import NETWORKS
from tests.support.watched import watched

FAULTS = [pytest.param(name, fault, id=f"{name}-{fault}") for name, kind in NETWORKS.items() for fault in kind.faults]


@pytest.fixture(scope="module")
async def tracker(merchant, network):
    async with watched(merchant, network.chain) as tracker:
        yield tracker


@pytest.fixture(scope="module")
async def account(merchant, network):
    """Give an end user an account, to which each of these stories brings 1."""
    body = {"externalId": "user-of-faults", "chains": [network.chain]}
    return (await merchant.post("/api/account", body, status=201))["account"]


@pytest.mark.parametrize("network, fault", FAULTS, indirect=["network"], scope="module")
async def test_what_is_paid_during_a_fault_is_credited_and_told_exactly(
    merchant, network, other, usdx, endpoint, books, tracker, account, fault
):
    before = float((await merchant.balance(usdx)).get("available", 0))
    here, there = await merchant.pay(usdx, 5), await merchant.pay(other.usdx, 5)
    user = account["addresses"][0]["address"]
    had = await balance_of(merchant, account)
    await tracker.add(here["depositAddress"], *([user] if had == 0 else []))
    endpoint.faults = {fault}
    try:
        sent = [(await usdx.send(to, amount), to) for to, amount in ((here["depositAddress"], 5), (user, 1))]
        await network.mine(4)
        await other.usdx.send(there["depositAddress"], 5)
        await other.mine(4)
        await merchant.until(there, "paid", seconds=180)
        await asyncio.sleep(0.5)
    finally:
        endpoint.faults = set()
    paid = await merchant.until(here, "paid", seconds=180)
    assert paid["receivedAmount"] == "5"
    for tx_id, address in sent:
        await tracker.told(tx_id, address, "detected", "confirmed")
    assert await balance_of(merchant, account) == had + 1
    assert float((await merchant.balance(usdx))["available"]) - before == pytest.approx(6)


async def balance_of(merchant, account):
    found = (await merchant.get(f"/api/account/{account['accountId']}/balances"))["balances"]
    return sum(int(one["balance"]) for one in found)


@pytest.mark.parametrize("network", ["anvil"], indirect=True, scope="module")
async def test_a_second_endpoint_takes_over_from_one_that_hangs(merchant, other, first_of_two):
    first_of_two.faults = {other.hanging}
    try:
        payment = await merchant.pay(other.usdx, 5)
        async with watched(merchant, other.chain, payment["depositAddress"]) as tracker:
            tx_id = await other.usdx.send(payment["depositAddress"], 5)
            await other.mine(4)
            await merchant.until(payment, "paid", seconds=180)
            await tracker.told(tx_id, payment["depositAddress"], "detected", "confirmed")
    finally:
        first_of_two.faults = set()


async def test_payments_handed_out_while_slow_scans_run_are_not_missed(merchant, network, usdx, endpoint, books):
    """Every answer takes its time, blocks come meanwhile, and each payment is paid as soon as it is made."""
    endpoint.latency_s = 0.3
    payments = []
    try:
        for _ in range(10):
            payment = await merchant.pay(usdx, 1)
            await usdx.send(payment["depositAddress"], 1)
            await network.mine()
            payments.append(payment)
            await asyncio.sleep(0.07)
    finally:
        endpoint.latency_s = 0.0
    await network.mine(4)
    for payment in payments:
        assert (await merchant.until(payment, "paid"))["receivedAmount"] == "1"
