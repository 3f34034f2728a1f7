"""A 1inch and an Across that lie or fail: what they want is not signed, and what they say is not believed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from decimal import Decimal

import pytest

from cambist_across_node import Behaviour
from cambist_across_node import Fault as Across
from cambist_oneinch_node import Fault as OneInch
from tests.support.exchange_story import Story, units_of
from tests.support.gateway import until

TOO_LATE = "The least output that was promised could not be had in time."
GIVEN = 20


@pytest.fixture(scope="module")
async def story(story, network, other, market) -> Story:
    await story.rich({network.usdx: 300, other.usdx: 300, market.usdt: 300})
    return story


@pytest.fixture(autouse=True)
def _honest(market) -> Iterator[None]:
    yield
    market.honest()


class Refused:
    """What was logged since the story began."""

    def __init__(self, story: Story) -> None:
        self._log = story.gateway.log
        self._begun = self._log.stat().st_size

    def lines(self, event: str) -> list[str]:
        return [line for line in self._log.read_bytes()[self._begun :].decode().splitlines() if event in line]


@asynccontextmanager
async def nothing_leaves(story: Story, *coins) -> AsyncIterator[None]:
    """Check that the wallet has all that it had, and that nobody may take anything of it."""
    had = {coin: await story.holds(coin) for coin in coins}
    yield
    await story.check(had)
    for coin in coins:
        spender = story.market.oneinch.router if coin.network is story.market.here else None
        for one in (spender, story.market.across.sides[coin.chain].pool):
            if one is not None:
                await story.no_allowance(coin, one)


async def test_a_swap_that_is_not_what_was_asked_for_is_never_signed(story: Story, network, market):
    log = Refused(story)
    async with nothing_leaves(story, network.usdx, market.usdt):
        market.oneinch.faults.add(OneInch.OTHER_RECIPIENT, "swap")
        made = await story.trader.exchange(network.usdx, GIVEN, market.usdt)
        await story.trader.waiting(made, "provider")
        (reason, *_) = log.lines("exchange_waits")
        assert "with another recipient than was asked for" in reason
        failed = await story.expired(made)
        assert (failed["error"], failed["txHash"], failed["destAmount"]) == (TOO_LATE, None, None)
        assert await story.sent(made) == 0


async def test_a_1inch_that_makes_no_sense_is_told_at_once(story: Story, network, market):
    async with nothing_leaves(story, network.usdx):
        market.oneinch.faults.add(OneInch.GARBAGE, "quote")
        refused = await story.trader.exchange(network.usdx, GIVEN, market.usdt, status=503)
        assert (refused["code"], refused["error"]) == ("EXCHANGE_UNAVAILABLE", "1inch does not answer right now.")


async def test_a_stale_quote_is_never_sold_at_another_price(story: Story, network, market):
    eth, usdt = network.native, market.usdt
    before = await story.trader.quote(usdt, GIVEN, eth)
    had = await network.onlooker.units(network.accounts[7], eth)
    await market.trade(usdt, 500_000, eth)
    bought = await network.onlooker.units(network.accounts[7], eth) - had
    async with nothing_leaves(story, usdt):
        market.oneinch.faults.add(OneInch.STALE_QUOTE, "quote")
        made = await story.trader.exchange(usdt, GIVEN, eth)
        assert units_of(eth, made["destAmountMin"]) == int(before["dstAmountMinRaw"])
        await story.trader.waiting(made, "provider")
        failed = await story.expired(made)
        assert (failed["error"], failed["txHash"]) == (TOO_LATE, None)
        market.honest()
        refused = await story.trader.exchange(usdt, GIVEN, eth, status=400)
        assert refused["code"] == "PRICE_BELOW_GUARD"
    await market.trade(eth, Decimal(bought).scaleb(-18), usdt)


async def test_a_token_that_keeps_a_share_of_each_transfer_is_not_bought(story: Story, network, market):
    async with nothing_leaves(story, network.usdx):
        made = await story.trader.exchange(network.usdx, GIVEN, market.skim, slippage=1.5)

        async def failed() -> bool:
            await story.later(made)
            return (await story.trader.read(made))["status"] == "failed"

        await until(failed)
        found = await story.trader.read(made)
        assert found["error"].startswith("The chain would refuse it: it would bring ")
        assert await story.sent(made) == 0


@pytest.mark.parametrize(
    "fault, status, code",
    [
        (Across.OTHER_POOL, 503, "EXCHANGE_UNAVAILABLE"),
        (Across.OUTPUT_OF_ONE, 400, "EXCHANGE_REFUSED"),
    ],
)
async def test_a_bridge_that_lies_at_once_is_refused_at_once(story: Story, network, other, market, fault, status, code):
    async with nothing_leaves(story, network.usdx):
        market.across.faults.add(fault)
        refused = await story.trader.exchange(network.usdx, GIVEN, other.usdx, status=status)
        assert refused["code"] == code


async def test_a_bridge_that_lies_to_the_worker_is_never_signed(story: Story, network, other, market):
    log = Refused(story)
    async with nothing_leaves(story, network.usdx, other.usdx):
        (worker,) = story.gateway.workers()
        worker.suspend()
        try:
            made = await story.trader.exchange(network.usdx, GIVEN, other.usdx)
            market.across.faults.add(Across.OTHER_POOL)
        finally:
            worker.resume()
        await story.trader.waiting(made, "provider")
        (line, *_) = log.lines("exchange_waits")
        assert "Across offers a contract that is not the pinned one" in line
        assert (await story.expired(made))["error"] == TOO_LATE
        assert await story.sent(made) == 0


async def test_the_chains_decide_what_became_of_a_bridge_whatever_its_server_says(story: Story, network, other, market):
    market.across.relayer.behaviour = Behaviour.NEVER
    had = await story.holds(network.usdx), await story.holds(other.usdx)
    made = await story.trader.exchange(network.usdx, GIVEN, other.usdx)
    await story.now(made, "filling")
    for lie in (Across.SAYS_EXPIRED, Across.SAYS_REFUNDED, Across.SAYS_FILLED):
        await lied_to(story, made, lie)
        pending = await story.trader.read(made)
        assert (pending["status"], pending["destAmount"]) == ("pending", None), lie
    await story.is_clean()

    market.across.faults.clear()
    market.across.faults.add(Across.SAYS_REFUNDED)
    market.across.relayer.behaviour = Behaviour.FILL

    async def ended() -> bool:
        await story.later(made)
        return (await story.trader.read(made))["status"] != "pending"

    await until(ended)
    done = await story.trader.ended(made)
    came = units_of(other.usdx, done["destAmount"])
    assert await story.received(other.usdx, done["destTxHash"]) == came
    await story.check({network.usdx: had[0] - network.usdx.units(GIVEN), other.usdx: had[1] + came})


async def lied_to(story: Story, made, lie: Across) -> None:
    """Have the server say this of an exchange at least twice: later than a few minutes it is asked."""
    calls = story.market.across.server.calls
    story.market.across.faults.clear()
    story.market.across.faults.add(lie, "deposit/status")
    heard = calls["deposit/status"]

    async def asked() -> bool:
        await story.later(made, broadcast_at="now() - interval '1 hour'")
        return calls["deposit/status"] >= heard + 2

    await until(asked)
