"""A node that did not offer something may offer it later: an operator has told it to, or it is another node by now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from random import Random
from typing import Any

import pytest

from cambist.plugin import Call, ChainUnavailableError, PluginContext, Span
from cambist.testing.clock import ManualClock
from cambist_chainkit.record import AGAIN_S
from cambist_evm.testing import Anvil, Contract, Fault, FaultyProxy

Connect = Scan = Callable[..., Any]

TRACERS = ("debug_traceBlockByHash", "trace_block")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def context(clock: ManualClock) -> PluginContext:
    """Return a context whose seconds the test counts."""
    return PluginContext(
        now=lambda: datetime.now(UTC), monotonic=clock.monotonic, random=Random(7), user_agent="cambist-tests"
    )


async def test_a_node_that_offered_no_traces_is_asked_for_them_again(
    node: Anvil, splitter: Contract, connect: Connect, scan: Scan, customer: str, clock: ManualClock
) -> None:
    """Without a restart of the gateway, which nobody would think of: ``cambist doctor`` asks anew each time."""
    async with FaultyProxy(node.url, Fault.NO_TRACES) as proxy, connect(proxy.url) as chain:
        first = await node.height() + 1
        await splitter.send("splitNative", [customer], [7], value=7)
        assert (await scan(chain, first, customer)).transfers == []
        proxy.faults.clear()
        assert (await scan(chain, first, customer)).transfers == []
        clock.advance(AGAIN_S)
        for _ in range(3):
            assert [one.amount for one in (await scan(chain, first, customer)).transfers] == [7]


@pytest.mark.parametrize("trace, asked", [("auto", 3), ("off", 0)])
async def test_a_node_without_traces_is_seldom_asked(
    node: Anvil, splitter: Contract, connect: Connect, scan: Scan, customer: str, clock: ManualClock,
    trace: str, asked: int,
) -> None:  # fmt: skip
    """Once in ten minutes; never where the operator does without."""
    async with FaultyProxy(node.url, Fault.NO_TRACES) as proxy, connect(proxy.url, trace=trace) as chain:
        await splitter.send("splitNative", [customer], [7], value=7)
        for _ in range(3):
            for _ in range(3):
                await scan(chain, await node.height(), customer)
            clock.advance(AGAIN_S)
        assert [proxy.calls[method] for method in TRACERS] == [asked, asked]


async def test_receipts_are_asked_for_by_block_again(
    node: Anvil, token: Contract, connect: Connect, scan: Scan, customer: str, clock: ManualClock
) -> None:
    """One by one they are hundreds of questions for each block, with which a busy chain is not kept up with."""
    async with FaultyProxy(node.url, Fault.NO_BLOCK_RECEIPTS) as proxy, connect(proxy.url, token=token) as chain:
        height = await node.height() + 1
        await token.send("transfer", customer, 5)
        for _ in range(2):
            assert [one.amount for one in (await scan(chain, height, customer)).transfers] == [5]
        assert (proxy.calls["eth_getBlockReceipts"], proxy.calls["eth_getTransactionReceipt"]) == (1, 2)
        proxy.faults.clear()
        clock.advance(AGAIN_S)
        for _ in range(3):
            assert [one.amount for one in (await scan(chain, height, customer)).transfers] == [5]
        assert (proxy.calls["eth_getBlockReceipts"], proxy.calls["eth_getTransactionReceipt"]) == (4, 2)


async def test_calls_are_tried_together_again(node: Anvil, connect: Connect, clock: ManualClock) -> None:
    """Else an exchange that needs an approval first would wait until the gateway is started again."""
    calls = [Call(to_address=node.accounts[1], data=b"\1")] * 2
    async with FaultyProxy(node.url, Fault.NO_SIMULATION) as proxy, connect(proxy.url) as chain:
        for _ in range(2):
            with pytest.raises(ChainUnavailableError, match="several calls together"):
                await chain.simulate(node.accounts[0], calls)
        assert proxy.calls["eth_simulateV1"] == 1
        proxy.faults.clear()
        clock.advance(AGAIN_S)
        for _ in range(2):
            trials = await chain.simulate(node.accounts[0], calls)
            assert [trial.refused for trial in trials] == [None, None]


@pytest.mark.parametrize("untraced", ["refuse", "have not heard of the block"])
async def test_some_nodes_without_traces_behind_an_address_do_not_stop_the_chain(
    node: Anvil, splitter: Contract, connect: Connect, scan: Scan, customer: str, untraced: str
) -> None:
    """The next one has them. A span of many blocks would else hardly ever be read from the first to the last."""
    async with FaultyProxy(node.url) as proxy, connect(proxy.url) as chain:
        first = await node.height() + 1
        for amount in range(1, 21):
            await splitter.send("splitNative", [customer], [amount], value=amount)
        assert [one.amount for one in (await scan(chain, first, customer)).transfers] == list(range(1, 21))
        asked = count(1)
        if untraced == "refuse":
            proxy.refusals[TRACERS[0]] = lambda: next(asked) % 3 > 0
        else:
            proxy.lies[TRACERS[0]] = lambda traces: None if next(asked) % 3 else traces
        # One at a time, so that each question meets the three nodes in their turn.
        for height in range(first, first + 20):
            async with chain.view() as view:
                found = await view.scan(Span(first=height, last=height), {bytes.fromhex(customer[2:])})
            assert [one.amount for one in found.transfers] == [height - first + 1]
        assert chain.endpoints()[0].failures == 0
