"""How many transactions of an address of ours are mined, where endpoints do not count alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from cambist_evm.testing import Anvil, FaultyProxy

pytestmark = pytest.mark.slow

Connect = Callable[..., Any]


@pytest.fixture
async def proxy(node: Anvil) -> AsyncIterator[FaultyProxy]:
    async with FaultyProxy(node.url) as proxy:
        yield proxy


async def test_a_count_is_witnessed_by_two_endpoints_and_who_tells_far_more_is_set_aside(
    node: Anvil, proxy: FaultyProxy, connect: Connect
) -> None:
    own = node.accounts[0]
    async with FaultyProxy(node.url) as other, connect(proxy.url, other.url, node.url) as chain:
        honest = await chain.next_sequence(own)
        assert await chain.witnessed_sequence(own) == honest
        proxy.lies["eth_getTransactionCount"] = lambda answer: hex(int(answer, 16) + 64)
        assert await chain.next_sequence(own) == honest + 64
        assert await chain.witnessed_sequence(own) == honest
        assert all(one.last_error is None for one in chain.endpoints()), "the others may lag by so many"
        proxy.lies["eth_getTransactionCount"] = lambda answer: hex(int(answer, 16) + 65)
        assert await chain.witnessed_sequence(own) == honest
        assert f"counts {honest + 65} transactions of {own}" in str(chain.endpoints()[-1].last_error)
        assert (await chain.next_sequence(own), await chain.witnessed_sequence(own)) == (honest, honest)


async def test_of_two_endpoints_that_count_otherwise_none_is_set_aside(
    node: Anvil, proxy: FaultyProxy, connect: Connect
) -> None:
    """Else one that tells of too few would have the honest one set aside, and be the only one that is asked."""
    own = node.accounts[0]
    async with connect(proxy.url, node.url) as chain, connect(node.url) as alone:
        honest = await alone.next_sequence(own)
        assert await alone.witnessed_sequence(own) is None
        proxy.lies["eth_getTransactionCount"] = lambda answer: hex(int(answer, 16) + 1_000)
        for _ in range(2):
            assert await chain.next_sequence(own) == honest + 1_000
            assert await chain.witnessed_sequence(own) == honest
        assert all(one.last_error is None for one in chain.endpoints())


async def test_an_endpoint_that_lags_is_no_witness(node: Anvil, connect: Connect) -> None:
    """As one that was just added: it would have nonces signed that are used."""
    await node.mine(30)
    async with Anvil(chain_id=1337) as behind, connect(behind.url, node.url, lag_blocks_max=10) as chain:
        async with chain.view() as view:
            await view.head()
        assert await chain.witnessed_sequence(node.accounts[0]) is None
