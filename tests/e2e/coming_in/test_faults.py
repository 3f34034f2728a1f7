"""A provider that hangs, fails, lags or lies: nothing missed, nothing doubled, and the other chain as fast as ever."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.networks import NETWORKS

FAULTS = [pytest.param(name, fault, id=f"{name}-{fault}") for name, kind in NETWORKS.items() for fault in kind.faults]


@pytest.mark.parametrize("network, fault", FAULTS, indirect=["network"], scope="module")
async def test_what_is_paid_during_a_fault_is_credited_exactly(merchant, network, other, usdx, endpoint, books, fault):
    before = float((await merchant.balance(usdx)).get("available", 0))
    here, there = await merchant.pay(usdx, 5), await merchant.pay(other.usdx, 5)
    endpoint.faults = {fault}
    try:
        await usdx.send(here["depositAddress"], 5)
        await network.mine(4)
        await other.usdx.send(there["depositAddress"], 5)
        await other.mine(4)
        await merchant.until(there, "paid", seconds=180)
        await asyncio.sleep(0.5)
    finally:
        endpoint.faults = set()
    paid = await merchant.until(here, "paid", seconds=180)
    assert paid["receivedAmount"] == "5"
    assert float((await merchant.balance(usdx))["available"]) - before == pytest.approx(5)


@pytest.mark.parametrize("network", ["anvil"], indirect=True, scope="module")
async def test_a_second_endpoint_takes_over_from_one_that_hangs(merchant, other, first_of_two):
    first_of_two.faults = {other.hanging}
    try:
        payment = await merchant.pay(other.usdx, 5)
        await other.usdx.send(payment["depositAddress"], 5)
        await other.mine(4)
        await merchant.until(payment, "paid", seconds=180)
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
