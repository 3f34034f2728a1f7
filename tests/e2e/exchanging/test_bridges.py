"""Bridges over HTTP between two chains with Across's own contracts, filled by a relayer, or by nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from cambist_across_node import Behaviour
from cambist_across_node.artifacts import pool as spoke_pool
from tests.support.exchange_story import Story, units_of
from tests.support.gateway import until


@pytest.fixture(scope="module")
async def story(story, network, other) -> Story:
    await story.rich({network.usdx: 500, other.usdx: 500, network.native: "0.5"})
    return story


@pytest.fixture(autouse=True)
def _as_ever(market) -> Iterator[None]:
    yield
    market.honest()


async def test_bridges_are_pending_until_the_relayer_fills_them(story: Story, network, other, market):
    """Of a token from either chain, and of coin, side by side."""
    asked = [(network.usdx, 100, other.usdx), (other.usdx, 40, network.usdx), (network.native, "0.2", other.native)]
    market.across.relayer.behaviour = Behaviour.NEVER
    expected = {coin: await story.holds(coin) for coin in (network.usdx, other.usdx, network.native, other.native)}
    quotes = [await story.trader.quote(*one) for one in asked]
    all_made = [await story.trader.exchange(*one) for one in asked]
    for made, (sold, amount, _) in zip(all_made, asked, strict=True):
        assert (made["status"], made["kind"], made["provider"]) == ("pending", "bridge", "across")
        await deposited(story, made)
        await story.no_allowance(sold, market.across.sides[sold.chain].pool)
        expected[sold] -= sold.units(amount)
    await story.is_clean()
    for made in all_made:
        pending = await story.trader.read(made)
        assert (pending["status"], pending["destAmount"], pending["destTxHash"]) == ("pending", None, None)
    assert {coin: await story.holds(coin) for coin in expected} == expected

    market.across.relayer.behaviour = Behaviour.FILL
    for made, quote, (sold, _, bought) in zip(all_made, quotes, asked, strict=True):
        done = await story.trader.ended(made)
        came = units_of(bought, done["destAmount"])
        assert came >= units_of(bought, quote["dstAmountMin"])
        (deposit,) = [one for one in await market.across.sides[sold.chain].deposits() if one.tx_id == done["txHash"]]
        filled_by, _ = await market.across.sides[bought.chain].find_fill(deposit)
        assert done["destTxHash"] == filled_by
        if bought.contract is not None:
            assert await story.received(bought, filled_by) == came
        expected[bought] += came
        told = await story.receiver.wait(made["txnId"], "exchange.succeeded")
        assert (told["destAmount"], told["destTxHash"]) == (done["destAmount"], filled_by)
    await story.check(expected)


async def test_what_nobody_fills_comes_back_once(story: Story, network, other, market):
    """Two deposits of a token by one transfer, and coin of the other chain as the token that wraps it."""
    there, here, coin, wrapped = other.usdx, network.usdx, network.native, market.weth
    asked = [(there, 60, here), (there, 25, here), (coin, "0.1", other.native)]
    await market.unfilled()
    expected = {one: await story.holds(one) for one in (there, here, coin, other.native, wrapped)}
    all_made = [await story.trader.exchange(*one) for one in asked]
    for made in all_made:
        await deposited(story, made)
    await market.expire()
    for made in all_made:
        await story.now(made, "refunding")
        assert (await story.trader.read(made))["status"] == "pending"
    away = {**expected, there: expected[there] - there.units(85), coin: expected[coin] - coin.units("0.1")}
    assert {one: await story.holds(one) for one in away} == away
    await story.is_clean()

    for back, units in ((there, there.units(85)), (wrapped, coin.units("0.1"))):
        (refund,) = await market.across.refund(back.chain)
        assert await story.received(back, refund["transactionHash"]) == units
    for made in all_made:
        failed = await failed_at_last(story, made)
        assert failed["error"] == "Nobody paid it out on the other chain in time; what was given came back."
        assert failed["destAmount"] is None
        told = await story.receiver.wait(made["txnId"], "exchange.failed")
        assert (told["status"], told["error"]) == ("failed", failed["error"])
    expected |= {coin: away[coin], wrapped: expected[wrapped] + coin.units("0.1")}
    await story.check(expected)
    market.across.relayer.behaviour = Behaviour.FILL
    await story.is_clean()
    await story.check(expected)


async def test_what_only_looks_like_a_fill_is_none(story: Story, network, other, market):
    side, relayer = market.across.sides[other.chain], market.across.relayer
    before = await fills(other, side.pool)
    relayer.behaviour = Behaviour.WRONG_RECIPIENT
    had = await story.holds(other.usdx)
    made = await story.trader.exchange(network.usdx, 30, other.usdx)

    async def more() -> bool:
        return await fills(other, side.pool) > before

    await until(more)
    await deposited(story, made)
    for _ in range(5):
        await story.later(made)
        await asyncio.sleep(0.5)
    assert (await story.trader.read(made))["status"] == "pending"
    assert await story.holds(other.usdx) == had
    relayer.behaviour = Behaviour.FILL
    done = await story.trader.ended(made)
    await story.check({other.usdx: had + units_of(other.usdx, done["destAmount"])})


async def fills(network, pool: str) -> int:
    """Count what the contract calls fills."""
    asked = {"address": pool, "fromBlock": 0, "topics": ["0x" + spoke_pool().topic("FilledRelay").hex()]}
    return len(await asyncio.to_thread(network.onlooker.client.eth.get_logs, asked))


async def failed_at_last(story: Story, made) -> dict:
    """Return an exchange that fails, which is looked at more often than once a minute."""

    async def poll() -> bool:
        await story.later(made)
        return (await story.trader.read(made))["status"] == "failed"

    await until(poll)
    return await story.trader.read(made)


async def deposited(story: Story, made) -> None:
    """Wait until the deposit of a bridge is final and waits to be filled."""
    await story.now(made, "filling")

    async def sent() -> bool:
        return (await story.trader.read(made))["txHash"] is not None

    await until(sent)
