"""Blocks with contracts in them, replaced: what a contract remembers is what the blocks that are left have done."""

from __future__ import annotations

from random import Random

import pytest

from cambist.testing.contracts import load
from cambist_tron_node import NotCarriedOutError, TronNode, TronToken, keys
from cambist_tron_node.chain import ReorgError

from .conftest import Ask

TRX = 1_000_000
DEPTHS = (1, 2, 5, 18)


@pytest.fixture
async def node(contract_node: TronNode) -> TronNode:
    """Return a node on which blocks can be replaced deeply."""
    await contract_node.mine(20)
    return contract_node


@pytest.mark.parametrize("depth", DEPTHS)
async def test_replaced_transfers_are_gone_from_the_contract_too(node: TronNode, usdt: TronToken, depth: int) -> None:
    await usdt.transfer(node.accounts[1], 1_000)
    await node.mine()
    spent = node.balance(node.accounts[0])
    sent = []
    for _ in range(depth):
        sent.append(await usdt.transfer(node.accounts[1], 7))
        await node.mine()
    assert await usdt.balance_of(node.accounts[1]) == 1_000 + 7 * depth
    await node.reorg(depth)
    assert await usdt.balance_of(node.accounts[1]) == 1_000
    assert node.balance(node.accounts[0]) == spent
    assert [node.info(tx_id) for tx_id in sent] == [None] * depth


@pytest.mark.parametrize("depth", DEPTHS)
async def test_kept_transfers_happen_again_elsewhere(node: TronNode, usdt: TronToken, depth: int) -> None:
    """In another block, behind another transaction; and a recipient who is new again costs as much as before."""
    sent = []
    for number in range(depth):
        sent.append(await usdt.transfer(node.accounts[1], 10**number % 997 + 1))
        await node.mine()
    before = {tx_id: node.info(tx_id) for tx_id in sent}
    kept = sent[::2]
    await node.reorg(depth, keep=kept)
    amounts = {}
    for tx_id in sent:
        info, old = node.info(tx_id), before[tx_id]
        assert old is not None
        assert (info is not None) is (tx_id in kept)
        if info is not None:
            amounts[tx_id] = int(info["log"][0]["data"], 16)
            assert info["log"] == old["log"]
            assert info["blockNumber"] == old["blockNumber"] + 1
    assert await usdt.balance_of(node.accounts[1]) == sum(amounts.values())
    first = node.info(kept[0])
    assert first is not None
    assert first["receipt"]["energy_usage_total"] == 130_285


async def test_a_kept_transfer_can_fail_on_the_other_branch(node: TronNode, usdt: TronToken) -> None:
    """What it spent came in a transaction that was not kept."""
    await usdt.transfer(node.accounts[1], 50)
    await node.mine()
    second = await usdt.transfer(node.accounts[2], 50, sender=node.accounts[1])
    await node.mine()
    assert await usdt.balance_of(node.accounts[2]) == 50
    await node.reorg(2, keep=[second])
    info = node.info(second)
    assert info is not None
    assert info["receipt"]["result"] == "REVERT"
    assert await usdt.balance_of(node.accounts[2]) == 0


async def test_a_contract_whose_creation_was_replaced_is_not_there(node: TronNode, ask: Ask) -> None:
    token = await node.deploy_token("USDX", 6)
    await node.reorg(1)
    assert await ask("wallet/getcontract", value=token.address, visible=True) == {}
    values = {"owner_address": node.accounts[0], "contract_address": token.address, "visible": True, "data": "70a08231"}
    answer = await ask("wallet/triggerconstantcontract", **values)
    assert answer["result"]["code"] == "CONTRACT_VALIDATE_ERROR"
    again = await node.create(load("TestToken").creation_code("USDX", 6))
    assert again != token.address


async def test_trx_that_contracts_moved_is_moved_back(node: TronNode) -> None:
    splitter, fresh = await node.deploy("Splitter"), node.new_account("fresh")
    before = {address: node.balance(address) for address in (*node.accounts, splitter.address)}
    await splitter.send("splitNative", [fresh, node.accounts[1]], [5 * TRX, 6 * TRX], call_value=12 * TRX)
    await node.mine()
    assert node.activated(fresh)
    await node.reorg(1)
    assert not node.activated(fresh)
    assert {address: node.balance(address) for address in before} == before


async def test_what_waits_again_is_carried_out_again(node: TronNode, usdt: TronToken) -> None:
    sent = await usdt.transfer(node.accounts[1], 7)
    await node.mine()
    await node.reorg(1, to_pool=True)
    assert sent in node.pending()
    assert await usdt.balance_of(node.accounts[1]) == 7  # what waits counts in what the full node tells
    await node.mine()
    assert node.info(sent) is not None
    assert await usdt.balance_of(node.accounts[1]) == 7


async def test_random_forks_leave_what_the_blocks_say(node: TronNode, usdt: TronToken) -> None:
    """After each fork the token's balances are the sums of the logs of all blocks there are."""
    random, sent = Random(11), []
    people = node.accounts[:5]
    for person in people:
        await usdt.mint(person, 1_000)
    await node.mine()
    for _ in range(12):
        for _ in range(random.randrange(4)):
            sender, to = random.sample(people, 2)
            sent.append(await usdt.transfer(to, random.randrange(400), sender=sender))
        await node.mine(random.randrange(1, 3))
        if random.random() < 0.5:
            depth = random.randrange(1, 6)
            floor = node.head - depth
            recent = [tx_id for tx_id in sent if (info := node.info(tx_id)) and info["blockNumber"] > floor]
            await node.reorg(depth, keep=[tx_id for tx_id in recent if random.random() < 0.6])
        assert {person: await usdt.balance_of(person) for person in people} == told(node, usdt, people)


def told(node: TronNode, token: TronToken, people: list[str]) -> dict[str, int]:
    """Return balances as the logs of all blocks and of what waits add up to."""
    sums = dict.fromkeys((keys.address_bytes(person)[1:].hex() for person in people), 0)
    for number in range(1, node.head + 1):
        block = node.chain.blocks.at(number)
        assert block is not None
        for info in block.infos:
            for log in info.log:
                if log.address == keys.address_bytes(token.address)[1:]:
                    sender, recipient = (topic[-20:].hex() for topic in log.topics[1:])
                    units = int.from_bytes(log.data, "big")
                    sums[sender] = sums.get(sender, 0) - units
                    sums[recipient] = sums.get(recipient, 0) + units
    return {person: sums[keys.address_bytes(person)[1:].hex()] for person in people}


async def test_what_is_not_there_to_be_replaced_is_refused(node: TronNode, usdt: TronToken) -> None:
    """Nothing changes then."""
    await usdt.transfer(node.accounts[1], 7)
    await node.mine()
    head = node.block_id(node.head)
    with pytest.raises(ReorgError):
        await node.reorg(node.head)
    with pytest.raises(ReorgError):
        await node.reorg(1, keep=["00" * 32])
    assert node.block_id(node.head) == head
    assert await usdt.balance_of(node.accounts[1]) == 7


async def test_a_creation_that_fails_says_why(node: TronNode) -> None:
    with pytest.raises(NotCarriedOutError, match="REVERT"):
        await node.create(bytes.fromhex("60006000fd"))
