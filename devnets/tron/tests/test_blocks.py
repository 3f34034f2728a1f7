"""The local node's chain: blocks that hold together, a solid one behind the head, and branches that replace others."""

from __future__ import annotations

import asyncio
import hashlib
from itertools import pairwise

import pytest

from cambist_tron_node import NoMachine, TronNode, blocks, keys
from cambist_tron_node.chain import ReorgError

TRX = 1_000_000


async def test_blocks_are_linked_signed_and_three_seconds_apart(node: TronNode) -> None:
    await node.mine(30)
    made = node.chain.blocks.since(1)
    for parent, block in pairwise(made):
        raw = block.header.raw_data
        digest = hashlib.sha256(raw.SerializeToString()).digest()
        assert block.id == block.number.to_bytes(8, "big") + digest[8:]
        assert raw.parentHash == parent.id
        assert block.timestamp_ms - parent.timestamp_ms == 3000
        assert keys.signer(block.header.witness_signature, digest) == raw.witness_address
    assert len({block.header.raw_data.witness_address for block in made}) == 27


@pytest.mark.parametrize("representatives, behind", [(27, 18), (1, 0), (3, 2), (5, 3)])
async def test_the_solid_block_is_what_seven_in_ten_have_built_on(representatives: int, behind: int) -> None:
    async with TronNode(machine=NoMachine(), representatives=representatives) as node:
        assert node.solid_height == max(1 - behind, 0)
        await node.mine(40)
        assert node.solid_height == node.head - behind


async def test_the_first_block_tells_the_chain() -> None:
    ids = set()
    for chain_id in (blocks.MAINNET, blocks.NILE, blocks.SHASTA, 1337):
        async with TronNode(machine=NoMachine(), chain_id=chain_id) as node:
            first = node.block_id(0)
            assert int(first[:16], 16) == 0
            assert int(first[-8:], 16) == chain_id
            ids.add(first)
    assert len(ids) == 4


async def test_chain_time_follows_the_clock_and_runs_ahead_of_it_where_blocks_are_made_faster() -> None:
    now_ms = [1_700_000_000_000]
    async with TronNode(machine=NoMachine(), clock_ms=lambda: now_ms[0]) as node:
        start_ms = node.chain.blocks.head.timestamp_ms
        assert 0 <= now_ms[0] - start_ms < 3000
        await node.mine(10)
        assert node.chain.blocks.head.timestamp_ms == start_ms + 30_000
        now_ms[0] += 3_600_000
        await node.mine()
        assert 0 <= now_ms[0] - node.chain.blocks.head.timestamp_ms < 3000


async def test_thousands_of_blocks_and_hundreds_of_transfers_take_no_time(node: TronNode) -> None:
    to = node.new_account("customer")
    sent = [await node.send_trx(to, TRX) for _ in range(300)]
    await node.mine(3000)
    assert node.balance(to) == 300 * TRX
    assert {node.info(each)["blockNumber"] for each in sent} == {2}  # type: ignore[index]


async def test_a_root_over_transactions_carries_an_odd_one_up() -> None:
    a, b, c = (hashlib.sha256(bytes([number])).digest() for number in range(3))
    pair = hashlib.sha256(a + b).digest()
    assert blocks.merkle_root([]) == bytes(32)
    assert blocks.merkle_root([a]) == a
    assert blocks.merkle_root([a, b, c]) == hashlib.sha256(pair + c).digest()


async def test_another_branch_brings_a_kept_transaction_in_another_block_behind_another(node: TronNode) -> None:
    to = node.new_account("customer")
    await node.mine(20)
    sent = await node.send_trx(to, 5 * TRX)
    await node.mine(3)
    before, ids = node.info(sent), [node.block_id(number) for number in range(node.head + 1)]
    await node.reorg(3, [sent])
    after = node.info(sent)
    assert before is not None
    assert after is not None
    assert after["blockNumber"] == before["blockNumber"] + 1
    assert node.head == len(ids)
    assert [node.block_id(number) for number in range(len(ids) - 3)] == ids[:-3]
    assert not {node.block_id(number) for number in range(len(ids) - 3, node.head + 1)} & set(ids)
    block = node.chain.blocks.at(after["blockNumber"])
    assert block is not None
    assert [each.id.hex() for each in block.transactions].index(sent) == 1
    assert node.balance(to) == 5 * TRX


async def test_a_dropped_transaction_leaves_nothing_behind(node: TronNode) -> None:
    to, sender = node.new_account("customer"), node.accounts[0]
    await node.mine(5)
    had = node.balance(sender)
    sent = await node.send_trx(to, 5 * TRX)
    await node.mine(2)
    await node.reorg(2)
    assert node.info(sent) is None
    assert node.pending() == []
    assert not node.activated(to)
    assert node.balance(sender) == had
    assert node.chain.state.burned == 0


async def test_a_dropped_transaction_can_wait_for_a_block_of_the_other_branch(node: TronNode) -> None:
    to = node.new_account("customer")
    await node.mine(5)
    sent = await node.send_trx(to, 5 * TRX)
    await node.mine()
    await node.reorg(1, to_pool=True)
    assert node.pending() == [sent]
    await node.mine()
    info = node.info(sent)
    assert info is not None
    assert info["blockNumber"] == node.head


async def test_what_waited_still_waits_after_a_branch_was_replaced(node: TronNode) -> None:
    await node.mine(5)
    waiting = await node.send_trx(node.accounts[1], TRX)
    await node.reorg(2)
    assert node.pending() == [waiting]
    await node.mine()
    assert node.info(waiting) is not None


async def test_blocks_that_are_not_there_cannot_be_replaced(node: TronNode) -> None:
    await node.mine(2)
    head = node.block_id(node.head)
    with pytest.raises(ReorgError, match="2 blocks to replace, not 9"):
        await node.reorg(9)
    with pytest.raises(ReorgError, match="is not in the newest 1"):
        await node.reorg(1, ["aa" * 32])
    assert node.block_id(node.head) == head


async def test_two_nodes_of_one_chain_part_where_their_blocks_differ() -> None:
    async with (
        TronNode(machine=NoMachine(), clock_ms=lambda: 1_700_000_000_000) as one,
        TronNode(machine=NoMachine(), clock_ms=lambda: 1_700_000_000_000) as other,
    ):
        await one.mine(5)
        await other.mine(5)
        assert one.block_id(6) == other.block_id(6)
        await other.send_trx(other.accounts[1], TRX)
        await one.mine()
        await other.mine()
        assert one.block_id(7) != other.block_id(7)


async def test_a_node_by_the_clock_makes_blocks_by_itself() -> None:
    async with TronNode(machine=NoMachine()) as node, asyncio.timeout(10):
        first = node.head
        node.run(0.01)
        while node.head < first + 3:  # noqa: ASYNC110 - the node tells nobody
            await asyncio.sleep(0.01)
