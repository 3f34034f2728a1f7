"""What the tests of the local node share: a node, and a plain way to ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from cambist.testing.anvil import AnvilProcess
from cambist_tron_node import NoMachine, TronNode, TronToken
from cambist_tron_node.blocks import MAINNET
from cambist_tron_node.evm import AnvilMachine, anvil_for

Ask = Callable[..., Awaitable[Any]]


@pytest.fixture
async def node() -> AsyncIterator[TronNode]:
    """Run a node that knows TRX alone."""
    async with TronNode(machine=NoMachine()) as node:
        yield node


@pytest.fixture(scope="session")
async def shared_node() -> AsyncIterator[AnvilProcess]:
    """Run the anvil that one machine after the other runs its contracts on."""
    async with anvil_for(MAINNET) as anvil:
        yield anvil


@pytest.fixture
def machine(shared_node: AnvilProcess) -> AnvilMachine:
    """Return a machine that knows no contracts yet."""
    return AnvilMachine(MAINNET, anvil=shared_node)


@pytest.fixture
async def contract_node(machine: AnvilMachine) -> AsyncIterator[TronNode]:
    """Run a node that runs contracts."""
    async with TronNode(machine=machine) as node:
        yield node


@pytest.fixture
async def usdt(contract_node: TronNode) -> TronToken:
    """Deploy a token like USDT, and give the first account some."""
    token = await contract_node.deploy_token("USDT", 6, usdt_like=True)
    await token.mint(contract_node.accounts[0], 10**12)
    await contract_node.mine()
    return token


@pytest.fixture
async def ask(node: TronNode) -> AsyncIterator[Ask]:
    """Return a function that posts to a path and returns the answer's JSON."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def ask(path: str, **values: Any) -> Any:
            async with session.post(f"{node.url}/{path}", json=values) as response:
                assert response.status == 200
                return await response.json()

        yield ask
