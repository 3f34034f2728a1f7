"""What the tests of the bridge share: the bridge, and the server that it asks."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cambist.testing.fixtures import _no_network, clock
from cambist_bridge_across.codec import codec

from .samples import connected
from .servers import AcrossServer

__all__ = ["_no_network", "clock"]

codec()  # before a test module imports web3.py by itself, and leaves its limit to all tests of the process


@pytest.fixture
async def server(clock) -> AsyncIterator[AcrossServer]:
    """Run a server that answers as Across's."""
    async with AcrossServer(clock).running() as running:
        yield running


@pytest.fixture
async def bridge(server, clock):
    """Give the bridge, connected to the server."""
    async with connected(clock, base_url=server.base_url) as bridge:
        yield bridge
