"""A gateway between two chains with a market and a bridge: what its folders of stories have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.support.gateway import settings_text
from tests.support.networks import AnvilNetwork
from tests.support.networks.market import PRICES, Market


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
