"""Traces that are too long to read, or take a node too long: neither stops the chain, and neither costs anybody money.

A call's input costs who makes it the memory that it lies in, once; a tracer writes it down with every call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from cambist.plugin import ChainError, ChainUnavailableError, InconsistentChainError
from cambist_chainkit.eip55 import keccak
from cambist_evm.testing import Anvil, Contract, Fault, FaultyProxy

Connect = Scan = Callable[..., Any]

BYTES_MAX = 1_000_000
"""The least that an operator can set, so that the test needs no gigabytes."""

LONG = "6000600061ea60600061dead5afa50"
"""STATICCALL of nobody, with 60 000 bytes of memory as input."""


@pytest.fixture
async def proxy(node: Anvil) -> AsyncIterator[FaultyProxy]:
    async with FaultyProxy(node.url) as proxy:
        yield proxy


@pytest.fixture
async def long_one(node: Anvil, splitter: Contract, customer: str) -> str:
    """Mine a block that pays the customer seven from inside; return the hash of its transaction with a long trace."""
    runtime = LONG * 16 + "00"
    size = f"61{len(runtime) // 2:04x}"
    made = await node.send(None, data=f"0x{size}600e600039{size}6000f3{runtime}")
    contract = (await node.receipt(made))["contractAddress"]
    paying = {"from": node.accounts[1], "to": splitter.address, "value": "0x7", "gas": hex(1_000_000)}
    data = splitter.data("splitNative", [customer], [7])
    calling = {"from": node.accounts[0], "to": contract, "gas": hex(1_000_000)}
    await node.mine()
    await node.reorg(1, [(calling, 0), ({**paying, "data": data}, 0)])
    block = await node.call("eth_getBlockByNumber", ["latest", False])
    tx_id, _ = block["transactions"]
    assert (await node.receipt(tx_id))["status"] == "0x1"
    return str(tx_id)


async def amounts(scan: Scan, chain: Any, height: int, customer: str) -> list[int]:
    return [one.amount for one in (await scan(chain, height, customer)).transfers]


@pytest.mark.parametrize(
    "fault, one", [(Fault.NO_FLAT, "debug_traceTransaction"), (Fault.NO_DEBUG, "trace_transaction")]
)
async def test_only_the_transaction_whose_trace_is_too_long_is_passed_by(
    node: Anvil, proxy: FaultyProxy, long_one: str, connect: Connect, scan: Scan, customer: str, fault: Fault, one: str
) -> None:
    """The others of its block are read, and a warning names it and the endpoint."""
    proxy.faults = {fault}
    async with connect(proxy.url, response_bytes_max=BYTES_MAX) as chain:
        with capture_logs() as logs:
            assert await amounts(scan, chain, await node.height(), customer) == [7]
    (warning,) = logs
    assert (warning["event"], warning["log_level"], warning["tx_id"]) == ("trace_passed_by", "warning", long_one)
    assert (warning["chain"], warning["endpoint"]) == ("local", proxy.url.removeprefix("http://"))
    assert proxy.calls[one] == 2


@pytest.mark.usefixtures("long_one")
async def test_a_block_whose_trace_can_be_read_is_asked_for_at_once(
    node: Anvil, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str
) -> None:
    """With the limit that operators have by default."""
    async with connect(proxy.url) as chain:
        assert await amounts(scan, chain, await node.height(), customer) == [7]
    assert proxy.calls["debug_traceBlockByHash"] == 1
    assert proxy.calls["debug_traceTransaction"] == proxy.calls["trace_block"] == 0


@pytest.mark.usefixtures("long_one")
@pytest.mark.parametrize("tracer", ["debug", "trace"])
async def test_a_transaction_that_takes_a_node_too_long_is_not_passed_by(
    node: Anvil, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str, tracer: str
) -> None:
    """It is an outage of the endpoint, so that the next one is asked; and the same one later."""
    height = await node.height()
    proxy.faults = {Fault.SLOW_TRACES}
    async with connect(proxy.url, node.url, response_bytes_max=BYTES_MAX, trace=tracer) as chain:
        with pytest.raises(ChainUnavailableError, match="execution timeout"):
            await amounts(scan, chain, height, customer)
        assert await amounts(scan, chain, height, customer) == [7]
    async with connect(proxy.url, response_bytes_max=BYTES_MAX, trace=tracer) as chain:
        with pytest.raises(ChainUnavailableError, match="execution timeout"):
            await amounts(scan, chain, height, customer)
        proxy.faults = set()
        chain.pool.endpoints[0].retry_at = 0.0
        assert await amounts(scan, chain, height, customer) == [7]


async def test_a_transaction_that_is_given_up_in_its_block_is_asked_for_alone(
    node: Anvil, splitter: Contract, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str
) -> None:
    """As Geth does after five seconds: alone, it has these for itself."""
    await splitter.send("splitNative", [customer], [7], value=7)
    proxy.lies["debug_traceBlockByHash"] = lambda told: [
        {"txHash": one["txHash"], "error": "execution timeout"} for one in told
    ]
    async with connect(proxy.url) as chain:
        assert await amounts(scan, chain, await node.height(), customer) == [7]
        proxy.faults = {Fault.SLOW_TRACES}
        with pytest.raises(ChainUnavailableError, match="execution timeout"):
            await amounts(scan, chain, await node.height(), customer)


@pytest.mark.usefixtures("long_one")
async def test_a_block_that_is_replaced_while_it_is_traced_is_read_again(
    node: Anvil, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str
) -> None:
    """Its transactions are asked for by their own hashes, wherever they stand by then."""

    def replaced(told: Any) -> Any:
        whole = told["transactions"] and isinstance(told["transactions"][0], dict)
        return told if whole else told | {"hash": "0x" + keccak(b"another").hex()}

    async with connect(proxy.url, response_bytes_max=BYTES_MAX) as chain:
        proxy.lies["eth_getBlockByNumber"] = replaced
        with pytest.raises(InconsistentChainError, match="replaced"):
            await amounts(scan, chain, await node.height(), customer)


@pytest.mark.usefixtures("long_one")
async def test_a_node_that_traces_whole_blocks_alone_is_not_taken_for_one_without_traces(
    node: Anvil, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str
) -> None:
    """Else what contracts pay would not be seen any more, of any block."""
    proxy.faults = {Fault.NO_LONE_TRACES}
    async with connect(proxy.url, response_bytes_max=BYTES_MAX) as chain:
        with pytest.raises(ChainError, match="debug_traceTransaction"):
            await amounts(scan, chain, await node.height(), customer)
        proxy.faults = set()
        chain.pool.endpoints[0].retry_at = 0.0
        assert await amounts(scan, chain, await node.height(), customer) == [7]
