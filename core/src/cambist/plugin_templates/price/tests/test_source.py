"""What a broken answer costs: that price, or the whole answer, and never more."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from random import Random

import msgspec
import pytest

from cambist.plugin import ConfigError, PluginContext, PriceSource, PriceUnavailableError
from cambist_florin.config import FlorinConfig, check
from cambist_florin.plugin import FlorinPlugin
from cambist_florin.source import Told
from cambist_florin.testing import ExampleServer

ETH, USDC = ("ETH", "usd"), ("USDC", "usd")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONTEXT = PluginContext(now=lambda: NOW, monotonic=time.monotonic, random=Random(1), user_agent="tests")


@pytest.fixture
async def server() -> AsyncIterator[ExampleServer]:
    """Run the example server at a fixed time."""
    async with ExampleServer(NOW.timestamp) as running:
        yield running


@pytest.fixture
async def source(server: ExampleServer) -> AsyncIterator[PriceSource]:
    """Connect to it with a key."""
    config = FlorinConfig(url=server.url, api_key="a key that is nobody's business")
    async with FlorinPlugin().connect(config, CONTEXT) as (found,):
        yield found


@pytest.mark.parametrize("price", ["0", "-1", "NaN", "Infinity", "1e40", "one"])
async def test_what_is_no_price_is_left_out(server: ExampleServer, source: PriceSource, price: str) -> None:
    """And costs the others nothing."""
    at = int(NOW.timestamp())
    server.body = msgspec.json.encode([Told("ETH", "usd", price, at), Told("USDC", "usd", "1", at)])
    assert set(await source.prices([ETH, USDC])) == {USDC}


async def test_a_price_keeps_the_time_at_which_it_was_seen(server: ExampleServer, source: PriceSource) -> None:
    """An old one is seen to be old, and one of a clock that runs ahead is of now."""
    at = int(NOW.timestamp())
    server.body = msgspec.json.encode([Told("ETH", "usd", "2", at - 900), Told("USDC", "usd", "1", at + 900)])
    prices = await source.prices([ETH, USDC])
    assert [(NOW - prices[pair].observed_at).total_seconds() for pair in (ETH, USDC)] == [900, 0]


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b"[" * 100_000, b" " * 2_000_000])
async def test_an_answer_of_another_shape_is_none(server: ExampleServer, source: PriceSource, body: bytes) -> None:
    """It says so, and nothing secret."""
    server.body = body
    with pytest.raises(PriceUnavailableError) as caught:
        await source.prices([ETH])
    assert "nobody's business" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"url": "prices.example"}, "url is no http"),
        ({"url": "http://prices.example", "timeout_ms": 0}, "timeout_ms is between 1 and"),
    ],
)
def test_a_mistake_of_the_operator_is_named(table: dict[str, object], told: str) -> None:
    """By the setting's path."""
    with pytest.raises(ConfigError, match=told):
        check(msgspec.convert(table, FlorinConfig))
