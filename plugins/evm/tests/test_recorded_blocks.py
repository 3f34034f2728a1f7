"""Real blocks of real chains through the decoder, beside a naive walk over their JSON and transfers listed by hand.

Where a recording holds a block whole but only one of its receipts, successes without logs stand in for the
others. Where it holds all receipts but only the transactions' hashes, transactions without value stand in.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.plugin import Transfer
from cambist.testing import EveryAddress
from cambist_chainkit.eip55 import spell
from cambist_evm.decode import check_blooms, check_header, check_receipts, transfers_of
from cambist_evm.networks import NETWORKS
from cambist_evm.traces import Movement, from_call_frames, from_flat_traces
from cambist_evm.wire import FlatTrace, RpcBlock, RpcReceipt, RpcTransaction, TracedTransaction

RECORDED = Path(__file__).parent / "recorded"
TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

Json = dict[str, Any]


def load(name: str) -> Json:
    recorded: Json = json.loads((RECORDED / f"{name}.json").read_bytes())
    return recorded


def whole_block(name: str) -> tuple[Json, list[Json]]:
    """Return a block and its receipts as a node would answer them."""
    recorded = load(name)
    block = recorded.get("block") or {**recorded["header"], "transactions": recorded["transactions"]}
    receipts = recorded.get("receipts")
    if receipts is None:
        real = recorded["receipt"]
        receipts = [
            real if tx["hash"] == real["transactionHash"] else stand_in_receipt(block, tx)
            for tx in block["transactions"]
        ]
        shift_logs(real)
    if isinstance(block["transactions"][0], str):
        block["transactions"] = [
            {"hash": receipt["transactionHash"], "from": receipt["from"], "to": receipt["to"], "value": "0x0"}
            for receipt in receipts
        ]
    for receipt, tx in zip(receipts, block["transactions"], strict=True):
        tx.setdefault("from", receipt.get("from") or "0x" + "00" * 20)
    # One recording's header was hashed without the fields of later forks; its receipts carry the true hash.
    block["hash"] = receipts[0]["blockHash"]
    return block, receipts


def stand_in_receipt(block: Json, tx: Json) -> Json:
    return {
        "transactionHash": tx["hash"], "blockHash": block["hash"], "status": "0x1", "logs": [], "gasUsed": "0x5208",
        "from": tx["from"], "to": tx["to"],
    }  # fmt: skip


def shift_logs(receipt: Json) -> None:
    """Let a lone receipt's log indexes start at zero, as if the stand-ins before it were real."""
    for ordinal, log in enumerate(receipt["logs"]):
        log["logIndex"] = hex(ordinal)


def decoded(block: Json, receipts: list[Json]) -> tuple[RpcBlock, list[RpcReceipt]]:
    """Decode by way of text, as in production."""
    return (
        msgspec.json.decode(json.dumps(block), type=RpcBlock),
        msgspec.json.decode(json.dumps(receipts), type=list[RpcReceipt]),
    )


def naive(block: Json, receipts: list[Json], contracts: set[str]) -> list[tuple[str, str, str, int]]:
    """Walk the JSON without any of the plugin's code."""
    found = []
    for tx, receipt in zip(block["transactions"], receipts, strict=True):
        if receipt["status"] != "0x1":
            continue
        if tx.get("to") and int(tx["value"], 16) > 0 and tx["to"] != tx["from"]:
            found.append((tx["hash"], "native", tx["to"], int(tx["value"], 16)))
        for ordinal, log in enumerate(receipt["logs"]):
            topics = log["topics"]
            if log["address"] in contracts and len(topics) == 3 and topics[0] == TOPIC and topics[1] != topics[2]:
                amount = int(log["data"], 16)
                if amount:
                    found.append((tx["hash"], f"log:{ordinal}", "0x" + topics[2][-40:], amount))
    return found


def told(transfers: list[Transfer]) -> list[tuple[str, str, str, int]]:
    return [(one.tx_id, one.position, one.recipient.lower(), one.amount) for one in transfers]


BLOCKS = {
    "helios_block_with_receipts": (202, 66),
    "zeta_full_block": (81, 0),
    "ethereum_0bc7401a1b": (157, 1),
    "bsc_07b14d73cf": (102, 0),
    "base_1d6b85ce11": (264, 2),
    "base_20d40794ca": (124, None),
    "arbitrum_228e4ec7b2": (6, None),
    "polygon_74b36dd98f": (53, 0),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_every_transfer_of_a_real_block_is_found(name: str) -> None:
    """All contracts that ever emit a Transfer are registered and everyone is watched."""
    raw_block, raw_receipts = whole_block(name)
    block, receipts = decoded(raw_block, raw_receipts)
    check_header(block, int(raw_block["number"], 16))
    check_receipts(block, receipts)
    addresses = {log["address"] for receipt in raw_receipts for log in receipt["logs"]}
    contracts = {address: spell(address[2:]) for address in addresses}
    check_blooms(receipts, contracts)
    transfers = transfers_of(block, receipts, contracts, EveryAddress())
    assert told(transfers) == naive(raw_block, raw_receipts, addresses)
    assert len(block.transactions) == BLOCKS[name][0]
    assert transfers


@pytest.mark.parametrize("name", [name for name, (_, count) in BLOCKS.items() if count is not None])
def test_only_registered_tokens_count(name: str) -> None:
    """The built-in USDT and USDC of the block's own chain, counted by hand once."""
    chain = load(name)["_source"]["chain"]
    contracts = {token.contract.lower(): token.contract for token in NETWORKS[chain].tokens}
    block, receipts = decoded(*whole_block(name))
    found = [one for one in transfers_of(block, receipts, contracts, EveryAddress()) if one.contract is not None]
    assert len(found) == BLOCKS[name][1]


@pytest.mark.parametrize(
    "name, recipient, position, amount",
    [
        ("helios_block_with_receipts", "627846f6131a4631ddf6bb53bd682ccf51f623b3", "log:0", 289_053_964),
        ("helios_block_with_receipts", "000000000004444c5dc75cb358380d2e3de08a90", "log:18", 2_549_977_984),
        ("ethereum_0bc7401a1b", "3328f7f4a1d1c57c35df56bbf0c9dcafca309c49", "native", 2 * 10**17),
        ("ethereum_0bc7401a1b", "0cda93172497f319a85c8f83132b61bd92d51cce", "log:0", 0x1A94D7D0),
        ("base_1d6b85ce11", "4e65fe4dba92790696d040ac24aa414708f5c0ab", "log:3", 0x2FAF080),
        ("arbitrum_228e4ec7b2", "5f851f67d24419982ecd7b7765defd64fbb50a97", "log:0", 20_000_000),
    ],
)
def test_transfers_read_off_by_hand_are_found(name: str, recipient: str, position: str, amount: int) -> None:
    """One watched address, the built-in registry, and the transfer that a block explorer shows."""
    network = NETWORKS[load(name)["_source"]["chain"]]
    contracts = {token.contract.lower(): token.contract for token in network.tokens}
    block, receipts = decoded(*whole_block(name))
    transfers = transfers_of(block, receipts, contracts, {bytes.fromhex(recipient)})
    assert (position, spell(recipient), amount) in [(one.position, one.recipient, one.amount) for one in transfers]


def test_bscs_stablecoins_have_eighteen_decimals() -> None:
    """Ten dollars in a recorded swap are 10^19 units there."""
    receipt = load("bsc_a08ff8cf92")["receipt"]
    usdt = NETWORKS["bsc"].tokens[0]
    log = receipt["logs"][0]
    assert log["address"] == usdt.contract.lower()
    assert int(log["data"], 16) == 10 * 10**usdt.decimals


def test_a_recorded_failure_pays_nobody() -> None:
    """Status 0x0, whatever value it carried."""
    recorded = load("ethereum_fbfd35db09")
    tx, receipt = recorded["transaction"], recorded["receipt"]
    block = {**recorded["block"], "transactions": [{**tx, "value": "0xde0b6b3a7640000"}]}
    assert transfers_of(*decoded(block, [receipt]), {}, EveryAddress()) == []


def movements(name: str) -> list[list[Movement]]:
    """Return what a recorded trace tells, by its own shape."""
    files = load(name)["files"]
    answer = next(content["result"] for key, content in files.items() if key.startswith("web3_response"))
    if "callTracer".lower() in next(key for key in files if key.startswith("web3")).lower():
        traced = msgspec.convert(answer, list[TracedTransaction])
        return from_call_frames(trace_block(len(traced)), traced)
    flat = msgspec.convert(answer, list[FlatTrace])
    hashes = dict.fromkeys(trace.transaction_hash for trace in flat if trace.transaction_hash)
    block = trace_block(len(hashes))
    block.hash = flat[0].block_hash or ""
    block.transactions = [RpcTransaction(tx_hash, "", "0x0") for tx_hash in hashes if tx_hash]
    return from_flat_traces(block, flat)


def trace_block(count: int) -> RpcBlock:
    transactions = [RpcTransaction(hex(index), "0x" + "11" * 20, "0x0") for index in range(count)]
    return RpcBlock("0x1", "0x" + "00" * 32, "0x" + "00" * 32, "0x1", transactions)


def test_a_callcode_moves_nothing() -> None:
    """Block 1 000 000: 100 ETH are repeated in a CALLCODE and stay where they are. Both tracers agree."""
    assert movements("etl_test_extract_geth_traces_job__block_with_subtraces") == [[], []]
    assert movements("etl_test_export_traces_job__block_with_subtraces") == [[], []]


def test_a_failed_trace_moves_nothing() -> None:
    """Block 1 000 895: one of two transactions ran out of gas."""
    assert movements("etl_test_extract_geth_traces_job__block_with_error") == [[], []]


def test_a_selfdestruct_pays_its_beneficiary() -> None:
    """Block 1 011 973, where the old callTracer left the beneficiary out, so nothing can be taken from it."""
    assert movements("etl_test_export_traces_job__block_with_suicide") == [
        [
            Movement(
                "0x474faa5018639791952fae334e2911700ac7fe9b",
                "0x83973747eec131bf9a08ac64fb1a518e891bdf4b",
                0xB1A2BC2EC50000,
            )
        ]
    ]
    assert movements("etl_test_extract_geth_traces_job__block_with_suicide") == [[]]
