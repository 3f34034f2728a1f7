"""A 1inch or an Across that is slow or away: everything else goes on, and what waited for it goes on afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from cambist_across_node import Behaviour
from cambist_oneinch_node import Fault
from tests.support.exchange_story import Story, units_of


@pytest.fixture(scope="module")
async def story(story, network, other, market) -> Story:
    await story.rich({network.usdx: 300, other.usdx: 100})
    return story


@pytest.fixture(autouse=True)
def _honest(market) -> Iterator[None]:
    yield
    market.honest()


async def test_payments_payouts_and_bridges_go_on_while_a_swap_waits_for_its_provider(
    story: Story, network, other, market, valkey
):
    """Redis, in which requests to providers are counted, is away meanwhile and comes back empty."""
    trader, usdx = story.trader, network.usdx
    market.oneinch.faults.add(Fault.SLOW, "swap")
    had = {coin: await story.holds(coin) for coin in (usdx, other.usdx, market.usdt)}
    async with valkey.gone():
        swap = await trader.exchange(usdx, 30, market.usdt)
        friend = network.stranger()
        payment = await trader.pay(usdx, 11)
        await market.give(usdx, payment["depositAddress"], usdx.units(11))
        _, bridge, _ = await asyncio.gather(
            trader.completed(await trader.pay_out(usdx, 7, friend)),
            trader.ended(await trader.exchange(other.usdx, 20, usdx)),
            trader.until(payment, "paid"),
        )
    assert (await trader.read(swap))["status"] == "pending"
    assert await network.onlooker.holds(friend, usdx, 7)
    assert await story.sent(swap) == 0

    market.honest()
    await story.later(swap)
    done = await trader.ended(swap)
    came = units_of(usdx, bridge["destAmount"])
    await story.until_holds(usdx, had[usdx] - usdx.units(30 + 7 - 11) + came)
    await story.check(
        {
            other.usdx: had[other.usdx] - usdx.units(20),
            market.usdt: had[market.usdt] + units_of(market.usdt, done["destAmount"]),
        }
    )


async def test_quotes_of_one_provider_do_not_wait_for_another(story: Story, network, other, market):
    market.oneinch.faults.add(Fault.SLOW, "quote")
    slow = asyncio.create_task(story.trader.exchange(network.usdx, 5, market.usdt, status=503))
    quote = await story.trader.quote(network.usdx, 5, other.usdx)
    assert quote["provider"] == "across"
    assert not slow.done()
    assert (await slow)["code"] == "EXCHANGE_UNAVAILABLE"


async def test_a_bridge_under_way_ends_while_its_server_is_away(story: Story, network, other, market):
    relayer = market.across.relayer
    relayer.behaviour = Behaviour.NEVER  # or it might be filled before anybody sees that it waits for that
    made = await story.trader.exchange(other.usdx, 20, network.usdx)
    await story.now(made, "filling")
    await market.across.server.stop()
    relayer.behaviour = Behaviour.FILL
    try:
        await story.trader.ended(made)
        refused = await story.trader.exchange(other.usdx, 20, network.usdx, status=503)
        assert refused["code"] == "EXCHANGE_UNAVAILABLE"
    finally:
        await market.across.server.start()
