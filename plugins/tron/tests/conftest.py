"""What the plugin's tests share: chains connected to whatever node a test runs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec
import pytest

from cambist.plugin import Chain, PluginContext, ScanResult, Span
from cambist.testing import watching
from cambist.testing.anvil import AnvilProcess
from cambist_tron.config import TronConfig
from cambist_tron.family import TronFamily
from cambist_tron.plugin import TronPlugin
from cambist_tron_node.blocks import MAINNET
from cambist_tron_node.evm import anvil_for

from .local import Net, open_net

Connect = Callable[..., AbstractAsyncContextManager[Chain]]

XPUB = "xpub6Ce9NcJvTk372KjsGfWqbcex5DumjpNquQLApoeQUavSCjEc823BV1tb4rXUuPuht8h2hSxkg2EXUaKUJmniJvRZAELxypsCzBFdtosmV76"
"""Of the mnemonic "test test ... junk", which developers' tools share."""


@pytest.fixture
def context() -> PluginContext:
    """Return real time and seeded chance."""
    return PluginContext(
        now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(7), user_agent="cambist-tests"
    )


@pytest.fixture
def family() -> TronFamily:
    """Return the family."""
    return TronFamily()


@pytest.fixture
def connect(context: PluginContext) -> Connect:
    """Return a function that connects a chain to endpoints, with any settings."""

    @asynccontextmanager
    async def connect(*urls: str, **settings: Any) -> AsyncIterator[Chain]:
        table = {"network": "local", "rpc_urls": urls, "request_timeout_ms": 3000, **settings}
        async with TronPlugin().connect(msgspec.convert(table, TronConfig), context) as (chain,):
            yield chain

    return connect


@pytest.fixture
def scan(family: TronFamily) -> Callable[..., Any]:
    """Return a function that scans from a height to the head."""

    async def scan(chain: Chain, first: int, *addresses: str) -> ScanResult:
        async with chain.view() as view:
            head = await view.head()
            return await view.scan(Span(first=first, last=head.height), watching(family, *addresses))

    return scan


@pytest.fixture
def customer(family: TronFamily) -> str:
    """Return an address of ours."""
    return family.derive_address(XPUB, 0, 1)


@pytest.fixture
def other_customer(family: TronFamily) -> str:
    """Return another address of ours."""
    return family.derive_address(XPUB, 0, 2)


@pytest.fixture
def payer(family: TronFamily) -> str:
    """Return an address that pays us."""
    return family.derive_address(XPUB, 0, 1000)


@pytest.fixture(scope="session")
async def shared_node() -> AsyncIterator[AnvilProcess]:
    """Run the anvil that the contracts of one node after the other run on."""
    async with anvil_for(MAINNET) as anvil:
        yield anvil


@pytest.fixture
async def net(connect: Connect, shared_node: AnvilProcess) -> AsyncIterator[Net]:
    """Return a local node with tokens on it, and a chain connected to it."""
    async with open_net(connect, shared_node) as net:
        yield net
