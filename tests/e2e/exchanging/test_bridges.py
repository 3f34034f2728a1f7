"""Bridges over HTTP between two chains with Across's own contracts, filled by a relayer, or by nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from cambist_across_node import Behaviour
from cambist_across_node.artifacts import pool as spoke_pool
from tests.support.exchange_story import Story, units_of
from tests.support.gateway import until
from tests.support.networks import Coin


@pytest.fixture
def named_coins(network, other) -> dict[str, tuple[Coin, Coin]]:
    return {
        "from here": (network.usdx, other.usdx),
        "from there": (other.usdx, network.usdx),
        "coin": (network.native, other.native),
    }


@pytest.fixture(scope="module")
async def story(story, network, other) -> Story:
    await story.rich({network.usdx: 500, other.usdx: 500, network.native: "0.5"})
    return story


@pytest.fixture(autouse=True)
def _as_ever(market) -> Iterator[None]:
    yield
    market.honest()


@pytest.mark.parametrize("way, amount", [("from here", 100), ("from there", 40), ("coin", "0.2")])
async def test_a_bridge_is_pending_until_the_relayer_fills_it(story: Story, named_coins, market, way, amount):
    sold, bought = named_coins[way]
    side = market.across.sides[bought.chain]
    market.across.relayer.behaviour = Behaviour.NEVER
    had = {coin: await story.holds(coin) for coin in (sold, bought)}
    quote = await story.trader.quote(sold, amount, bought)
    made = await story.trader.exchange(sold, amount, bought)
    assert (made["status"], made["kind"], made["provider"]) == ("pending", "bridge", "across")
    await deposited(story, made)
    await story.no_allowance(sold, market.across.sides[sold.chain].pool)
    if way == "from here":
        await story.is_clean()
    pending = await story.trader.read(made)
    assert (pending["status"], pending["destAmount"], pending["destTxHash"]) == ("pending", None, None)
    assert await story.holds(sold) == had[sold] - sold.units(amount)

    market.across.relayer.behaviour = Behaviour.FILL
    done = await story.trader.ended(made)
    came = units_of(bought, done["destAmount"])
    assert came >= units_of(bought, quote["dstAmountMin"])
    (deposit,) = [one for one in await market.across.sides[sold.chain].deposits() if one.tx_id == done["txHash"]]
    filled_by, _ = await side.find_fill(deposit)
    assert done["destTxHash"] == filled_by
    if bought.contract is not None:
        assert await story.received(bought, filled_by) == came
    await story.check(sold=(sold, had[sold] - sold.units(amount)), bought=(bought, had[bought] + came))
    told = await story.receiver.wait(made["txnId"], "exchange.succeeded")
    assert (told["destAmount"], told["destTxHash"]) == (done["destAmount"], filled_by)


@pytest.mark.parametrize("way, amounts", [("from there", [60, 25]), ("coin", ["0.1"])])
async def test_what_nobody_fills_comes_back_once(story: Story, named_coins, market, way, amounts):
    sold, bought = named_coins[way]
    back = sold if sold.contract is not None else market.weth
    await market.unfilled()
    had = {coin: await story.holds(coin) for coin in (sold, bought, back)}
    all_made = [await story.trader.exchange(sold, amount, bought) for amount in amounts]
    given = sum(sold.units(amount) for amount in amounts)
    for made in all_made:
        await deposited(story, made)
    await market.expire()
    for made in all_made:
        await story.now(made, "refunding")
        assert (await story.trader.read(made))["status"] == "pending"
    assert await story.holds(sold) == had[sold] - given
    await story.is_clean()

    (refund,) = await market.across.refund(sold.chain)
    for made in all_made:
        failed = await failed_at_last(story, made)
        assert failed["error"] == "Nobody paid it out on the other chain in time; what was given came back."
        assert failed["destAmount"] is None
        told = await story.receiver.wait(made["txnId"], "exchange.failed")
        assert (told["status"], told["error"]) == ("failed", failed["error"])
    assert await story.received(back, refund["transactionHash"]) == given
    came_back = {**had, sold: had[sold] - given}
    came_back[back] += given
    await story.check(**{coin.symbol + coin.chain: (coin, units) for coin, units in came_back.items()})
    market.across.relayer.behaviour = Behaviour.FILL
    await story.is_clean()
    await story.check(**{coin.symbol + coin.chain: (coin, units) for coin, units in came_back.items()})


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
    await story.check(came=(other.usdx, had + units_of(other.usdx, done["destAmount"])))


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
