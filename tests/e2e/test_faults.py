"""A provider that hangs, fails, lags or lies: nothing missed, nothing doubled, and the other chain as fast as ever."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from cambist_evm.testing import Fault, FaultyProxy
from tests.e2e.conftest import chain_settings
from tests.support.gateway import GatewayProcess, Merchant, settings_text

ONE = 10**6
FAULTS = [
    Fault.TIMEOUT, Fault.HTTP_500, Fault.HTTP_429, Fault.HTML, Fault.TRUNCATED, Fault.WRONG_ID, Fault.NULL_BLOCK,
    Fault.EMPTY_RECEIPTS, Fault.SHORT_RECEIPTS, Fault.OTHER_RECEIPTS, Fault.HEAD_BACK, Fault.HEAD_FROZEN,
    Fault.WRONG_CHAIN_ID, Fault.REMOVED_LOG,
]  # fmt: skip


@pytest.fixture(scope="module")
async def proxy(node):
    async with FaultyProxy(node.url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory, story_database_url, story_redis_url, proxy, usdx, other_node, other_usdx):
    """Ethereum behind a faulty proxy as its only endpoint; Base behind an honest one."""
    settings = settings_text(
        database_url=story_database_url,
        redis_url=story_redis_url,
        chains={
            "ethereum": {**chain_settings(proxy.url, usdx), "request_timeout_ms": 1000},
            "base": chain_settings(other_node.url, other_usdx),
        },
    )
    async with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings) as gateway:
        yield gateway


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_what_is_paid_during_a_fault_is_credited_exactly(
    merchant, node, usdx, other_node, other_usdx, proxy, books, fault
):
    before = float((await merchant.balance("ethereum", "USDX")).get("available", 0))
    here, there = await merchant.pay("ethereum", "USDX", "5"), await merchant.pay("base", "USDX", "5")
    proxy.faults = {fault}
    try:
        await usdx.send("transfer", here["depositAddress"], 5 * ONE)
        await node.mine(4)
        await other_usdx.send("transfer", there["depositAddress"], 5 * ONE)
        await other_node.mine(4)
        await merchant.until(there, "paid", seconds=20)
        await asyncio.sleep(0.5)
    finally:
        proxy.faults = set()
    paid = await merchant.until(here, "paid", seconds=60)
    assert paid["receivedAmount"] == "5"
    assert float((await merchant.balance("ethereum", "USDX"))["available"]) - before == pytest.approx(5)


async def test_a_second_endpoint_takes_over_from_one_that_hangs(tmp_path, database_url, story_redis_url, node, usdx):
    async with FaultyProxy(node.url, Fault.TIMEOUT) as hanging, aiohttp.ClientSession() as session:
        chain = {**chain_settings(node.url, usdx), "rpc_urls": [hanging.url, node.url], "request_timeout_ms": 1000}
        settings = settings_text(database_url=database_url, redis_url=story_redis_url, chains={"ethereum": chain})
        async with GatewayProcess(tmp_path, settings) as gateway:
            merchant = await Merchant(gateway.url, session).open()
            payment = await merchant.pay("ethereum", "USDX", "5")
            await usdx.send("transfer", payment["depositAddress"], 5 * ONE)
            await node.mine(4)
            await merchant.until(payment, "paid", seconds=20)


async def test_payments_handed_out_while_slow_scans_run_are_not_missed(merchant, node, usdx, proxy, books):
    """Every answer takes its time, blocks come meanwhile, and each payment is paid as soon as it is made."""
    proxy.latency_s = 0.3
    payments = []
    try:
        for _ in range(10):
            payment = await merchant.pay("ethereum", "USDX", "1")
            await usdx.send("transfer", payment["depositAddress"], ONE)
            await node.mine()
            payments.append(payment)
            await asyncio.sleep(0.07)
    finally:
        proxy.latency_s = 0.0
    await node.mine(4)
    for payment in payments:
        assert (await merchant.until(payment, "paid"))["receivedAmount"] == "1"
