"""An endpoint that fails or lies, in every way: an error of the right kind, never a wrong answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any

import pytest

from cambist.plugin import (
    ChainError,
    ChainUnavailableError,
    Head,
    InconsistentChainError,
    LogQuery,
    RateLimitedError,
    Span,
    SpanTooWideError,
)
from cambist_evm.testing import Anvil, Contract, Fault, FaultyProxy

pytestmark = pytest.mark.slow

Connect = Scan = Callable[..., Any]

PAUSED_S = 0.6
"""A little longer than an endpoint is left alone that failed once."""
SECRET = "sECRETkEY0123456789"


@pytest.fixture
async def proxy(node: Anvil) -> AsyncIterator[FaultyProxy]:
    async with FaultyProxy(node.url) as proxy:
        yield proxy


@pytest.mark.parametrize(
    "fault, error",
    [
        (Fault.TIMEOUT, ChainUnavailableError),
        (Fault.RESET, ChainUnavailableError),
        (Fault.HTTP_429, RateLimitedError),
        (Fault.HTTP_500, ChainUnavailableError),
        (Fault.HTTP_503, ChainUnavailableError),
        (Fault.HTML, ChainUnavailableError),
        (Fault.TRUNCATED, ChainUnavailableError),
        (Fault.WRONG_ID, InconsistentChainError),
        (Fault.DUPLICATED, InconsistentChainError),
        (Fault.RPC_ERROR, ChainUnavailableError),
        (Fault.RATE_LIMITED, RateLimitedError),
        (Fault.TOO_WIDE, SpanTooWideError),
        (Fault.NULL_BLOCK, InconsistentChainError),
        (Fault.NULL_RECEIPTS, InconsistentChainError),
        (Fault.EMPTY_RECEIPTS, InconsistentChainError),
        (Fault.SHORT_RECEIPTS, InconsistentChainError),
        (Fault.OTHER_RECEIPTS, InconsistentChainError),
        (Fault.MISSING_LOG, InconsistentChainError),
        (Fault.REMOVED_LOG, InconsistentChainError),
    ],
)
async def test_each_fault_is_the_error_it_should_be_and_passes(
    node: Anvil, token: Contract, splitter: Contract, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str,
    fault: Fault, error: type[ChainError],
) -> None:  # fmt: skip
    """While it lasts nothing is learned; afterwards everything is found. The endpoint's key is in no message."""
    await token.send("mint", splitter.address, 1000)
    first = await node.height() + 1
    await splitter.send("splitToken", token.address, [customer, customer], [1, 2])
    await node.send_native(customer, 3)
    # Only who says nothing is waited for; what answers may take its time on a busy machine.
    timeout_ms = 1_000 if fault is Fault.TIMEOUT else 30_000
    async with connect(f"{proxy.url}/v3/{SECRET}", token=token, request_timeout_ms=timeout_ms) as chain:
        async with chain.view() as view:
            await view.head()
        proxy.faults = {fault}
        with pytest.raises(error) as caught:
            await scan(chain, first, customer)
        assert SECRET not in str(caught.value)
        assert SECRET not in str(chain.endpoints())
        proxy.faults = set()
        transfers = await _once_back(chain, scan, first, customer)
        assert [one.amount for one in transfers] == [1, 2, 3]


async def _once_back(chain: Any, scan: Scan, first: int, customer: str) -> Any:
    for _ in range(100):
        try:
            return (await scan(chain, first, customer)).transfers
        except ChainUnavailableError:
            await asyncio.sleep(0.05)
    return None


async def test_what_one_of_several_nodes_behind_an_address_has_not_yet_is_asked_for_again(
    node: Anvil, token: Contract, proxy: FaultyProxy, connect: Connect, customer: str
) -> None:
    """Who told of the head has it. Nobody is left alone for a while because another answered the next question."""
    paid = await node.height() + 1
    await token.send("transfer", customer, 5)
    await node.mine(2)
    asked: Counter[str] = Counter()

    def lagging(method: str) -> Callable[[Any], Any]:
        def told(answer: Any) -> Any:
            number = answer["number"] if isinstance(answer, dict) else answer[0]["blockNumber"]
            asked[method] += number == hex(paid)
            return None if number == hex(paid) and asked[method] % 3 else answer

        return told

    proxy.lies = {method: lagging(method) for method in ("eth_getBlockByNumber", "eth_getBlockReceipts")}
    async with connect(proxy.url, token=token) as chain:
        async with chain.view() as view:
            await view.head()
            assert (await view.block(paid)).height == paid
            found = await view.scan(Span(first=paid, last=paid), {bytes.fromhex(customer[2:])})
        assert [one.amount for one in found.transfers] == [5]
        assert chain.endpoints()[0].failures == 0


def absent_twice_in_three() -> Callable[[Any], Any]:
    """Return a lie as of three nodes behind an address, of which one has come as far as the block."""
    asked = count(1)
    return lambda answer: None if next(asked) % 3 else answer


async def test_what_one_node_tells_of_is_asked_for_again_where_the_next_has_not_heard_of_it(
    node: Anvil, token: Contract, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str
) -> None:
    """Of a mined transaction its block, of a block its transactions' receipts, where they come one by one."""
    paid = await node.height() + 1
    tx_id = await token.send("transfer", customer, 5)
    async with connect(proxy.url, token=token) as chain:
        proxy.lies["eth_getBlockByHash"] = absent_twice_in_three()
        assert [one.state for one in await chain.transactions([tx_id])] == ["succeeded"]
        assert (await chain.receipt(tx_id)).block.height == paid
        proxy.faults = {Fault.NO_BLOCK_RECEIPTS}
        proxy.lies["eth_getTransactionReceipt"] = absent_twice_in_three()
        assert [one.amount for one in (await scan(chain, paid, customer)).transfers] == [5]
        assert len(await chain.logs(LogQuery(address=token.address, topics=(), first=paid, last=paid))) == 1
        assert chain.endpoints()[0].failures == 0
    assert (proxy.calls["eth_getBlockByHash"], proxy.calls["eth_getTransactionReceipt"]) == (6, 8)


async def test_a_wrong_chain_id_is_never_read_from(
    node: Anvil, proxy: FaultyProxy, connect: Connect, customer: str
) -> None:
    """Not even a balance."""
    proxy.faults = {Fault.WRONG_CHAIN_ID}
    async with connect(proxy.url) as chain:
        with pytest.raises(ChainUnavailableError, match="chain id 999"):
            async with chain.view() as view:
                await view.head()
        with pytest.raises(ChainUnavailableError):
            await chain.balance(customer, chain.info.native)
        assert "chain id 999" in (await chain.problems())[0]
    assert proxy.calls.keys() == {"eth_chainId"}


async def test_the_wait_that_an_endpoint_asks_for_is_kept(proxy: FaultyProxy, connect: Connect) -> None:
    """Retry-After in seconds, while other endpoints are free to answer."""
    async with connect(proxy.url) as chain:
        async with chain.view() as view:
            await view.head()
        proxy.faults, proxy.retry_after = {Fault.HTTP_429}, "30"
        with pytest.raises(RateLimitedError) as caught:
            async with chain.view() as view:
                await view.head()
        assert caught.value.retry_after == 30
        requests = proxy.requests
        with pytest.raises(ChainUnavailableError, match="can be asked"):
            async with chain.view() as view:
                await view.head()
        assert proxy.requests == requests


@pytest.mark.parametrize(
    "fault, method",
    [(Fault.NO_BLOCK_RECEIPTS, "eth_getTransactionReceipt"), (Fault.NO_DEBUG, "trace_block")],
)
async def test_what_a_node_does_not_offer_is_asked_in_another_way_and_not_again(
    node: Anvil, token: Contract, splitter: Contract, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str,
    fault: Fault, method: str,
) -> None:  # fmt: skip
    """Receipts one by one, traces of Parity's kind."""
    proxy.faults = {fault}
    first = await node.height() + 1
    await token.send("transfer", customer, 5)
    await splitter.send("splitNative", [customer], [7], value=7)
    async with connect(proxy.url, token=token) as chain:
        for _ in range(3):
            transfers = (await scan(chain, first, customer)).transfers
            assert [(one.position, one.amount) for one in transfers] == [("log:0", 5), ("trace:0", 7)]
    assert proxy.calls[method] > 0
    refused = "eth_getBlockReceipts" if fault is Fault.NO_BLOCK_RECEIPTS else "debug_traceBlockByHash"
    assert proxy.calls[refused] <= 2


@pytest.mark.parametrize("fault", [Fault.NO_TRACES, Fault.TRACES_COST])
async def test_a_node_without_traces_is_asked_once(
    node: Anvil, token: Contract, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str, fault: Fault
) -> None:
    """And blocks in which no code ran are never traced."""
    proxy.faults = {fault}
    first = await node.height() + 1
    await node.send_native(customer, 5)
    async with connect(proxy.url) as chain:
        await scan(chain, first, customer)
        assert not proxy.calls["debug_traceBlockByHash"]
        await token.send("transfer", customer, 5)
        for _ in range(3):
            await scan(chain, first, customer)
    assert proxy.calls["debug_traceBlockByHash"] == proxy.calls["trace_block"] == 1


async def test_traces_that_the_operator_requires_must_be_there(
    token: Contract, node: Anvil, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str
) -> None:
    """A node that lost the method is an outage, not a block without internal transfers."""
    proxy.faults = {Fault.NO_TRACES}
    await token.send("transfer", customer, 5)
    async with connect(proxy.url, trace="debug") as chain:
        with pytest.raises(ChainUnavailableError):
            await scan(chain, await node.height(), customer)


async def test_a_node_that_stops_tracing_is_an_outage(
    token: Contract, node: Anvil, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str
) -> None:
    """Where it traced before, internal transfers are not left out in silence."""
    await token.send("transfer", customer, 5)
    async with connect(proxy.url) as chain:
        await scan(chain, await node.height(), customer)
        proxy.faults = {Fault.NO_TRACES}
        with pytest.raises(ChainUnavailableError):
            await scan(chain, await node.height(), customer)


@pytest.mark.parametrize("faults", [{Fault.DEEP_TRACES}, {Fault.DEEP_TRACES, Fault.NO_FLAT}])
async def test_calls_nested_too_deeply_to_decode_do_not_stop_the_chain(
    node: Anvil, splitter: Contract, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str, faults: set[Fault]
) -> None:
    """Flat traces tell the same; without them, so do the traces of the block's other transactions."""
    proxy.faults = faults
    await splitter.send("splitNative", [customer], [7], value=7)
    async with connect(proxy.url) as chain:
        height = await node.height()
        assert [one.amount for one in (await scan(chain, height, customer)).transfers] == [7]


async def test_a_transaction_nested_too_deeply_to_decode_is_passed_by(
    node: Anvil, splitter: Contract, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str
) -> None:
    """Where there are no flat traces, and only that one."""
    proxy.faults = {Fault.DEEP_TRACES, Fault.NO_FLAT, Fault.DEEP_LONE_TRACES}
    await splitter.send("splitNative", [customer], [7], value=7)
    async with connect(proxy.url) as chain:
        height = await node.height()
        assert [one.amount for one in (await scan(chain, height, customer)).transfers] == []
        proxy.faults = set()
        assert [one.amount for one in (await scan(chain, height, customer)).transfers] == [7]


async def test_a_block_whose_receipts_are_too_long_is_read_one_by_one(
    token: Contract, node: Anvil, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str
) -> None:
    """A span of one cannot be halved, and whoever fills a block with logs must not be able to stop the chain."""
    await token.send("transfer", customer, 5)
    proxy.faults = {Fault.TOO_WIDE}
    async with connect(proxy.url, token=token) as chain:
        assert [one.amount for one in (await scan(chain, await node.height(), customer)).transfers] == [5]
        proxy.faults = set()
        assert [one.amount for one in (await scan(chain, await node.height(), customer)).transfers] == [5]
    assert proxy.calls["eth_getTransactionReceipt"] == 1


async def test_receipts_of_a_block_that_are_too_long_together_are_asked_for_in_parts(
    token: Contract, node: Anvil, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str
) -> None:
    """With the least that an operator can set: two transactions with 1,500 logs of nothing have receipts beyond it."""
    runtime = "6105dc5b60006000a06001900380600357" + "00"
    size = f"61{len(runtime) // 2:04x}"
    made = await node.send(None, data=f"0x{size}600e600039{size}6000f3{runtime}")
    loud = {"to": (await node.receipt(made))["contractAddress"], "gas": hex(2_000_000)}
    paying = {"from": node.accounts[0], "to": token.address, "data": token.data("transfer", customer, 5)}
    await node.mine()
    sent = [*({**loud, "from": node.accounts[number]} for number in (1, 2)), {**paying, "gas": hex(1_000_000)}]
    await node.reorg(1, [(one, 0) for one in sent])
    block = await node.call("eth_getBlockByNumber", ["latest", False])
    assert [(await node.receipt(one))["status"] for one in block["transactions"]] == ["0x1"] * 3
    async with connect(proxy.url, token=token, response_bytes_max=1_000_000, trace="off") as chain:
        assert [one.amount for one in (await scan(chain, await node.height(), customer)).transfers] == [5]
    assert proxy.calls["eth_getTransactionReceipt"] > 3


@pytest.mark.parametrize("fault", [Fault.SMALL_BATCHES, Fault.SMALL_BATCHES_EACH])
async def test_blocks_are_asked_for_in_as_small_batches_as_the_endpoint_takes(
    token: Contract, node: Anvil, proxy: FaultyProxy, connect: Connect, scan: Scan, customer: str, fault: Fault
) -> None:
    """It is learned once, and costs no blocks less in a span."""
    first = await node.height() + 1
    for amount in range(1, 13):
        await token.send("transfer", customer, amount)
    proxy.faults = {fault}
    async with connect(proxy.url, token=token) as chain:
        assert [one.amount for one in (await scan(chain, first, customer)).transfers] == list(range(1, 13))
        proxy.calls.clear()
        await scan(chain, first, customer)
    assert proxy.calls["eth_getBlockReceipts"] == 12


async def test_an_idle_poll_is_one_request_and_two_where_an_endpoint_takes_no_batch(
    node: Anvil, proxy: FaultyProxy, connect: Connect
) -> None:
    async with connect(proxy.url) as chain:

        async def head_and_requests() -> tuple[Head, int]:
            before = proxy.requests
            async with chain.view() as view:
                return await view.head(), proxy.requests - before

        await head_and_requests()
        head, requests = await head_and_requests()
        assert requests == 1
        assert head.finalized_height is not None
        proxy.refusals = {"eth_getBlockByNumber": iter([False, True, True]).__next__}
        assert (await head_and_requests())[0].finalized_height is None
        proxy.refusals = {}
        # One that is away for a moment is not taken for one that takes no batch.
        proxy.faults = {Fault.HTTP_500}
        with pytest.raises(ChainError):
            await head_and_requests()
        proxy.faults = set()
        await asyncio.sleep(PAUSED_S)
        await head_and_requests()
        assert await head_and_requests() == (head, 1)
        proxy.faults = {Fault.LONE_CALLS}
        assert (await head_and_requests())[0] == head
        assert await head_and_requests() == (head, 2)
        proxy.faults = set()
        assert await head_and_requests() == (head, 2)
        proxy.refusals = {"eth_getBlockByNumber": lambda: True}
        with pytest.raises(ChainError):
            await head_and_requests()


async def test_an_endpoint_that_refuses_all_but_the_first_call_of_a_request_still_tells_what_is_final(
    proxy: FaultyProxy, connect: Connect
) -> None:
    async with connect(proxy.url) as chain:
        async with chain.view() as view:
            head = await view.head()
        proxy.refusals = {"eth_getBlockByNumber": iter([False, True, False, False, False]).__next__}
        for _ in range(2):
            before = proxy.requests
            async with chain.view() as view:
                assert await view.head() == head
            assert proxy.requests - before == 2


@pytest.mark.parametrize("said", [{"batch_calls_max": 1}, {"short_calls_max": 1}], ids=str)
async def test_where_batches_are_unwanted_the_head_is_asked_for_by_lone_calls(
    proxy: FaultyProxy, connect: Connect, said: dict[str, int]
) -> None:
    """As by those who must not be sent any: here, one that takes each for too many requests."""
    proxy.faults = {Fault.BATCHES_429}
    async with connect(proxy.url, **said) as chain, chain.view() as view:
        assert (await view.head()).finalized_height is not None
