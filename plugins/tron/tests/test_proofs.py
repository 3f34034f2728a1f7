"""Whether a block came with all of its transactions: real ones, cut ones, and the network's own example."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from cambist.plugin import InconsistentChainError
from cambist_tron.chain import TronChain
from cambist_tron.proofs import WholeBlock, WholeTx, leaf_of, read_contents, root_of
from cambist_tron.protobuf import encode
from devnets.tron.tests.recordings import recorded

from .local import TRX, Net


def whole(block: dict[str, Any]) -> WholeBlock:
    return msgspec.json.decode(json.dumps(block), type=WholeBlock)


def root(block: WholeBlock) -> str:
    return root_of([leaf_of(tx) for tx in block.transactions]).hex()


def test_recorded_blocks_prove_to_be_whole() -> None:
    """Of the main network, with several transactions, with one, and with none."""
    blocks = [recorded("tatum_getblock_1000000"), *recorded("tatum_getblockbylatestnum_33801077")["block"]]
    counts = []
    for block in map(whole, blocks):
        assert root(block) == block.block_header.raw_data.tx_trie_root
        counts.append(len(block.transactions))
    assert max(counts) > 5
    assert {0, 1} <= set(counts)


@pytest.mark.parametrize("name", ["getblock_getblock_30864544", "drpc_getnowblock_84939539"])
def test_recorded_blocks_that_were_cut_do_not(name: str) -> None:
    """As documentation shows them, with some of their transactions."""
    block = whole(recorded(name))
    assert block.transactions
    assert root(block) != block.block_header.raw_data.tx_trie_root


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda txs: txs.pop(), id="the last left out"),
        pytest.param(lambda txs: txs.pop(0), id="the first left out"),
        pytest.param(lambda txs: txs.append(txs[-1]), id="one repeated"),
        pytest.param(lambda txs: txs.insert(0, txs.pop()), id="another order"),
        pytest.param(lambda txs: txs[2]["signature"].append("00" * 65), id="another signature"),
        pytest.param(lambda txs: txs[2]["signature"].clear(), id="no signature"),
        pytest.param(lambda txs: txs[2]["ret"].clear(), id="no result"),
        pytest.param(lambda txs: txs[2]["ret"][0].update(contractRet="REVERT"), id="another result"),
        pytest.param(lambda txs: txs[2]["ret"].append({}), id="another result added"),
    ],
)
def test_whatever_is_changed_shows(spoil: Callable[[list[dict[str, Any]]], None]) -> None:
    """Left out, repeated, in another order, with another signature or result."""
    block = json.loads(json.dumps(recorded("tatum_getblock_1000000")))
    spoil(block["transactions"])
    changed = whole(block)
    assert root(changed) != changed.block_header.raw_data.tx_trie_root


def test_a_transaction_has_the_id_of_its_bytes() -> None:
    """Else it is no answer at all."""
    block = whole(recorded("tatum_getblock_1000000"))
    one, two = block.transactions[:2]
    for raw in (two.raw_data_hex, "", "zz", one.raw_data_hex[:-2]):
        with pytest.raises(InconsistentChainError):
            leaf_of(WholeTx(id=one.id, raw_data_hex=raw))


def small(raw: bytes) -> WholeTx:
    return WholeTx(id=hashlib.sha256(raw).hexdigest(), raw_data_hex=raw.hex())


def test_two_hashes_are_no_transaction() -> None:
    """Who tries 65,536 of its own finds one whose hash begins as a transaction does: with the next it looks like one.

    A node that shows this in the place of both hides the second, which is ours, and the root still proves right.
    """
    tried, ours = small(b"paid" + (34_734).to_bytes(4, "big")), small(b"ours")
    pair = leaf_of(tried) + leaf_of(ours)
    assert pair[:2] == b"\x0a\x3e"
    shown = small(pair[2:])
    assert hashlib.sha256(pair).digest() == root_of([leaf_of(tried), leaf_of(ours)])
    assert encode({1: bytes.fromhex(shown.raw_data_hex)}) == pair
    with pytest.raises(InconsistentChainError, match="two hashes"):
        leaf_of(shown)


def test_the_networks_own_example_has_its_root() -> None:
    """Two transfers without signatures or results, in the tests of the network's node."""

    def leaf(amount: int, to: str) -> bytes:
        sent = encode({1: b"0x0000000000000000000", 2: bytes.fromhex("41" + to), 3: amount})
        wrapped = encode({1: b"type.googleapis.com/protocol.TransferContract", 2: sent})
        raw = encode({11: encode({1: 1, 2: wrapped})})
        return leaf_of(WholeTx(id=hashlib.sha256(raw).hexdigest(), raw_data_hex=raw.hex()))

    leaves = [leaf(1, "a389132d6639fbda4fbc8b659264e6b7c90db086"), leaf(2, "ed738b3a0fe390eaa71b768b6d02cdbd18fb207b")]
    assert root_of(leaves).hex() == "5bc862243292e6aa1d5e21a60bb6a673e4c2544709f6363d4a2f85ec29bcfe00"


def test_a_tree_passes_on_what_has_no_partner() -> None:
    """At every level."""
    leaves = [bytes([number]) * 32 for number in range(1, 6)]

    def paired(left: bytes, right: bytes) -> bytes:
        return hashlib.sha256(left + right).digest()

    one, two, three, four, five = leaves
    assert root_of([]) == bytes(32)
    assert root_of(leaves[:1]) == one
    assert root_of(leaves[:2]) == paired(one, two)
    assert root_of(leaves[:3]) == paired(paired(one, two), three)
    assert root_of(leaves) == paired(paired(paired(one, two), paired(three, four)), five)


async def test_blocks_of_all_kinds_prove_to_be_whole(net: Net) -> None:
    """With coin, tokens, failures and stakes; what was sent stands in them."""
    first = net.node.head + 1
    await net.node.stake(net.sponsor, 100 * TRX)
    steps = await net.planned(
        net.intent(net.rich, net.nobody(), 5),
        net.intent(net.rich, net.customer, 5, "USDT"),
        net.intent(net.sponsor, net.rich, 5 * TRX, action="lend"),
    )
    await net.usdt.refuse(net.customer)
    await net.usdt.refuse(net.rich)
    txs, _ = await net.signed(*steps)
    await net.chain.broadcast(txs)
    await net.node.mine(2)
    assert await net.states(txs) == ["succeeded", "reverted", "succeeded"]
    assert isinstance(net.chain, TronChain)
    read = await read_contents(net.chain.pool.endpoints[0], first, net.node.head + 1 - first)
    assert all(one.proven for one in read)
    assert {tx.tx_id for tx in txs} <= set().union(*(one.tx_ids for one in read))
