"""What the service's refusals and its nonsense become, and what of the operator's mistakes is told."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from random import Random

import msgspec
import pytest
from aiohttp import web
from msgspec import structs

from cambist.plugin import (
    ConfigError,
    ExchangeRefusedError,
    PluginContext,
    ProviderUnavailableError,
    SwapProvider,
    Units,
)
from cambist_florin.config import FlorinConfig, contracts_of
from cambist_florin.plugin import FlorinPlugin
from cambist_florin.testing import CONTRACT, ExampleService

from .test_conformance import COIN, SENDER, USDX, request

CONTRACTS_HERE = {"here": CONTRACT}
ASKED = request(USDX, COIN, 5_000_000)


@pytest.fixture
async def service() -> AsyncIterator[ExampleService]:
    """Run the example service."""
    async with ExampleService(time.time) as running:
        yield running


def context() -> PluginContext:
    """Return a context of a test's own: its budget of requests is one, too, and a pause ends with the test."""
    return PluginContext(now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="tests")


@pytest.fixture
async def provider(service: ExampleService) -> AsyncIterator[SwapProvider]:
    """Connect to it with a key."""
    table = {
        "base_url": service.url,
        "key": "a key that is nobody's business",
        "contracts": CONTRACTS_HERE,
        "requests_per_second": 1000,
    }
    config = msgspec.convert(table, FlorinConfig)
    async with FlorinPlugin().connect(config, context()) as (found,):
        yield found


@pytest.mark.parametrize(("units", "reason"), [(1, "amount_too_low"), (10**40, "amount_too_high")])
async def test_a_refusal_keeps_its_reason(provider: SwapProvider, units: int, reason: str) -> None:
    """In the contract's words."""
    with pytest.raises(ExchangeRefusedError) as caught:
        await provider.quote(structs.replace(ASKED, units=Units(units)))
    assert (caught.value.reason, str(caught.value)) == (reason, "This is no amount for us.")


async def test_a_price_that_moved_is_told(provider: SwapProvider) -> None:
    """So that the balance goes back."""
    with pytest.raises(ExchangeRefusedError) as caught:
        await provider.build(ASKED, Units(3 * ASKED.units))
    assert caught.value.reason == "price_moved"


async def test_a_share_for_the_platform_is_refused_and_not_forgotten(provider: SwapProvider) -> None:
    """The function has no argument for it."""
    with pytest.raises(ExchangeRefusedError):
        await provider.quote(structs.replace(ASKED, fee_bps=50, fee_recipient=ASKED.recipient))


async def test_a_limit_is_told_with_its_wait(service: ExampleService, provider: SwapProvider) -> None:
    """The gateway waits as long."""
    service.answer = web.Response(status=429, headers={"Retry-After": "7"})
    with pytest.raises(ProviderUnavailableError) as caught:
        await provider.quote(ASKED)
    assert caught.value.retry_after == 7


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"<html>"),
        (200, b'{"units": "-1", "fee": "0"}'),
        (200, b"[" * 50_000),
        (200, b" " * 200_000),
        (302, b""),
        (403, b"a key that is nobody's business is wrong"),
        (422, b"not in JSON"),
        (500, b""),
    ],
)
async def test_nonsense_teaches_nothing(
    service: ExampleService, provider: SwapProvider, status: int, body: bytes
) -> None:
    """Others are asked, and nothing secret is told."""
    service.answer = web.Response(status=status, body=body)
    with pytest.raises(ProviderUnavailableError) as caught:
        await provider.quote(ASKED)
    assert "nobody's business" not in str(caught.value)


URL = "http://service.example"


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"base_url": "service.example", "contracts": CONTRACTS_HERE}, "base_url is no http"),
        ({"base_url": URL}, "contracts names no contract"),
        ({"base_url": URL, "contracts": {"here": "router"}}, "contracts.here is no address"),
        (
            {"base_url": URL, "contracts": {"here": SENDER[:-1] + "9"}},
            "contracts.here is no address, or one with a wrong",
        ),
        ({"base_url": URL, "contracts": CONTRACTS_HERE, "timeout_ms": 0}, "timeout_ms is between 1"),
        ({"base_url": URL, "contracts": CONTRACTS_HERE, "requests_per_second": 0}, "requests_per_second is between 1"),
    ],
)
def test_a_mistake_of_the_operator_is_named(table: dict[str, object], told: str) -> None:
    """By the setting's path."""
    with pytest.raises(ConfigError, match=told):
        contracts_of(msgspec.convert(table, FlorinConfig))
