"""Stories of swaps and bridges, on one gateway between two chains with a market and a bridge."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from tests.support.between_chains import market, network, settings, tables
from tests.support.exchange_story import Story
from tests.support.opened import opened_by_folder as opened
from tests.support.receiver import Receiver
from tests.support.trader import Trader
from tests.support.valkey import story_redis_url
from tests.support.valkey import valkey_by_folder as valkey

__all__ = ["market", "network", "opened", "settings", "story_redis_url", "tables", "valkey"]


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
