"""Whatever the aggregator does, the plugin refuses it before anything is signed."""

from __future__ import annotations

import pytest

from cambist.plugin import ExchangeRefusedError, ProviderUnavailableError
from cambist_oneinch_node import STRANGER, Fault

from .conftest import connected
from .test_swaps import trade

pytestmark = pytest.mark.slow

BROKEN = {
    Fault.SLOW: "did not answer within",
    Fault.HTTP_500: "answers with status 500",
    Fault.HTTP_429: "asks for fewer requests",
    Fault.GARBAGE: "something else than",
    Fault.REDIRECT: "sends us elsewhere",
    Fault.ENDLESS: "more than 1000000 bytes",
}
LIES = {
    Fault.OTHER_ROUTER: "not the pinned router",
    Fault.OTHER_RECIPIENT: "another recipient than",
    Fault.OTHER_SPENDER: "flags allow Permit2",
    Fault.MORE_THAN_ASKED: "another sold than",
    Fault.LESS_THAN_ASKED: "another sold than",
    Fault.OUTPUT_OF_ONE: "guarantees less than was asked for",
}


def test_every_fault_has_its_test():
    assert {*BROKEN, *LIES, Fault.STALE_QUOTE} == set(Fault)


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("path", ["quote", "swap"])
async def test_a_broken_aggregator_is_away_and_back_when_it_is_mended(chain, oneinch, path, fault):
    async with connected(oneinch, chain, timeout_ms=2000) as gateway:
        request = gateway.request("USDT", "USDC", 1_000_000)
        quote = await gateway.provider.quote(request)
        oneinch.faults.add(fault, path, times=1)
        asking = (
            gateway.provider.quote(request) if path == "quote" else gateway.provider.build(request, quote.units_min)
        )
        with pytest.raises(ProviderUnavailableError, match=BROKEN[fault]) as away:
            await asking
        if fault is Fault.HTTP_429:
            assert away.value.retry_after == pytest.approx(7)
    async with connected(oneinch, chain) as gateway:
        assert gateway.read(await gateway.provider.build(request, quote.units_min)) is not None


@pytest.mark.parametrize("fault", LIES)
@pytest.mark.parametrize("sells, buys", [("USDT", "USDC"), ("ETH", "LINK"), ("LINK", "ETH")])
async def test_a_call_that_differs_from_what_was_asked_is_refused(gateway, oneinch, sells, buys, fault):
    request = gateway.request(sells, buys, 1_000_000_000)
    quote = await gateway.provider.quote(request)
    oneinch.faults.add(fault, "swap")
    with pytest.raises(ProviderUnavailableError, match=LIES[fault]):
        await gateway.provider.build(request, quote.units_min)


async def test_a_stale_quote_is_no_swap(chain, gateway, oneinch):
    request = gateway.request("LINK", "USDT", 100 * 10**18)
    before = await gateway.provider.quote(request)
    oneinch.faults.add(Fault.STALE_QUOTE)
    trade(chain, oneinch, "LINK", 1_000 * 10**18)
    assert await gateway.provider.quote(request) == before
    with pytest.raises(ExchangeRefusedError) as refused:
        await gateway.provider.build(request, before.units_min)
    assert refused.value.reason == "price_moved"
    oneinch.faults.clear()
    assert (await gateway.provider.quote(request)).units < before.units_min


async def test_the_spender_is_the_pinned_one_whatever_the_api_says(chain, gateway, client, oneinch):
    oneinch.faults.add(Fault.OTHER_SPENDER, "approve/spender", "approve/transaction")
    _, body, _ = await client.ask("approve/spender")
    assert body["address"] == STRANGER.lower()
    _, body, _ = await client.ask("approve/transaction", tokenAddress=chain.address("USDT"))
    assert STRANGER[2:].lower() in body["data"]
    request = gateway.request("USDT", "USDC", 1_000_000)
    call = await gateway.provider.build(request, 1)
    assert gateway.read(call).spender == oneinch.router
    assert gateway.reader.spenders(chain.info) == {oneinch.router}


async def test_a_fault_meets_as_many_requests_as_it_is_told_to(client, oneinch):
    oneinch.faults.add(Fault.HTTP_500, "tokens", times=2)
    assert [(await client.ask("tokens"))[0] for _ in range(3)] == [500, 500, 200]
    assert (await client.ask("approve/spender"))[0] == 200
