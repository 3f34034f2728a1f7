"""Stories of swaps and bridges, on one gateway between two chains with a market and a bridge."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.support.exchange_story import Story
from tests.support.gateway import settings_text
from tests.support.networks import AnvilNetwork
from tests.support.networks.market import PRICES, Market
from tests.support.opened import opened_by_folder as opened
from tests.support.receiver import Receiver
from tests.support.trader import Trader
from tests.support.valkey import story_redis_url
from tests.support.valkey import valkey_by_folder as valkey

__all__ = ["opened", "story_redis_url", "valkey"]


@pytest.fixture(scope="module")
async def network(opened) -> AnvilNetwork:
    """Run the chain with the market: Ethereum."""
    return await opened.once("ethereum", AnvilNetwork)


@pytest.fixture(scope="module")
async def market(opened, network, other) -> Market:
    return await opened.once("market", lambda: Market(network, other))


@pytest.fixture(scope="module")
def tables(market) -> Mapping[str, Mapping[str, Any]]:
    return market.settings()


@pytest.fixture(scope="module")
def settings(story_database_url, story_redis_url, tables) -> str:
    """Give the operator's file: it collects what is worth it without being asked twice."""
    more: Sequence[str] = ["[outbound]", "collect_interval_ms = 500"]
    return settings_text(
        database_url=story_database_url, redis_url=story_redis_url, tables=tables, more=more, prices=PRICES
    )


@pytest.fixture(scope="module")
async def stories(gateway, session, station, market, blocks, story_db) -> AsyncIterator[Callable[[], Awaitable[Story]]]:
    """Give a way to begin stories, each with a merchant whom nobody has paid yet."""
    async with AsyncExitStack() as stack:
        receivers: list[Receiver] = []

        async def begin() -> Story:
            receiver = await stack.enter_async_context(Receiver())
            trader = await Trader(gateway.url, session).open(webhook_url=receiver.url)
            receiver.secret = trader.project["webhookSecret"]
            receivers.append(receiver)
            return Story(market, trader, receiver, await trader.wallet("evm"), station, story_db, gateway)

        yield begin
        assert [receiver.rejected for receiver in receivers if receiver.rejected] == []


@pytest.fixture(scope="module")
async def story(stories) -> AsyncIterator[Story]:
    """Tell a file's story of one merchant, and check the books when it ends."""
    story = await stories()
    yield story
    await story.is_clean()
