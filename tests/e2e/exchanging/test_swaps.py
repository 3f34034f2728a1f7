"""Swaps over HTTP on a real market: tokens for tokens, for coin, and coin for tokens."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.exchange_story import Story, units_of
from tests.support.gateway import until


@pytest.fixture(scope="module")
async def story(story, network, market) -> Story:
    await story.rich({network.usdx: 500, network.native: "0.5"})
    return story


async def test_swaps_bring_what_the_chain_shows_and_leave_no_allowance(story: Story, network, market):
    """A token for a token and for coin, and coin for a token, side by side."""
    usdx, usdt, eth = network.usdx, market.usdt, network.native
    asked = [(usdx, 100, usdt), (usdx, 50, eth), (eth, "0.1", usdx)]
    expected = {coin: await story.holds(coin) for coin in (usdx, usdt, eth)}
    quotes = [await story.trader.quote(*one) for one in asked]
    all_made = [await story.trader.exchange(*one) for one in asked]
    for made, quote, (sold, amount, bought) in zip(all_made, quotes, asked, strict=True):
        assert (quote["provider"], quote["srcAmountRaw"]) == ("1inch", str(sold.units(amount)))
        assert (made["status"], made["mode"], made["kind"], made["destAmount"]) == ("pending", "manual", "swap", None)

        done = await story.trader.ended(made)
        came = units_of(bought, done["destAmount"])
        assert came >= units_of(bought, quote["dstAmountMin"])
        assert done["txHash"] == done["destTxHash"]
        if bought.contract is not None:
            assert await story.received(bought, done["destTxHash"]) == came
        expected[sold] -= sold.units(amount)
        expected[bought] += came
        told = await story.receiver.wait(made["txnId"], "exchange.succeeded")
        assert (told["status"], told["destAmount"]) == ("succeeded", done["destAmount"])
    await story.no_allowance(usdx, market.oneinch.router)
    await story.check(expected)
    assert (await story.trader.history())[: len(all_made)] == [
        await story.trader.read(made) for made in reversed(all_made)
    ]


async def test_a_token_that_wants_no_allowance_changed_is_given_none_before_the_right_one(story, network, market):
    usdt, router = market.usdt, market.oneinch.router
    await story.rich({usdt: 30})
    had = {coin: await story.holds(coin) for coin in (usdt, network.usdx)}
    await network.node.call("anvil_setERC20Allowance", [story.wallet, router, usdt.contract, hex(7)])
    assert await asyncio.to_thread(market.allowance, usdt, story.wallet, router) == 7
    made = await story.trader.exchange(usdt, 20, network.usdx)
    done = await story.trader.ended(made)
    came = units_of(network.usdx, done["destAmount"])
    await story.no_allowance(usdt, router)
    await story.check({usdt: had[usdt] - usdt.units(20), network.usdx: had[network.usdx] + came})


async def rows(story, statement, *values):
    async with story.db.transaction() as conn:
        return [tuple(row) for row in await conn.exec_driver_sql(statement, values)]


async def test_a_swap_whose_block_is_replaced_is_taken_back_and_credited_again_once(story, network, market, blocks):
    usdx, usdt = network.usdx, market.usdt
    had = {coin: await story.holds(coin) for coin in (usdx, usdt)}
    made = await story.trader.exchange(usdx, 10, usdt)
    done = await story.trader.ended(made)
    find = ("eth_getTransactionReceipt", [done["txHash"]])
    first = await network.node.call(*find)

    async def is_replaced() -> bool:
        # Where a block is made during the reorg, anvil may be left without one of that height.
        async with blocks.held():
            receipt = await network.node.call(*find)
            if receipt is not None and receipt["blockHash"] == first["blockHash"]:
                head = int(await network.node.call("eth_blockNumber"), 16)
                await network.reorg(head - int(first["blockNumber"], 16) + 1)
                return False
            return True

    async def came_again() -> bool:
        lives = "SELECT incarnation, status FROM deposits WHERE tx_id = $1 AND contract = $2"
        return await rows(story, lives, done["txHash"], usdt.contract) == [(2, "confirmed")]

    await until(is_replaced)
    await until(came_again)
    again = await story.trader.ended(made)
    assert (again["txHash"], again["destAmount"]) == (done["txHash"], done["destAmount"])
    await story.no_allowance(usdx, market.oneinch.router)
    came = units_of(usdt, again["destAmount"])
    await story.check({usdx: had[usdx] - usdx.units(10), usdt: had[usdt] + came})
    claims = (
        "SELECT p.incarnation, p.is_gone FROM exchange_parts p JOIN exchanges e ON e.id = p.exchange_pk"
        " WHERE e.txn_id = $1 AND p.role = 'output'"
    )
    assert await rows(story, claims, made["txnId"]) == [(2, False)]
    await story.is_clean()
