"""The stories of swaps and bridges, on a gateway of their own: a server stands between it and each provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from tests.e2e.exchanging.conftest import (
    market,
    network,
    opened,
    settings,
    stories,
    story,
    story_redis_url,
    valkey,
)
from tests.support.mangled import Mangler

__all__ = ["market", "network", "opened", "settings", "stories", "story", "story_redis_url", "valkey"]


@pytest.fixture(scope="module")
async def manglers(market) -> AsyncIterator[Mapping[str, Mangler]]:
    told = market.settings()
    urls = [told[f"plugins.{name}"]["base_url"] for name in ("swap_1inch", "bridge_across")]
    async with Mangler(urls[0]) as oneinch, Mangler(urls[1]) as across:
        yield {"swap_1inch": oneinch, "bridge_across": across}


@pytest.fixture(scope="module")
def tables(market, manglers) -> Mapping[str, Mapping[str, Any]]:
    """Have both plugins ask the servers that stand between."""
    told = {f"plugins.{name}": {"base_url": one.url} for name, one in manglers.items()}
    return {name: {**table, **told.get(name, {})} for name, table in market.settings().items()}
