"""The gateway's conformance kit on the example server: what every price source promises, tested."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from random import Random

import pytest

from cambist.plugin import PluginContext, PriceSource
from cambist.testing.conformance import PriceSourceConformance
from cambist.testing.conformance.prices import PriceHarness
from cambist_florin.config import FlorinConfig
from cambist_florin.plugin import FlorinPlugin
from cambist_florin.testing import PRICES, ExampleServer


class FlorinHarness(PriceHarness):
    """The example server, driven from inside."""

    known = tuple(PRICES)

    def __init__(self, source: PriceSource, server: ExampleServer) -> None:
        self.source = source
        self._server = server

    def now(self) -> datetime:
        """Return the time that the source was lent."""
        return datetime.now(UTC)

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """Answer nothing for a while."""
        self._server.silent = True
        yield
        self._server.silent = False


class TestFlorinSource(PriceSourceConformance):
    """Everything that a price source promises."""

    @pytest.fixture
    async def harness(self) -> AsyncIterator[PriceHarness]:
        """Run a server of its own for each test, and connect to it as the gateway does."""
        context = PluginContext(
            now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="tests"
        )
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(ExampleServer(time.time))
            config = FlorinConfig(url=server.url)
            (source,) = await stack.enter_async_context(FlorinPlugin().connect(config, context))
            yield FlorinHarness(source, server)
