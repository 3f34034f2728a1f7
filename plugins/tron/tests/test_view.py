"""Looks as the gateway takes them: as few questions as can be, and never an older answer than the head's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from cambist.plugin import Block, Chain, Head, ScanResult, Span, SpanTooWideError
from cambist.testing import watching
from cambist_tron.family import TronFamily

from .canned import CannedNode
from .forging import Mined, chain, info, trx

Connect = Callable[..., Any]

HEAD, HEADER = "wallet/getnodeinfo", "wallet/getblock"
BLOCKS, INFOS = "wallet/getblockbylimitnext", "wallet/gettransactioninfobyblocknum"


@pytest.fixture
def mined(payer: str, customer: str) -> list[Mined]:
    """Return thirty blocks, in each of which the customer is paid its number."""
    return chain(*([(one, info(one))] for number in range(1, 31) for one in [trx(payer, customer, number)]))


@pytest.fixture
async def node(mined: list[Mined]) -> AsyncIterator[CannedNode]:
    """Return a node that knows the first twenty."""
    async with CannedNode(mined[:20]) as node:
        yield node


def grow(node: CannedNode, *more: Mined) -> None:
    for block, infos in more:
        number = block["block_header"]["raw_data"]["number"]
        node.blocks[number], node.infos[number] = block, infos


class Follower:
    """Follows a chain as the gateway's watcher does, without a database."""

    def __init__(self, connected: Chain, node: CannedNode, customer: str, cursor: int) -> None:
        """Stand at a block."""
        self._chain = connected
        self._node = node
        self._watch = watching(TronFamily(), customer)
        self.cursor = cursor
        self.hash = node.blocks[cursor]["blockID"]
        self.paid: list[int] = []

    async def poll(self) -> dict[str, int]:
        """Poll once, and return how often each path was asked."""
        before = self._node.calls.copy()
        async with self._chain.view() as view:
            head: Head = await view.head()
            block: Block = await view.block(self.cursor)
            assert block.hash == self._node.blocks[self.cursor]["blockID"]
            if block.hash == self.hash and self.cursor < head.height:
                result: ScanResult = await view.scan(Span(first=self.cursor + 1, last=head.height), self._watch)
                self.paid += [one.amount for one in result.transfers]
                assert [one.hash for one in result.blocks] == [
                    self._node.blocks[height]["blockID"] for height in range(self.cursor + 1, head.height + 1)
                ]
                assert result.blocks[0].parent_hash == self.hash
                self.cursor, self.hash = head.height, result.blocks[-1].hash
        return dict(self._node.calls - before)


async def test_a_poll_costs_one_question_and_a_new_block_two_more(
    node: CannedNode, mined: list[Mined], connect: Connect, customer: str
) -> None:
    """However many came at once, they come in one answer."""
    async with connect(node.url) as connected:
        follower = Follower(connected, node, customer, 19)
        assert await follower.poll() == {HEAD: 1, HEADER: 1, BLOCKS: 1, INFOS: 1}
        for _ in range(3):
            assert await follower.poll() == {HEAD: 1}
        for number in (21, 22, 23):
            grow(node, mined[number - 1])
            assert await follower.poll() == {HEAD: 1, BLOCKS: 1, INFOS: 1}
        grow(node, *mined[23:26])
        assert await follower.poll() == {HEAD: 1, BLOCKS: 1, INFOS: 3}
    assert follower.paid == list(range(20, 27))


async def test_where_much_is_to_be_read_nothing_is_read_ahead(
    node: CannedNode, mined: list[Mined], connect: Connect, customer: str
) -> None:
    """The blocks are asked for in batches then."""
    async with connect(node.url, batch_blocks_max=4) as connected:
        follower = Follower(connected, node, customer, 19)
        await follower.poll()
        grow(node, *mined[20:])
        assert await follower.poll() == {HEAD: 1, HEADER: 1, BLOCKS: 3, INFOS: 10}
    assert follower.paid == list(range(20, 31))


async def test_where_the_blocks_that_came_are_too_many_for_one_answer_fewer_are_read(
    node: CannedNode, mined: list[Mined], connect: Connect, customer: str
) -> None:
    """What is asked for ahead must not fail the poll: nobody halves it there, and it would fail each time."""
    node.answers[BLOCKS] = lambda body: (
        {"Error": "response too large"}
        if body["endNum"] - body["startNum"] > 2
        else node.answer("getblockbylimitnext", body, solid=False)
    )
    async with connect(node.url) as connected:
        await Follower(connected, node, customer, 19).poll()
        grow(node, *mined[20:26])
        async with connected.view() as view:
            await view.head()
            assert (await view.block(20)).hash == node.blocks[20]["blockID"]
            with pytest.raises(SpanTooWideError):
                await view.scan(Span(first=21, last=26), watching(TronFamily(), customer))
            result = await view.scan(Span(first=21, last=22), watching(TronFamily(), customer))
    assert [transfer.amount for transfer in result.transfers] == [21, 22]


async def test_with_a_quorum_every_endpoint_is_asked_everything(
    node: CannedNode, mined: list[Mined], connect: Connect, customer: str
) -> None:
    """One must not vouch for the other."""
    async with CannedNode(mined[:20]) as other, connect(node.url, other.url, quorum=2) as connected:
        follower = Follower(connected, node, customer, 19)
        for _ in range(3):
            await follower.poll()
        assert other.calls[HEADER] == node.calls[HEADER]
        assert other.calls[HEADER] >= 3
    assert follower.paid == [20]


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("longer", [0, 1, 3])
async def test_a_replaced_block_is_never_said_to_stand(
    node: CannedNode, mined: list[Mined], connect: Connect, payer: str, customer: str, depth: int, longer: int
) -> None:
    """Whether the other branch is as long or longer, and however far below the head it began."""
    others = [trx(payer, customer, 1000 + number) for number in range(depth + longer)]
    first = 21 - depth
    branch = chain(*([(one, info(one))] for one in others), first=first, parent=mined[first - 2][0]["blockID"])
    async with connect(node.url) as connected:
        follower = Follower(connected, node, customer, 10)
        await follower.poll()
        assert follower.cursor == 20
        grow(node, *branch)
        before = list(follower.paid)
        await follower.poll()
        assert (follower.cursor, follower.paid) == (20, before)
        for height in range(first - 2, 20 + longer + 1):
            async with connected.view() as view:
                await view.head()
                for asked in (height, first - 1):
                    assert (await view.block(asked)).hash == node.blocks[asked]["blockID"]


async def test_what_was_read_ahead_is_read_again_where_it_does_not_fit(
    node: CannedNode, mined: list[Mined], connect: Connect, payer: str, customer: str
) -> None:
    """The newest block is replaced between the two questions about it."""
    one = trx(payer, customer, 1000)
    (replaced,) = chain([(one, info(one))], first=21, parent=mined[19][0]["blockID"])
    async with connect(node.url) as connected:
        await Follower(connected, node, customer, 19).poll()
        grow(node, mined[20])
        async with connected.view() as view:
            await view.head()
            await view.block(20)
            grow(node, replaced)
            result = await view.scan(Span(first=21, last=21), watching(TronFamily(), customer))
    assert [transfer.amount for transfer in result.transfers] == [1000]
    assert result.blocks[0].hash == replaced[0]["blockID"]
