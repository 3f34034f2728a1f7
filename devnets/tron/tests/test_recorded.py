"""The local node beside answers of real ones: the same ids, signatures, roots, sizes and fees, and the same shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cambist_tron_node import NoMachine, Parameters, TronNode, blocks, keys, proto
from cambist_tron_node.bandwidth import RESULT_BYTES
from cambist_tron_node.reads import info_json
from cambist_tron_node.state import BANDWIDTH
from cambist_tron_node.transactions import Transaction
from devnets.tron.tests.recordings import RECORDED, recorded

from .conftest import Ask

TRX = 1_000_000

WHOLE_BLOCKS = ["tatum_getblock_1000000", "tatum_getblockbylatestnum_33801077", "tatum_getblockbylimitnext_1"]


def within(answer: Any, key: str) -> Iterator[dict[str, Any]]:
    """Yield every object that has this key, wherever it stands."""
    if isinstance(answer, dict):
        if key in answer:
            yield answer
        answer = list(answer.values())
    if isinstance(answer, list):
        for each in answer:
            yield from within(each, key)


def everything(key: str) -> list[dict[str, Any]]:
    return [each for path in sorted(RECORDED.glob("*.json")) for each in within(recorded(path.stem), key)]


def whole(shown: dict[str, Any]) -> bool:
    """Tell whether a recorded transaction has all its parts: some sources put words in the place of long ones."""
    hexes = [shown.get("raw_data_hex", ""), *shown.get("signature", [])]
    return shown["raw_data"]["contract"][0]["type"] in proto.ENUMS["CONTRACT_TYPE"] and all(map(is_hex, hexes))


def is_hex(text: str) -> bool:
    return bool(text) and len(text) % 2 == 0 and set(text) <= set("0123456789abcdef")


def held(shown: dict[str, Any]) -> dict[str, Any]:
    """Return what a recorded transaction's contract says."""
    value: dict[str, Any] = shown["raw_data"]["contract"][0]["parameter"]["value"]
    return value


def from_bytes(shown: dict[str, Any]) -> Transaction:
    message = proto.new("Transaction", raw_data=proto.parse("Raw", bytes.fromhex(shown["raw_data_hex"])))
    message.signature.extend(bytes.fromhex(each) for each in shown.get("signature", []))
    return Transaction(message)


def without_zeros(answer: Any) -> Any:
    """Return an answer as nodes write it; indexers write zeros as well."""
    if isinstance(answer, dict):
        return {key: without_zeros(value) for key, value in answer.items() if value != 0}
    return [without_zeros(each) for each in answer] if isinstance(answer, list) else answer


TRANSACTIONS = [each for each in everything("raw_data_hex") if whole(each)]
SIGNED = [each for each in TRANSACTIONS if each.get("signature")]
# Indexers spell assets as texts, and one page of a documentation has lost a digit.
BY_NODES = [each for each in TRANSACTIONS if "asset_name" not in held(each) and is_hex(held(each).get("data", "00"))]


def test_there_are_transactions_to_compare_with() -> None:
    assert len(BY_NODES) >= 15
    assert len(SIGNED) >= 12


@pytest.mark.parametrize("shown", BY_NODES, ids=lambda each: each["txID"][:8])
def test_json_becomes_the_bytes_and_the_id_that_the_network_knows(shown: dict[str, Any]) -> None:
    transaction = Transaction.from_json(shown, visible=shown.get("visible", False))
    assert transaction.raw.hex() == shown["raw_data_hex"]
    assert transaction.id.hex() == shown["txID"]


@pytest.mark.parametrize("shown", BY_NODES, ids=lambda each: each["txID"][:8])
def test_bytes_become_the_json_that_nodes_show(shown: dict[str, Any]) -> None:
    assert from_bytes(shown).to_json()["raw_data"] == without_zeros(shown["raw_data"])


@pytest.mark.parametrize("shown", SIGNED, ids=lambda each: each["txID"][:8])
def test_signatures_are_those_of_the_owners(shown: dict[str, Any]) -> None:
    transaction = from_bytes(shown)
    assert transaction.id.hex() == shown["txID"]
    assert transaction.signers == [transaction.owner]


CHARGED = [each for each in SIGNED if each.get("net_usage") or each.get("net_fee")]
BANDWIDTH_PRICES = (10, 40, 140, 1_000)
"""What a byte has cost over the years, in sun."""


@pytest.mark.parametrize("shown", CHARGED, ids=lambda each: each["txID"][:8])
def test_bytes_are_counted_as_the_network_counts_them(shown: dict[str, Any]) -> None:
    size = from_bytes(shown).size + RESULT_BYTES
    fees = [size * price for price in BANDWIDTH_PRICES]
    assert size == shown.get("net_usage") or shown.get("net_fee") in fees


@pytest.mark.parametrize("name", WHOLE_BLOCKS)
def test_blocks_have_the_ids_and_roots_that_the_network_gave_them(name: str) -> None:
    for shown in within(recorded(name), "block_header"):
        raw = shown["block_header"]["raw_data"]
        assert blocks.block_id(proto.from_json("HeaderRaw", raw)).hex() == shown["blockID"]
        done = [
            Transaction.from_json(each).concluded(each["ret"][0]["contractRet"])
            for each in shown.get("transactions", [])
        ]
        assert blocks.merkle_root([each.merkle_leaf for each in done]).hex() == raw["txTrieRoot"]


@pytest.mark.parametrize("name", ["drpc_getnowblock_84939539", "getblock_getblock_30864544"])
def test_a_header_is_signed_by_its_representative(name: str) -> None:
    header = recorded(name)["block_header"]
    digest = blocks.header_digest(proto.from_json("HeaderRaw", header["raw_data"]))
    signer = keys.signer(bytes.fromhex(header["witness_signature"]), digest)
    assert signer.hex() == header["raw_data"]["witness_address"]


INFOS = everything("receipt")


def test_infos_survive_the_way_through_our_messages() -> None:
    assert len(INFOS) >= 20
    for info in INFOS:
        known = {name: value for name, value in info.items() if name not in {"withdraw_amount", "unfreeze_amount"}}
        assert info_json(proto.from_json("TransactionInfo", known), visible=False) == known


# --- Shapes ---


def shape(answer: Any) -> Any:
    """Return an answer with types in the place of its values, and one element in the place of a list's."""
    if isinstance(answer, dict):
        return {key: shape(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [shape(each) for each in answer[:1]]
    return type(answer).__name__


async def test_a_block_with_a_transfer_looks_like_a_real_one(node: TronNode, ask: Ask) -> None:
    await node.send_trx(node.accounts[1], TRX)
    await node.mine()
    real = shape(recorded("getblock_getblock_30864544"))
    assert shape(await ask("wallet/getblock", id_or_num=str(node.head), detail=True)) == real
    assert shape(await ask("wallet/getnowblock")) == real


async def test_an_empty_block_looks_like_a_real_one(node: TronNode, ask: Ask) -> None:
    await node.mine(5)
    real = recorded("tatum_getblockbylimitnext_1")
    empty = next(within(real, "block_header"))
    ours = (await ask("wallet/getblockbylimitnext", startNum=2, endNum=4))["block"][0]
    assert set(shape(ours)) == set(shape(empty))
    header, real_header = ours["block_header"], empty["block_header"]
    assert set(header) == set(real_header)
    assert set(header["raw_data"]) == set(real_header["raw_data"]) | {"version"}  # older blocks have no version


NATIVE = recorded("ledger_native_infos")
BURNED, FREE, ACTIVATED = NATIVE[4], NATIVE[0], NATIVE[2]


async def test_transfers_are_accounted_for_like_real_ones(node: TronNode) -> None:
    to = node.new_account("customer")
    sent = [await node.send_trx(to, TRX)]
    sent += [await node.send_trx(node.accounts[1], TRX) for _ in range(3)]
    await node.mine()
    infos = [node.info(each) for each in sent]
    assert [shape(each) for each in infos] == [shape(each) for each in (ACTIVATED, FREE, FREE, BURNED)]
    assert infos[0] is not None
    assert (infos[0]["fee"], infos[0]["receipt"]) == (ACTIVATED["fee"], ACTIVATED["receipt"])


async def test_activation_with_staked_bandwidth_costs_what_it_did_on_main_network(node: TronNode) -> None:
    await node.stake(node.accounts[0], 50_000 * TRX, resource=BANDWIDTH)
    sent = await node.send_trx(node.new_account("customer"), 1_000_000_000)
    await node.mine()
    real = next(each for each in recorded("drpc_gettransactioninfobyblocknum_84940364") if each.get("fee") == TRX)
    ours = node.info(sent)
    assert ours is not None
    assert shape(ours) == shape(real)
    assert ours["fee"] == real["fee"]
    assert ours["receipt"]["net_usage"] == pytest.approx(
        real["receipt"]["net_usage"], abs=4
    )  # amounts differ in length


async def test_resources_are_told_like_real_ones(ask: Ask, node: TronNode) -> None:
    plain, staked = (
        {key: value for key, value in each.items() if not key.startswith("asset")}
        for each in recorded("ledger_getaccountresource").values()
    )
    await node.send_trx(node.accounts[1], TRX)
    await node.stake(node.accounts[2], 403 * TRX)
    ours = await ask("wallet/getaccountresource", address=node.accounts[0], visible=True)
    assert shape(ours) == shape(plain)
    staker = await ask("wallet/getaccountresource", address=node.accounts[2], visible=True)
    assert shape(staker) == shape({**staked, "freeNetUsed": 0})
    assert staker["tronPowerLimit"] == staked["tronPowerLimit"]
    assert staker["EnergyLimit"] == staked["EnergyLimit"]  # of the same stake among as much of others


async def test_a_node_tells_of_itself_like_a_real_one(node: TronNode, ask: Ask) -> None:
    await node.mine(30)
    real, ours = recorded("nile_docs_getnodeinfo"), await ask("wallet/getnodeinfo")
    assert {key: shape(ours[key]) for key in real if key != "machineInfo"} == {
        key: shape(value) for key, value in real.items() if key != "machineInfo"
    }
    heights = [int(real[name].split(",")[0].removeprefix("Num:")) for name in ("block", "solidityBlock")]
    assert heights[0] - heights[1] == node.head - node.solid_height


async def test_a_built_transaction_looks_like_a_real_one(node: TronNode, ask: Ask) -> None:
    asked = {"owner_address": keys.address_bytes(node.accounts[0]).hex(), "amount": TRX}
    to = keys.address_bytes(node.accounts[1]).hex()
    ours = await ask("wallet/createtransaction", **asked, to_address=to)
    assert shape(ours) == shape(recorded("nile_docs_createtransaction"))


async def test_old_prices_give_old_fees() -> None:
    async with TronNode(machine=NoMachine(), parameters=Parameters(free_bandwidth=0)) as node:
        sent = await node.send_trx(node.accounts[1], TRX)
        await node.mine()
        info = node.info(sent)
        assert info is not None
        size = info["receipt"]["net_fee"] // 1000
        assert info["fee"] == size * 1000
        assert 264 <= size <= 269
