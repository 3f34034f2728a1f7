"""Nested and flat traces tell the same transfers under the same names, although nodes do not count calls alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from cambist.plugin import Span, Transfer
from cambist.testing import EveryAddress
from cambist_evm.testing import Anvil, Fault, FaultyProxy

Connect = Scan = Callable[..., Any]

TOLD = [
    ("trace:0", 1),  # trace:1, 2 and 4 are of contracts that were created
    ("trace:3", 7),
    ("trace:5", 1),
    ("trace:6", 1),
    ("trace:7", 12),
    ("trace:8", 12),
    ("trace:9", 10),
    ("trace:10", 11),
    ("trace:11", 932),
]
"""What the customer gets of a thousand."""


def without_precompiled(traces: list[Any]) -> list[Any]:
    """Return what a node tells that leaves out calls of precompiled contracts, and numbers the others without gaps."""
    called = [one["action"].get("to") for one in traces]
    left_out = [one["traceAddress"] for one, to in zip(traces, called, strict=True) if to and 0 < int(to, 16) < 16]
    return [
        one | {"traceAddress": _closed_up(one["traceAddress"], left_out)}
        for one in traces
        if one["traceAddress"] not in left_out
    ]


def _closed_up(address: list[int], left_out: list[list[int]]) -> list[int]:
    return [address[0] - sum(one < address[:1] for one in left_out), *address[1:]] if address else []


@pytest.fixture
async def endpoints(node: Anvil) -> AsyncIterator[list[FaultyProxy]]:
    """Return an endpoint with nested traces, one with flat ones, and one that leaves calls out of these."""
    async with AsyncExitStack() as stack:
        kinds = Fault.NO_FLAT, Fault.NO_DEBUG, Fault.NO_DEBUG
        proxies = [await stack.enter_async_context(FaultyProxy(node.url, fault)) for fault in kinds]
        proxies[2].lies["trace_block"] = without_precompiled
        yield proxies


@pytest.fixture
async def moved(node: Anvil, customer: str) -> str:
    """Move value in every way within one transaction, and return its id."""
    mover, picky = await node.deploy("Mover"), await node.deploy("Silent")
    tx_id = await mover.send("move", customer, picky.address, value=1000)
    assert (await node.receipt(tx_id))["status"] == "0x1"
    return tx_id


async def test_both_kinds_tell_every_transfer_alike(
    node: Anvil, endpoints: list[FaultyProxy], moved: str, connect: Connect, customer: str
) -> None:
    """Failed, undone and repeated ones left out, whoever is watched; and it is what the customer then has."""
    height = await node.height()
    told: list[list[Transfer]] = []
    for endpoint in endpoints:
        async with connect(endpoint.url) as chain, chain.view() as view:
            result = await view.scan(Span(first=height, last=height), EveryAddress())
            told.append(list(result.transfers))
    assert told[0] == told[1] == told[2]
    assert {one.tx_id for one in told[0]} == {moved}
    assert told[0][0].position == "native"
    assert [one.position for one in told[0][1:]] == [f"trace:{number}" for number in range(12)]
    assert [(one.position, one.amount) for one in told[0] if one.recipient == customer] == TOLD
    assert await node.call("eth_getBalance", [customer, "latest"]) == hex(sum(amount for _, amount in TOLD))


@pytest.mark.usefixtures("moved")
async def test_a_quorum_of_both_kinds_goes_on(
    node: Anvil, endpoints: list[FaultyProxy], connect: Connect, scan: Scan, customer: str
) -> None:
    """Also where the one numbers calls that the other leaves out."""
    async with connect(*(endpoint.url for endpoint in endpoints), quorum=3) as chain:
        found = (await scan(chain, await node.height(), customer)).transfers
    assert [(one.position, one.amount) for one in found] == TOLD
