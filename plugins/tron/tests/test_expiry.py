"""Death is proven by blocks, and by nothing else: not by a node that knows nothing, lags, forgets or lies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from cambist.plugin import ChainError, ChainUnavailableError, Dated, LendingChain, PluginContext, SignedTx
from cambist_chainkit.http import HttpClient, open_session
from cambist_tron.config import TronConfig, resolve
from cambist_tron.endpoint import Endpoint
from cambist_tron.expiry import DYING_TOGETHER_S, MARGIN_S, _first_later, groups_of
from cambist_tron.writing import LIFETIME_S
from cambist_tron_node import NoMachine, TronNode
from cambist_tron_node.faults import Face, Fault

from .local import Net


async def one(net: Net, amount: int = 5) -> tuple[SignedTx, Dated]:
    (step,) = await net.planned(net.intent(net.rich, net.customer, amount))
    (tx,), (dated,) = await net.signed(step)
    return tx, dated


async def dead(chain: LendingChain, *dated: Dated) -> Sequence[bool]:
    return list(await chain.expired(dated))


async def test_only_what_no_block_holds_is_dead_and_only_when_all_are_solid(net: Net) -> None:
    """The block that is later than its time may hold it, too, and has to be solid."""
    (lost, lost_dated), (kept, kept_dated) = await one(net), await one(net, 6)
    assert lost.tx_id != kept.tx_id
    assert [said.state for said in await net.chain.broadcast([kept])] == ["accepted"]
    head = net.node.chain.blocks.head.timestamp_ms // 1000
    assert lost_dated.valid_until == head + LIFETIME_S
    await net.node.mine(LIFETIME_S // 3 + 1)
    for _ in range(18):
        assert await dead(net.chain, lost_dated, kept_dated) == [False, False]
        await net.node.mine()
    assert await dead(net.chain, lost_dated, kept_dated, lost_dated) == [True, False, True]
    assert (await net.states([lost, kept])) == ["unknown", "succeeded"]


async def test_what_lookups_hide_is_found_in_its_block(net: Net) -> None:
    """A node that knows nothing of an id, and has it in a block all the same."""
    tx, dated = await one(net)
    await net.chain.broadcast([tx])
    await net.node.mine()
    net.node.faults.hidden.add(tx.tx_id)
    assert await net.states([tx]) == ["unknown"]
    await net.outlive(dated)
    assert await dead(net.chain, dated) == [False]


async def test_two_histories_prove_nothing(net: Net) -> None:
    """Another endpoint has other solid blocks, and the transaction in one of them: nobody can tell who is right."""
    tx, dated = await one(net)
    await net.outlive(dated)
    assert await dead(net.chain, dated) == [True]
    async with TronNode(machine=NoMachine()) as other:
        await other.mine(net.node.head)
        for urls in ((net.node.url, other.url), (other.url, net.node.url)):
            async with net.connected(*urls) as chain:
                assert await answer(chain, dated) is None
    assert tx.tx_id == dated.tx_id


class Balanced(Face):
    """An address with two nodes behind it: one tells heads, the other everything else."""

    def __init__(self, net: Net, other: TronNode, session: aiohttp.ClientSession) -> None:
        super().__init__(net.node.chain)
        self._other = other
        self._session = session

    async def before(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse | None:
        _ = request
        if path.endswith("getnodeinfo"):
            return None
        async with self._session.post(f"{self._other.url}/{path}", json=body) as answered:
            return web.Response(body=await answered.read(), content_type="application/json")


async def test_what_one_node_calls_solid_says_nothing_of_anothers_blocks(net: Net) -> None:
    """A node on a fork that lost has a block of that height, too, which is not solid there nor anywhere."""
    tx, dated = await one(net)
    await net.chain.broadcast([tx])
    await net.outlive(dated)
    async with (
        TronNode(machine=NoMachine()) as other,
        aiohttp.ClientSession() as session,
        Balanced(net, other, session) as face,
    ):
        await other.mine(net.node.head - 10 - other.head)
        assert other.solid_height < net.node.solid_height <= other.head
        async with net.connected(face.url) as chain:
            assert await answer(chain, dated) in ([False], None)


@pytest.mark.parametrize("lying_first", [True, False])
async def test_an_endpoint_that_leaves_it_out_does_not_decide(net: Net, lying_first: bool) -> None:
    """Whichever is asked first: what one of them has in a block, no other can take away."""
    tx, dated = await one(net)
    await net.chain.broadcast([tx])
    await net.node.mine()
    await net.outlive(dated)
    async with net.node.face(Fault.OTHER_FORK) as liar:
        urls = [net.node.url, liar.url]
        async with net.connected(*(reversed(urls) if lying_first else urls)) as chain:
            for _ in range(3):
                assert await answer(chain, dated) in ([False], None)


@pytest.mark.parametrize(
    "fault",
    [
        Fault.HEAD_FROZEN,
        Fault.HEAD_BACK,
        Fault.LAGGING,
        Fault.NO_BLOCK,
        Fault.OTHER_BLOCK,
        Fault.OTHER_FORK,
        Fault.LITE_NODE,
        Fault.RATE_LIMITED,
        Fault.HTTP_500,
        Fault.TRUNCATED,
        Fault.HTML,
        Fault.RESET,
    ],
)
async def test_faults_prove_nothing(net: Net, fault: Fault) -> None:
    """However a node fails, what was mined is never dead; and what was not is dead once it answers again."""
    (tx, dated), (_, lost) = await one(net), await one(net, 6)
    await net.chain.broadcast([tx])
    await net.node.mine()
    await net.outlive(dated)
    net.node.faults.hidden.add(tx.tx_id)
    for share in (1.0, 0.3):
        net.node.faults.faults = {fault}
        net.node.faults.rate = share
        for _ in range(3):
            async with net.connected() as chain:
                said = await answer(chain, dated, lost)
                assert said is None or said[0] is False
    net.node.faults.faults.clear()
    assert await dead(net.chain, dated, lost) == [False, True]


async def answer(chain: LendingChain, *dated: Dated) -> Sequence[bool] | None:
    try:
        return await dead(chain, *dated)
    except ChainError:
        return None


async def test_a_node_that_is_behind_leaves_it_open(net: Net) -> None:
    """Its newest solid block is not later than the transaction's time."""
    _, dated = await one(net)
    await net.outlive(dated)
    net.node.faults.lag_blocks = 40
    assert await dead(net.chain, dated) == [False]
    net.node.faults.lag_blocks = 0
    assert await dead(net.chain, dated) == [True]


async def test_a_quorum_must_have_read_the_blocks(net: Net) -> None:
    """With two that must agree, one alone proves nothing."""
    _, dated = await one(net)
    await net.outlive(dated)
    async with net.node.face() as other, net.connected(net.node.url, other.url, quorum=2) as chain:
        assert await dead(chain, dated) == [True]
        other.lag_blocks = 40
        assert await dead(chain, dated) == [False]


async def test_long_ago_is_as_dead_as_lately(net: Net) -> None:
    """The blocks in which it could stand are found by their times, also far below the newest solid one."""
    (tx, dated), (_, lost) = await one(net), await one(net, 6)
    await net.chain.broadcast([tx])
    await net.outlive(dated)
    await net.node.mine(200)
    before = net.node.calls.total()
    assert await dead(net.chain, dated, lost) == [False, True]
    assert net.node.calls.total() - before < 30


async def test_the_first_block_later_than_a_time_is_found_wherever_slots_were_missed(context: PluginContext) -> None:
    """The one before it would leave out a block that may hold the transaction. Few blocks are looked at for it."""
    now_s = [1_700_000_000]
    async with (
        TronNode(machine=NoMachine(), clock_ms=lambda: now_s[0] * 1000) as node,
        open_session(context) as session,
    ):
        await node.mine(320)
        for missed in (0, 1, 0, 0, 7, 2, 0, 300, 0, 0, 0, 0, 0, 1, 0, 0):
            now_s[0] = node.chain.blocks.head.timestamp_ms // 1000 + 3 * (1 + missed)
            await node.mine()
        setup = resolve(msgspec.convert({"network": "local", "rpc_urls": [node.url]}, TronConfig))
        http = HttpClient(session, node.url, "node", now=context.now, timeout_s=5, response_bytes_max=10**8)
        endpoint = Endpoint(http, setup, None, context.monotonic)
        blocks = [await endpoint.block(height) for height in range(320, node.head + 1)]
        node.calls.clear()
        for block, later in pairwise(blocks):
            for time in (block.time, later.time - 1):
                assert await _first_later(endpoint, time, blocks[-1]) == later
        assert node.calls.total() < 12 * 2 * len(blocks)


async def test_those_that_die_together_are_looked_for_together(net: Net) -> None:
    """Fifty cost no more blocks than one."""
    pairs = [await one(net, number) for number in range(1, 31)]
    await net.outlive(pairs[0][1])
    net.node.calls.clear()
    assert all(await dead(net.chain, *(dated for _, dated in pairs)))
    assert net.node.calls["wallet/getblockbylimitnext"] < 20


def test_groups_hold_what_dies_within_a_minute() -> None:
    """Each with all the time in which one of its members can have been mined."""
    txs = [Dated(tx_id=str(number), valid_until=1_000_000 + 25 * number) for number in range(5)]
    first, second = groups_of([*reversed(txs), txs[0]])
    assert [len(group.txs) for group in (first, second)] == [3, 2]
    assert first.last_s - txs[0].valid_until <= DYING_TOGETHER_S
    assert second.first_s == txs[3].valid_until - LIFETIME_S - MARGIN_S
    assert groups_of([]) == []


async def test_without_a_node_nothing_is_learned(net: Net) -> None:
    """Which is an error, and no answer."""
    _, dated = await one(net)
    await net.outlive(dated)
    await net.node.stop_listening()
    with pytest.raises(ChainUnavailableError):
        await dead(net.chain, dated)
    await net.node.listen_again()


async def test_nothing_asked_is_nothing_answered(net: Net) -> None:
    """And costs nothing."""
    net.node.calls.clear()
    assert await dead(net.chain) == []
    assert not net.node.calls


class Omitting(Face):
    """An address that leaves a transaction out wherever it could be seen."""

    def __init__(self, net: Net, tx_id: str) -> None:
        super().__init__(net.node.chain)
        self.hidden.add(tx_id)
        self._tx_id = tx_id

    async def after(self, path: str, answer: Any, request: Any) -> Any:
        answer = await super().after(path, answer, request)
        if path.endswith(("getblockbylimitnext", "getblockbynum", "getblock")):
            for block in answer.get("block", [answer]):
                listed = [tx for tx in block.get("transactions", []) if tx["txID"] != self._tx_id]
                if "transactions" in block:
                    block["transactions"] = listed
        if path.endswith("gettransactioninfobyblocknum"):
            return [info for info in answer if info["id"] != self._tx_id]
        return answer


async def test_what_is_left_out_of_a_block_is_missed_there(net: Net) -> None:
    """The header holds the root of all transactions: one endpoint alone cannot leave one out, whatever else it says."""
    (tx, dated), (beside, _) = await one(net), await one(net, 6)
    await net.chain.broadcast([tx, beside])
    await net.outlive(dated)
    async with Omitting(net, tx.tx_id) as liar, net.connected(liar.url) as chain:
        assert (await chain.transaction(tx.tx_id)).state == "unknown"
        assert await dead(chain, dated) == [False]


class Blurring(Face):
    """An address that shows transactions in blocks without their results, so that no root can be proven."""

    async def after(self, path: str, answer: Any, request: Any) -> Any:
        answer = await super().after(path, answer, request)
        if path.endswith("getblockbylimitnext"):
            for block in answer["block"]:
                for tx in block.get("transactions", []):
                    tx.pop("ret")
        return answer


async def test_what_cannot_be_proven_takes_two_that_say_the_same(net: Net) -> None:
    """A block may hold bytes that JSON does not show: then one endpoint is not enough, and two are."""
    (_, dated), (beside, _) = await one(net), await one(net, 6)
    await net.chain.broadcast([beside])
    await net.outlive(dated)
    async with Blurring(net.node.chain) as first, Blurring(net.node.chain) as second:
        async with net.connected(first.url) as chain:
            assert await dead(chain, dated) == [False]
        async with net.connected(first.url, second.url) as chain:
            assert await dead(chain, dated) == [True]


async def test_that_it_cannot_be_proven_is_said_in_the_log(net: Net) -> None:
    """With one endpoint alone it waits for ever, so whoever runs the gateway has to hear of it."""
    (_, dated), (beside, _) = await one(net), await one(net, 6)
    await net.chain.broadcast([beside])
    async with Blurring(net.node.chain) as first, net.connected(first.url) as chain:
        with capture_logs() as early:
            assert await dead(chain, dated) == [False]
        await net.outlive(dated)
        with capture_logs() as said:
            assert await dead(chain, dated) == [False]
    assert early == []
    assert [(one["event"], one["chain"], one["txs"]) for one in said] == [("expiry_unproven", "tron", 1)]
    with capture_logs() as said:
        assert await dead(net.chain, dated) == [True]
    assert said == []
