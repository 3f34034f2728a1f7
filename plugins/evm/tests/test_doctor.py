"""What ``cambist doctor`` says of a chain that is not what the configuration says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cambist_evm.testing import Anvil, Fault, FaultyProxy

Connect = Callable[..., Any]


async def test_a_token_as_registered_is_no_problem(node: Anvil, connect: Connect) -> None:
    """Six decimals and the same symbol."""
    token = await node.deploy("TestToken", "USDX", 6)
    async with connect(node.url, token=token) as chain:
        assert list(await chain.problems()) == []


@pytest.mark.parametrize(
    "symbol, decimals, sentence",
    [("USDX", 18, "has 18 decimals, and is registered with 6"), ("OTHER", 6, "calls itself 'OTHER'")],
)
async def test_a_token_that_differs_is_told(
    node: Anvil, connect: Connect, symbol: str, decimals: int, sentence: str
) -> None:
    """Decimals that differ make every amount wrong."""
    token = await node.deploy("TestToken", symbol, decimals)
    async with connect(node.url, token=token) as chain:
        (problem,) = await chain.problems()
        assert sentence in problem
        assert token.address in problem


async def test_an_address_without_contract_is_told(node: Anvil, connect: Connect) -> None:
    """On another network the built-in addresses hold nothing."""
    tokens = [{"symbol": "GONE", "contract": "0x" + "77" * 20, "decimals": 6}]
    async with connect(node.url, tokens=tokens) as chain:
        (problem,) = await chain.problems()
        assert "is no token contract" in problem


@pytest.mark.parametrize(
    "faults, settings, sentence",
    [
        ([Fault.NO_DEBUG, Fault.NO_TRACES], {}, "while those that do are away, what contracts pay"),
        ([Fault.NO_FLAT, Fault.NO_TRACES], {"quorum": 2}, "which other endpoints offer: what contracts pay"),
        ([Fault.NO_FLAT, Fault.NO_TRACES], {"trace": "off"}, None),
        ([Fault.NO_FLAT, Fault.NO_DEBUG], {}, None),
        ([Fault.NO_TRACES, Fault.NO_TRACES], {}, None),
    ],
)
async def test_an_endpoint_without_traces_is_told_where_others_offer_them(
    node: Anvil, connect: Connect, faults: list[Fault], settings: dict[str, Any], sentence: str | None
) -> None:
    """Whoever has chosen to do without them knows."""
    async with (
        FaultyProxy(node.url, faults[0]) as one,
        FaultyProxy(node.url, faults[1]) as other,
        connect(one.url, other.url, **settings) as chain,
    ):
        problems = list(await chain.problems())
    assert len(problems) == (sentence is not None)
    for problem in problems:
        assert str(sentence) in problem
        assert f"local: {other.url.removeprefix('http://')} without traces" in problem


async def test_an_endpoint_of_another_network_and_one_that_is_down_are_told(connect: Connect) -> None:
    """One sentence each."""
    async with Anvil(chain_id=5) as other, connect(other.url, "http://127.0.0.1:9/secret-path") as chain:
        wrong, down = await chain.problems()
        assert "serves chain id 5, and local is 1337" in wrong
        assert down.startswith("127.0.0.1:9 could not be reached")
