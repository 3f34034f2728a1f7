"""What of a chain can be changed while the gateway runs, by the kit; and what contracts tell of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from cambist.plugin import ChainUnavailableError, Token, UnreadableTokenError
from cambist.testing.conformance import Configured, SetupConformance
from cambist_evm.config import EvmConfig
from cambist_evm.plugin import EvmPlugin
from cambist_evm.testing import Anvil, Contract

EURX = Token(symbol="EURX", contract="0x70997970C51812dc3A010C7d01b50e0d17dc79C8", decimals=2, label="Example euro")
USDX = {"symbol": "usdx", "contract": "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC", "decimals": 6, "label": "Dollar"}


class TestSetups(SetupConformance):
    @pytest.fixture
    def configured(self) -> Configured:
        """Return two networks, one of which has settings of many kinds."""
        ethereum = {
            "rpc_urls": ["https://node.example/v3/key-1", "https://user:word@second.example"],
            "quorum": 2,
            "confirmations": 7,
            "fee_ceiling_gwei": "50",
            "tokens": [USDX],
        }
        table = {"chains": {"base": {"rpc_urls": ["https://base.example"]}, "ethereum": ethereum}}
        return Configured(
            plugin=EvmPlugin(),
            config=msgspec.convert(table, EvmConfig),
            chain="ethereum",
            endpoint="https://third.example/?key=abcdef",
            token=EURX,
        )


async def test_a_contract_tells_symbol_and_decimals(node: Anvil, connect: Callable[..., Any]) -> None:
    """As it is deployed, whatever the operator's file knows."""
    token = await node.deploy("TestToken", "EURX", 2)
    async with connect(node.url) as chain:
        told = await chain.token_at(token.address)
    assert told == Token(symbol="EURX", contract=token.address, decimals=2, label="EURX")


async def test_what_is_no_token_is_told_apart_from_a_node_that_fails(
    node: Anvil, connect: Callable[..., Any], splitter: Contract
) -> None:
    """A contract without the calls, and one that answers each with one word."""
    # PUSH1 42, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0, RETURN: 42 to every question
    parrot = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    await node.call("anvil_setCode", [parrot, "0x602a60005260206000f3"])
    async with connect(node.url) as chain:
        for address in (splitter.address, parrot):
            with pytest.raises(UnreadableTokenError, match=r"is no token contract|does not tell"):
                await chain.token_at(address)
    async with connect("http://127.0.0.1:9") as chain:
        with pytest.raises(ChainUnavailableError):
            await chain.token_at(splitter.address)


async def test_two_endpoints_must_tell_the_same_of_a_token(
    node: Anvil, connect: Callable[..., Any], token: Contract
) -> None:
    """Where there are two, one that is away leaves too few."""
    async with connect(node.url, "http://127.0.0.1:9") as chain:
        with pytest.raises(ChainUnavailableError, match="2 endpoints of local must tell the same"):
            await chain.token_at(token.address)
    # By another name: nothing that compares addresses can tell that it is the same node.
    async with connect(node.url, node.url.replace("127.0.0.1", "localhost")) as chain:
        assert await chain.token_at(token.address) is not None
