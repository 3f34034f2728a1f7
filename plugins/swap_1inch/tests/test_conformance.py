"""The plugin passes the kit for swaps, on a server that lies in every field when it is asked to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cambist.plugin import ChainToken, SwapProvider
from cambist.testing.conformance import ExchangeHarness, SwapConformance

from .conftest import ETHEREUM, LINK, STRANGER, chain, config, connected, request
from .server import OneInchServer

ARBITRUM = chain("arbitrum", 42161, tokens=(LINK,))


def _arguments(**changed: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda arguments, _: arguments.update(changed)


def _tx(**changed: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda _, tx: tx.update(changed)


LIES: Mapping[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "another router": _tx(to=STRANGER),
    "another recipient": _arguments(receiver=STRANGER),
    "more than asked": lambda arguments, _: arguments.update(amount=arguments["amount"] + 1),
    "less than asked": lambda arguments, _: arguments.update(amount=arguments["amount"] - 1),
    "an output of one": _arguments(amount_min=1),
    "another token": _arguments(dst=STRANGER),
    "another source": _arguments(src=STRANGER),
    "a partial fill": _arguments(flags=1),
    "more coin": _tx(value="123456789"),
    "another function": _tx(data="0x12aa3caf" + "00" * 320),
    "no call": _tx(data="0x"),
}


class OneInchHarness(ExchangeHarness[SwapProvider]):
    """Drives the plugin against a server on loopback."""

    lies = tuple(LIES)

    def __init__(self, provider: SwapProvider, server: OneInchServer, reader: Any) -> None:
        self.provider = provider
        self.reader = reader
        self.chains = {one.id: one for one in (ETHEREUM, ARBITRUM)}
        self.requests = [
            request("USDT", "USDC", slippage_bps=100),
            request("LINK", "ETH", units=3 * 10**18, slippage_bps=100),
            request("ETH", "USDT", units=10**18, slippage_bps=100),
        ]
        self.unsupported = (
            ChainToken(chain=ETHEREUM, token=LINK),
            ChainToken(chain=ARBITRUM, token=LINK),
        )
        self._server = server

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        self._server.status = 503
        yield
        self._server.status = None

    @asynccontextmanager
    async def lying(self, lie: str) -> AsyncIterator[None]:
        before, self._server.change = self._server.change, LIES[lie]
        yield
        self._server.change = before


class TestOneInch(SwapConformance):
    @pytest.fixture
    async def harness(self, clock, server, reader):
        async with connected(clock, config(server, quote_ttl_ms=0)) as provider:
            yield OneInchHarness(provider, server, reader)
