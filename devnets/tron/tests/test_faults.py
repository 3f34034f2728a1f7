"""Faults on demand: each as providers have shown it, for the requests that it is meant for, and gone when told so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random
from typing import Any

import aiohttp
import pytest

from cambist_tron_node import Face, Fault, NoMachine, TronNode
from cambist_tron_node.faults import BACK_BLOCKS, LAG_BLOCKS

pytestmark = pytest.mark.slow

TRX = 1_000_000
INFOS = "wallet/gettransactioninfobyblocknum"
Post = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
async def node() -> AsyncIterator[TronNode]:
    """Run a node with fifty blocks, in the newest of which are two transfers."""
    async with TronNode(machine=NoMachine()) as node:
        await node.mine(49)
        await node.send_trx(node.accounts[1], TRX)
        await node.send_trx(node.accounts[2], TRX)
        await node.mine()
        yield node


@pytest.fixture
async def face(node: TronNode) -> AsyncIterator[Face]:
    async with node.face() as face:
        yield face


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        yield session


@pytest.fixture
def post(session: aiohttp.ClientSession, face: Face) -> Post:
    """Return a function that asks the face and returns status and text."""

    async def post(path: str, **values: Any) -> tuple[int, str]:
        async with session.post(f"{face.url}/{path}", json=values) as response:
            return response.status, await response.text()

    return post


@pytest.fixture
def ask(session: aiohttp.ClientSession, face: Face) -> Callable[..., Awaitable[Any]]:
    """Return a function that asks the face and returns its JSON."""

    async def ask(path: str, **values: Any) -> Any:
        async with session.post(f"{face.url}/{path}", json=values) as response:
            assert response.status == 200
            return await response.json()

    return ask


async def head(ask: Callable[..., Awaitable[Any]]) -> int:
    number: int = (await ask("wallet/getnowblock"))["block_header"]["raw_data"]["number"]
    return number


async def transfer(node: TronNode) -> dict[str, Any]:
    """Return a signed transfer that nobody has been told of."""
    tx_id = await node.send_trx(node.accounts[3], 7)
    (waiting,) = (each for each in node.chain.pool if each.id.hex() == tx_id)
    await node.forget_pool()
    return waiting.to_json()


class TestOnTheWay:
    @pytest.mark.parametrize(
        "fault, status, words",
        [
            (Fault.HTTP_403, 403, "Exceed the user daily usage"),
            (Fault.HTTP_429, 429, "suspended"),
            (Fault.HTTP_500, 500, "Internal Server Error"),
            (Fault.HTTP_503, 503, "upstream"),
            (Fault.HTML, 200, "<html>"),
            (Fault.LITE_NODE, 200, "lite fullnode"),
            (
                Fault.RATE_LIMITED,
                200,
                '{"Error": "class java.lang.IllegalAccessException : lack of computing resources"}',
            ),
        ],
    )
    async def test_another_answer_comes_instead(self, node, face, post, fault, status, words) -> None:
        honest = await post("wallet/getblockbynum", num=node.head)
        face.faults = {fault}
        got, text = await post("wallet/getblockbynum", num=node.head)
        assert got == status
        assert words in text
        face.faults = set()
        assert await post("wallet/getblockbynum", num=node.head) == honest

    async def test_an_answer_ends_in_the_middle(self, node, face, post) -> None:
        _, honest = await post("wallet/getblockbynum", num=node.head)
        face.faults = {Fault.TRUNCATED}
        _, text = await post("wallet/getblockbynum", num=node.head)
        assert text
        assert len(text) < len(honest)
        assert honest.startswith(text)

    @pytest.mark.parametrize("fault", [Fault.RESET, Fault.ANSWER_LOST])
    async def test_a_connection_ends(self, face, post, fault) -> None:
        face.faults = {fault}
        with pytest.raises(aiohttp.ClientError):
            await post("wallet/getnowblock")

    async def test_no_answer_comes(self, node, session) -> None:
        """Until the client gives up; and the node can be stopped all the same."""
        async with node.face(Fault.TIMEOUT) as face:
            timeout = aiohttp.ClientTimeout(total=0.2)
            with pytest.raises(TimeoutError):
                await session.post(f"{face.url}/wallet/getnowblock", json={}, timeout=timeout)

    async def test_answers_take_their_time(self, face, post) -> None:
        face.latency_s = 0.1
        began = time.monotonic()
        await post("wallet/getnowblock")
        assert time.monotonic() - began >= 0.1


class TestWhatIsTold:
    async def test_the_head_stands_still_and_catches_up(self, node, face, ask) -> None:
        seen = await head(ask)
        face.faults = {Fault.HEAD_FROZEN}
        await node.mine(3)
        assert await head(ask) == seen
        assert await ask("wallet/getblockbynum", num=node.head) == {}
        face.faults = set()
        assert await head(ask) == node.head == seen + 3

    async def test_the_head_moves_back_while_the_blocks_are_there(self, node, face, ask) -> None:
        face.faults = {Fault.HEAD_BACK}
        assert await head(ask) == node.head - BACK_BLOCKS
        assert f"Num:{node.head - BACK_BLOCKS}," in (await ask("wallet/getnodeinfo"))["block"]
        assert (await ask("wallet/getblockbynum", num=node.head))["blockID"] == node.block_id(node.head)

    async def test_an_address_can_be_far_behind_or_a_little(self, node, face, ask) -> None:
        face.faults = {Fault.LAGGING}
        assert await head(ask) == node.head - LAG_BLOCKS
        face.faults, face.lag_blocks = set(), 2
        assert await head(ask) == node.head - 2
        assert await ask("wallet/getblockbylimitnext", startNum=node.head - 1, endNum=node.head + 1) == {"block": []}

    async def test_blocks_and_infos_go_missing(self, node, face, ask) -> None:
        face.faults = {Fault.NO_BLOCK, Fault.NO_INFOS}
        assert await ask("wallet/getblockbynum", num=node.head) == {}
        assert await ask("wallet/getblockbylimitnext", startNum=1, endNum=3) == {}
        assert await ask(INFOS, num=node.head) == {}
        face.faults = {Fault.EMPTY_INFOS}
        assert await ask(INFOS, num=node.head) == []
        face.faults = {Fault.SHORT_INFOS}
        assert len(await ask(INFOS, num=node.head)) == 1

    async def test_another_blocks_answers_come(self, node, face, ask) -> None:
        await node.send_trx(node.accounts[1], TRX)
        await node.mine()
        below = await ask(INFOS, num=node.head - 1)
        face.faults = {Fault.OTHER_INFOS, Fault.OTHER_BLOCK}
        assert await ask(INFOS, num=node.head) == below
        assert (await ask("wallet/getblockbynum", num=node.head))["blockID"] == node.block_id(node.head - 1)

    async def test_another_forks_hashes_fit_together(self, node, face, ask) -> None:
        """Numbers are kept; a block's parent is the block before it; every answer names the same block alike."""
        face.faults = {Fault.OTHER_FORK}
        block = await ask("wallet/getblockbynum", num=node.head)
        parent = await ask("wallet/getblockbynum", num=node.head - 1)
        assert block["blockID"] != node.block_id(node.head)
        assert block["blockID"][:16] == node.block_id(node.head)[:16]
        assert block["block_header"]["raw_data"]["parentHash"] == parent["blockID"]
        assert (await ask("wallet/getnodeinfo"))["block"] == f"Num:{node.head},ID:{block['blockID']}"

    async def test_a_transaction_is_told_of_in_its_block_alone(self, node, face, ask) -> None:
        tx_id = (await ask("wallet/getblockbynum", num=node.head))["transactions"][0]["txID"]
        face.hidden.add(tx_id)
        assert await ask("wallet/gettransactionbyid", value=tx_id) == {}
        assert await ask("wallet/gettransactioninfobyid", value=tx_id) == {}
        assert tx_id in str(await ask("wallet/getblockbynum", num=node.head))
        face.clear()
        assert (await ask("wallet/gettransactioninfobyid", value=tx_id))["id"] == tx_id

    async def test_estimates_are_disabled(self, face, ask) -> None:
        face.faults = {Fault.NO_ESTIMATES}
        answer = await ask("wallet/estimateenergy")
        assert answer["result"]["code"] == "CONTRACT_VALIDATE_ERROR"
        assert bytes.fromhex(answer["result"]["message"]) == b"this node does not support estimate energy"


class TestBroadcasts:
    async def test_a_busy_node_takes_nothing(self, node, face, ask) -> None:
        signed = await transfer(node)
        face.faults = {Fault.SERVER_BUSY}
        answer = await ask("wallet/broadcasttransaction", **signed)
        assert (answer["code"], answer["txid"]) == ("SERVER_BUSY", signed["txID"])
        assert not answer.get("result")
        assert node.pending() == []

    async def test_a_forgetful_node_says_yes_and_does_nothing(self, node, face, ask) -> None:
        signed = await transfer(node)
        face.faults = {Fault.FORGETFUL}
        assert await ask("wallet/broadcasttransaction", **signed) == {"result": True, "txid": signed["txID"]}
        assert node.pending() == []
        face.faults = set()
        assert await ask("wallet/broadcasttransaction", **signed) == {"result": True, "txid": signed["txID"]}
        assert node.pending() == [signed["txID"]]

    async def test_a_transaction_is_taken_and_the_answer_lost(self, node, face, post) -> None:
        signed = await transfer(node)
        face.faults = {Fault.ANSWER_LOST}
        with pytest.raises(aiohttp.ClientError):
            await post("wallet/broadcasttransaction", **signed)
        assert node.pending() == [signed["txID"]]


class TestChoosing:
    async def test_a_fault_can_be_for_some_paths_and_some_times(self, face, post) -> None:
        face.add(Fault.HTTP_500, "getnowblock", times=2)
        face.add(Fault.HTTP_503, "walletsolidity/getnodeinfo")
        assert [(await post("wallet/getnowblock"))[0] for _ in range(4)] == [500, 500, 200, 200]
        assert (await post("wallet/getnodeinfo"))[0] == 200
        assert (await post("walletsolidity/getnodeinfo"))[0] == 503

    async def test_a_share_is_drawn_from_the_seed(self, node, session) -> None:
        async def statuses() -> list[int]:
            async with Face(node.chain, random=Random(5)) as face:
                face.add(Fault.HTTP_500, share=0.3)
                found = []
                for _ in range(60):
                    async with session.post(f"{face.url}/wallet/getnowblock", json={}) as response:
                        found.append(response.status)
                return found

        first = await statuses()
        assert 5 < first.count(500) < 35
        assert await statuses() == first

    async def test_one_address_fails_while_the_node_and_the_others_do_not(self, node, face, session) -> None:
        face.faults, node.faults.faults = {Fault.HTTP_500}, set()
        async with node.face() as other:
            statuses = []
            for url in (face.url, other.url, node.url):
                async with session.post(f"{url}/wallet/getnowblock", json={}) as response:
                    statuses.append(response.status)
        assert statuses == [500, 200, 200]
        assert (face.calls["wallet/getnowblock"], node.calls["wallet/getnowblock"]) == (1, 1)

    async def test_requests_at_once_are_counted_one_by_one(self, face, post) -> None:
        face.add(Fault.HTTP_500, times=5)
        statuses = await asyncio.gather(*(post("wallet/getnowblock") for _ in range(20)))
        assert [status for status, _ in statuses].count(500) == 5


async def test_two_nodes_make_the_same_blocks_until_one_takes_another_branch() -> None:
    """Nodes with the same clock are copies of each other, and so a fork between two of them has a common past."""
    clock = {"machine": NoMachine(), "clock_ms": lambda: 1_700_000_000_000}
    async with TronNode(**clock) as one, TronNode(**clock) as other:
        await one.mine(10)
        await other.mine(10)
        ids = [one.block_id(number) for number in range(one.head + 1)]
        assert ids == [other.block_id(number) for number in range(other.head + 1)]
        await other.reorg(4)
        same = [one.block_id(number) == other.block_id(number) for number in range(one.head + 1)]
        assert same == [True] * 8 + [False] * 4
