"""Coins that are converted by their rule, and payouts that give one token and bring another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from cambist_oneinch_node import Fault
from tests.support.exchange_story import Story, units_of
from tests.support.gateway import ADMIN_KEY, named, until
from tests.support.networks import Coin

PAID = 50


@pytest.fixture(scope="module")
async def story(story, network, other, market) -> Story:
    await story.rich({network.usdx: 400, other.usdx: 100, network.native: "0.1"})
    allowed = {"payoutSwapEnabled": True}
    await story.trader.put("/api/admin/settings", allowed, headers={"X-Admin-Key": ADMIN_KEY})
    return story


@pytest.fixture(scope="module")
def rules(network, other, market) -> Mapping[Coin, Coin]:
    return {other.usdx: network.usdx, market.usdt: network.native}


@pytest.fixture(scope="module", autouse=True)
async def converting(stories, story, rules) -> Story:
    """Begin the story of a merchant whose coins are converted within half a minute, while other stories are told.

    Those that have providers lie, or deposits expire, come after it has ended: they would strike it, too.
    """
    converting: Story = await stories()
    for source, dest in rules.items():
        rule = {"autoConvertEnabled": True, "autoConvertDestChain": dest.chain, "autoConvertDestToken": dest.symbol}
        await converting.trader.patch(f"/api/merchant/wallet/coins/{source.chain}/{source.symbol}/settings", rule)
    await converting.trader.fund(converting.market, dict.fromkeys(rules, PAID))
    return converting


@pytest.fixture(autouse=True)
def _as_ever(market) -> Iterator[None]:
    yield
    market.honest()


async def pay_out(story: Story, gives: Coin, amount: int | str, brings: Coin, to: str, **more: Any) -> dict[str, Any]:
    body = {
        **named(brings), "toAddress": to, "srcChain": gives.chain, "srcToken": gives.symbol, "srcAmount": str(amount),
        **more,
    }  # fmt: skip
    made: dict[str, Any] = (await story.trader.post("/api/merchant/wallet/payout", body, status=201))["payout"]
    return made


async def test_payouts_bring_their_recipients_another_token_in_one_operation_each(story: Story, network, other, market):
    """A token for a token, for coin and for a token on the other chain, and coin for a token, side by side."""
    usdx, usdt, eth, there = network.usdx, market.usdt, network.native, other.usdx
    asked = [(usdx, 30, usdt), (usdx, 40, eth), (eth, "0.01", usdx), (usdx, 35, there)]
    friends = [network.stranger() for _ in asked]
    expected = {coin: await story.holds(coin) for coin in (usdx, usdt, eth, there)}
    payouts = [await pay_out(story, *one, friend) for one, friend in zip(asked, friends, strict=True)]
    for payout, friend, (given, amount, brought) in zip(payouts, friends, asked, strict=True):
        assert (payout["status"], payout["swap"]["srcAmount"]) == ("requested", str(amount))
        done = await story.trader.completed(payout)
        got = await brought.network.onlooker.units(friend, brought)
        assert units_of(brought, done["amount"]) == got >= units_of(brought, payout["swap"]["minAmount"])
        if brought.contract is None:
            assert await given.network.onlooker.units(friend, given) == 0
        assert (await story.trader.read(done["swap"]))["mode"] == "payout"
        told = await story.receiver.wait(payout["payoutId"], "payout.completed")
        assert (told["txHash"], told["amount"]) == (done["txHash"], done["amount"])
        expected[given] -= given.units(amount)
    await story.check(expected)


async def test_coins_are_converted_by_their_rules_on_one_chain_and_across(converting: Story, rules):
    trader = converting.trader

    async def converted() -> dict[str, Any] | None:
        found = await trader.history(mode="auto")
        assert len(found) <= len(rules)
        done = {one["sourceToken"]: one for one in found if one["status"] == "succeeded"}
        return done if len(done) == len(rules) else None

    done = await until(converted, seconds=300)
    for source, dest in rules.items():
        one = done[source.symbol]
        assert (one["sourceChain"], one["sourceAmount"]) == (source.chain, str(PAID))
        assert (one["destChain"], one["destToken"]) == (dest.chain, dest.symbol)
        await converting.check({source: 0, dest: units_of(dest, one["destAmount"])})
        await converting.receiver.wait(one["txnId"], "exchange.succeeded")


async def test_a_payout_whose_call_would_pay_somebody_else_is_never_signed(story: Story, network, market):
    friend = network.stranger()
    had = await story.holds(network.usdx)
    market.oneinch.faults.add(Fault.OTHER_RECIPIENT, "swap")
    payout = await pay_out(story, network.usdx, 20, market.usdt, friend)
    await story.trader.waiting(payout["swap"], "provider")
    await story.expired(payout["swap"])
    told = await story.receiver.wait(payout["payoutId"], "payout.failed")
    assert told["status"] == "failed"
    assert await story.sent(payout["swap"]) == 0
    assert await network.onlooker.units(friend, market.usdt) == 0
    await story.check({network.usdx: had})
    await story.no_allowance(network.usdx, market.oneinch.router)


async def test_a_payout_across_chains_that_nobody_fills_comes_back(story: Story, network, other, market):
    friend = network.stranger()
    had = await story.holds(network.usdx)
    await market.unfilled()
    payout = await pay_out(story, network.usdx, 20, other.usdx, friend)
    await story.now(payout["swap"], "filling")
    await market.expire()
    await story.now(payout["swap"], "refunding")
    await market.across.refund(network.chain)

    async def failed() -> bool:
        await story.later(payout["swap"])
        return (await story.trader.read(payout["swap"]))["status"] == "failed"

    await until(failed)
    told = await story.receiver.wait(payout["payoutId"], "payout.failed")
    assert told["status"] == "failed"
    assert await other.onlooker.units(friend, other.usdx) == 0
    await story.check({network.usdx: had})
