"""Answers of 1inch and Across with one thing changed, at any moment: nothing moves but what was asked for."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from msgspec import Struct

from cambist_across_node import Behaviour
from tests.support.exchange_story import Story, units_of
from tests.support.gateway import until
from tests.support.mangled import Mangler, mangled
from tests.support.networks import Amount, Coin

FULL = os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full"
ROUNDS = 300 if FULL else 12
SEED = int(os.environ.get("CAMBIST_TEST_SEED", "20261130"))
REFUSALS = {
    "EXCHANGE_UNAVAILABLE", "EXCHANGE_REFUSED", "EXCHANGE_NO_LIQUIDITY", "EXCHANGE_AMOUNT_TOO_LOW",
    "EXCHANGE_AMOUNT_TOO_HIGH", "PAIR_NOT_SUPPORTED", "PRICE_BELOW_GUARD",
}  # fmt: skip
"""How a mangled quote is told to merchants. That a program broke is not among them."""
USUAL = Decimal("0.99")
"""What is promised of a quote, by the slippage that is set."""
WORST = Decimal("0.95")
"""What comes at least of a fair price, by the guard and the slippage that are set."""


class Way(Struct, frozen=True):
    """What is exchanged, whose server's answers are mangled, and how many of the path are spared."""

    sells: Coin
    amount: Amount
    buys: Coin
    server: str
    path: str
    spared: int = 0


@pytest.fixture
def ways(network, other, market) -> list[Way]:
    usdx, eth, usdt, there = network.usdx, network.native, market.usdt, other.usdx
    swaps = [(usdx, 20, usdt), (usdx, 20, eth), (eth, "0.01", usdx), (usdt, 20, usdx)]
    bridges = [(usdx, 20, there), (there, 20, usdx), (eth, "0.01", other.native)]
    return [
        *(Way(*one, "swap_1inch", path) for one in swaps for path in ("quote", "swap", "swap")),
        *(Way(*one, "bridge_across", "suggested-fees", spared) for one in bridges for spared in (0, 1, 1)),
        *(Way(*one, "bridge_across", "status") for one in bridges[:2]),
    ]


class Campaign:
    """Plays rounds, each with one way and one change."""

    def __init__(self, story: Story, manglers: Mapping[str, Mangler], coins: list[Coin]) -> None:
        self.story, self.manglers, self.coins = story, manglers, coins
        self.ended: Counter[str] = Counter()

    async def play(self, way: Way, random: Random) -> None:
        """Ask for an exchange, whatever comes of it; afterwards the wallet has just what the merchant is told."""
        market, server = self.story.market, self.manglers[way.server]
        fair = await self.quoted(way)
        had = {coin: await self.story.holds(coin) for coin in self.coins}
        if way.path == "status":
            market.across.relayer.behaviour = Behaviour.NEVER
        server.begin(mangled(random), way.path, spared=way.spared)
        made = await self.story.trader.attempt(way.sells, way.amount, way.buys)
        if "txnId" not in made:
            assert made["code"] in REFUSALS, made
            server.honest()
            self.ended["refused"] += 1
        else:
            if way.path == "status":
                await self._asked_twice(made, server)
                assert (await self.story.trader.read(made))["status"] == "pending"
                market.honest()
            else:
                await self._judged(made, server)
            server.honest()
            # What was promised by a quote that was too good is never to be had.
            is_promised_too_much = units_of(way.buys, made["destAmountMin"]) > fair * USUAL
            done = await self._end(made, gives_up=is_promised_too_much or random.random() < 0.3)
            self.ended[done["status"]] += 1
            had = await self._moved(way, made, done, had, fair)
        await self.story.check({coin: had[coin] for coin in self.coins})
        for coin in self.coins:
            for spender in (market.oneinch.router, market.across.sides[coin.chain].pool):
                await self.story.no_allowance(coin, spender)

    async def quoted(self, way: Way) -> int:
        """Return what is offered by honest servers, as soon as nobody is to ask less often any more."""

        async def poll() -> int | None:
            quote = await self.story.trader.attempt(way.sells, way.amount, way.buys, how="quote")
            return int(quote["dstAmountRaw"]) if "dstAmountRaw" in quote else None

        return await until(poll, seconds=100)

    async def _judged(self, made: Mapping[str, Any], server: Mangler) -> None:
        """Wait until a mangled answer has been judged, or the exchange has ended in spite of it."""

        async def poll() -> bool:
            found = await self.story.trader.read(made)
            return found["status"] != "pending" or (server.met > 0 and found["waitsFor"] == "provider")

        await until(poll, seconds=100)

    async def _asked_twice(self, made: Mapping[str, Any], server: Mangler) -> None:
        """Wait until the server was asked twice what became of a deposit, as it is later than a few minutes."""
        await self.story.now(made, "filling")

        async def poll() -> bool:
            await self.story.later(made, broadcast_at="now() - interval '1 hour'")
            return server.met > 1

        await until(poll, seconds=100)

    async def _end(self, made: Mapping[str, Any], *, gives_up: bool) -> dict[str, Any]:
        """Return it as it has ended; its time may be over before."""

        async def poll() -> dict[str, Any] | None:
            await self.story.later(made, **({"give_up_at": "now()"} if gives_up else {}))
            found = await self.story.trader.read(made)
            return None if found["status"] == "pending" else found

        return await until(poll, seconds=100)

    async def _moved(
        self, way: Way, made: Mapping[str, Any], done: Mapping[str, Any], had: Mapping[Coin, int], fair: int
    ) -> dict[Coin, int]:
        """Return what the wallet has to have by what the merchant is told."""
        calls = await self.story.sent(made)
        if done["status"] == "failed":
            assert (done["destAmount"], done["destTxHash"]) == (None, None)
            assert done["error"]
            return dict(had)
        came, given = units_of(way.buys, done["destAmount"]), way.sells.units(way.amount)
        assert calls == 1
        assert units_of(way.sells, done["sourceAmount"]) == given
        assert came >= units_of(way.buys, done["destAmountMin"]) >= fair * WORST
        return {**had, way.sells: had[way.sells] - given, way.buys: had[way.buys] + came}


@pytest.mark.campaign
@pytest.mark.timeout(7200)
async def test_whatever_is_changed_in_an_answer_moves_nothing_but_what_was_asked(
    story: Story, network, other, market, manglers, ways
):
    chance = Random(SEED)
    coins = [network.usdx, other.usdx, market.usdt, network.native, other.native]
    share = {coin: Decimal("0.01") if coin.contract is None else 20 for coin in coins}
    await story.rich({coin: share[coin] * (ROUNDS + 1) for coin in coins[:4]})
    campaign = Campaign(story, manglers, coins)
    for number in range(ROUNDS):
        way, seed = chance.choice(ways), chance.getrandbits(64)
        try:
            await campaign.play(way, Random(seed))
        except BaseException as error:
            error.add_note(f"round {number} of seed {SEED}: {way.sells.symbol} to {way.buys.symbol}, {way.path}")
            raise
    await story.is_clean()
    assert campaign.ended["succeeded"], campaign.ended
