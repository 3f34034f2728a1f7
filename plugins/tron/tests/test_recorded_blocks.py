"""Real blocks and results of real networks through the decoder, beside transfers listed by hand and a naive walk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from cambist.plugin import Transfer
from cambist.testing import EveryAddress
from cambist_chainkit.spans import check_links
from cambist_tron.config import TronConfig, resolve
from cambist_tron.decode import check_infos, check_transactions, transfers_of
from cambist_tron.headers import check_header
from cambist_tron.networks import SHASTA
from devnets.tron.tests.recordings import recorded

from .forging import Json, block, call, trx
from .recordings import address, decoded_block, decoded_infos, told

CONTRACTS = resolve(TronConfig()).contracts
ALICE, BOB = address("11" * 20), address("22" * 20)


def blocks_in(answer: Any) -> Iterator[Json]:
    if isinstance(answer, dict) and "blockID" in answer:
        yield answer
    elif isinstance(answer, dict | list):
        for part in answer.values() if isinstance(answer, dict) else answer:
            yield from blocks_in(part)


BLOCKS = [
    "coinbase_header_67674988",
    "drpc_getnowblock_84939539",
    "getblock_getblock_30864544",
    "tatum_getblock_1000000",
    "tatum_getblockbylatestnum_33801077",
    "tatum_getblockbylimitnext_1",
]


def around(infos: list[Json]) -> list[Transfer]:
    """Return the transfers of recorded results, which stand in a block of transactions that could have led to them."""
    number = infos[0]["blockNumber"]
    txs = []
    for info in infos:
        runs = "contract_address" in info
        ret = info["receipt"].get("result", "SUCCESS")
        tx = call(ALICE, ret=ret) if runs else trx(ALICE, BOB, 5, ret=ret)
        raw = bytes.fromhex(tx["raw_data_hex"]) + info["id"].encode()
        tx |= {"raw_data_hex": raw.hex(), "txID": hashlib.sha256(raw).hexdigest()}
        txs.append(tx)
    whole = decoded_block(block(number, "00" * 32, txs))
    check_header(whole, number)
    place = {"blockNumber": number, "blockTimeStamp": whole.block_header.raw_data.timestamp}
    standing = [{**info, "id": tx["txID"], **place} for info, tx in zip(infos, txs, strict=True)]
    return transfers_of(whole, check_infos(whole, decoded_infos(standing), number), CONTRACTS, EveryAddress())


@pytest.mark.parametrize("name", BLOCKS)
def test_the_id_of_every_real_block_is_proven(name: str) -> None:
    """Of four versions of the header, from five years, of two networks."""
    found = list(blocks_in(recorded(name)))
    assert found
    for one in found:
        whole = decoded_block(one)
        assert check_header(whole, one["block_header"]["raw_data"]["number"]).hash == one["blockID"]


def test_real_blocks_stand_on_each_other_and_on_their_genesis_block() -> None:
    """Empty ones among them, whose root says that they are."""
    for name in ("tatum_getblockbylatestnum_33801077", "tatum_getblockbylimitnext_1"):
        places = []
        for one in blocks_in(recorded(name)):
            whole = decoded_block(one)
            number = one["block_header"]["raw_data"]["number"]
            check_transactions(whole, number)
            places.append(check_header(whole, number))
        check_links(places)
        assert [place.time for place in places] == sorted(place.time for place in places)
    assert places[0].parent_hash == SHASTA.genesis_id


def test_a_whole_real_block_gives_the_transfers_that_it_holds() -> None:
    """Six calls of games, of which three bring TRX and get some; what contracts call themselves with moves nothing."""
    whole, number = decoded_block(recorded("tatum_getblock_1000000")), 1_000_000
    infos = decoded_infos(recorded("tatum_gettransactioninfobyblocknum_1000000"))
    check_transactions(whole, number)
    transfers = transfers_of(whole, check_infos(whole, infos, number), CONTRACTS, EveryAddress())
    game, player = address("8d9dd663cf90256fdf2faba2a1be71f8a0147f8c"), "f07e117a4b5f1fda66f8fcedf44065f1dafc5ad7"
    assert told(transfers) == [
        ("98d0f414", "native", game, 14_000_000),
        ("98d0f414", "trace:1", address("3a5bfb715d2086ec513b64e98531e2f58154c44c"), 700_000),
        ("4ef51a57", "native", game, 1_982_000_000),
        ("4ef51a57", "trace:2", address(player), 2_457_950_000),
        ("80e07e3f", "native", game, 11_000_000),
        ("80e07e3f", "trace:1", address("3a5bfb715d2086ec513b64e98531e2f58154c44c"), 550_000),
    ]
    assert {one.block_hash for one in transfers} == {whole.id}
    assert {one.sender for one in transfers[1::2]} == {game}
    assert transfers[2].sender == address(player)


def test_real_usdt_transfers_are_found_with_their_recipients_and_amounts() -> None:
    """Six results of a block of the main network: four of USDT, two of TRX."""
    transfers = around(recorded("drpc_gettransactioninfobyblocknum_84940364"))
    assert [(one.position, one.recipient, one.amount) for one in transfers if one.contract] == [
        ("log:0", address("118f7b4382bea375ee420f1b211a4619f3ba78ad"), 500_000_000),
        ("log:0", address("9dca7b9b1acfa87b75a78adb23e7c51dce8620eb"), 23_111_110_000),
        ("log:0", address("627e11e37f1265c071d8cb4d27c1cc58eed9b4b8"), 270_550_000),
        ("log:0", address("228624578db210e975d3f4aabdf70e420e5190c0"), 20_000_000),
    ]
    assert [one.position for one in transfers if one.contract is None] == ["native", "native"]


@pytest.mark.parametrize("index, found", [(0, [3_500_000]), (1, [5])])
def test_lone_results_of_the_main_network_are_read(index: int, found: list[int]) -> None:
    """Of November 2024: a transfer of USDT, and one of TRX."""
    assert [one.amount for one in around([recorded("success_transfer_b69c51db")[index]])] == found


@pytest.mark.parametrize("name", ["failed_revert_65055cac", "failed_transfer_out_of_energy_e63a324a"])
@pytest.mark.parametrize("logs", [False, True])
def test_a_real_failed_transfer_is_none(name: str, logs: bool) -> None:
    """Not even where a log stands with it that real failures do not have."""
    info = recorded(name)
    if logs:
        info["log"] = recorded("success_transfer_b69c51db")[0]["log"]
    assert around([info]) == []


def test_a_real_native_transfer_is_found_in_its_block() -> None:
    """50 TRX, in June 2021."""
    whole = decoded_block(recorded("getblock_getblock_30864544"))
    tx = recorded("getblock_getblock_30864544")["transactions"][0]
    value = tx["raw_data"]["contract"][0]["parameter"]["value"]
    place = {"blockNumber": 30864544, "blockTimeStamp": whole.block_header.raw_data.timestamp}
    infos = decoded_infos([{"id": tx["txID"], **place, "receipt": {"net_usage": 268}}])
    (found,) = transfers_of(whole, check_infos(whole, infos, 30864544), CONTRACTS, EveryAddress())
    assert (found.tx_id, found.position, found.amount) == (tx["txID"], "native", 50_000_000)
    assert (found.sender, found.recipient) == (address(value["owner_address"][2:]), address(value["to_address"][2:]))


def test_calldata_is_never_read() -> None:
    """Two real calls of USDT's transfer to padded recipients: without their results they are nothing."""
    whole = decoded_block(recorded("drpc_getnowblock_84939539"))
    infos = [{"id": tx.id, "blockNumber": 84939539, "receipt": {"result": "SUCCESS"}} for tx in whole.transactions]
    assert transfers_of(whole, decoded_infos(infos), CONTRACTS, EveryAddress()) == []


@pytest.mark.parametrize("name", ["metamask_trongrid_trc10_transfer", "metamask_trongrid_failed_out_of_energy"])
def test_real_transactions_that_bring_nothing_are_nothing(name: str) -> None:
    """A TRC-10 asset, and a call that ran out of energy."""
    tx = recorded(name)
    whole = decoded_block(block(7, "00" * 32, [tx]))
    ran = {"result": "OUT_OF_ENERGY"} if "failed" in name else {}
    place = {"blockNumber": 7, "blockTimeStamp": whole.block_header.raw_data.timestamp}
    infos = decoded_infos([{"id": tx["txID"], **place, "receipt": ran}])
    assert transfers_of(whole, check_infos(whole, infos, 7), CONTRACTS, EveryAddress()) == []


def test_real_transactions_of_one_account_are_told_as_a_naive_walk_tells_them() -> None:
    """A page of 25: calls, native transfers, and a TRC-10 asset."""
    txs = recorded("blockatlas_v1_account_txs2")["data"]
    whole = decoded_block(block(20829763, "00" * 32, txs))
    place = {"blockNumber": 20829763, "blockTimeStamp": whole.block_header.raw_data.timestamp}
    infos = [{"id": tx["txID"], **place, "receipt": {"result": "SUCCESS"}} for tx in txs]
    transfers = transfers_of(whole, check_infos(whole, decoded_infos(infos), 20829763), CONTRACTS, EveryAddress())
    contracts = [(tx["txID"], tx["raw_data"]["contract"][0]) for tx in txs]
    values = [(tx_id, one["parameter"]["value"]) for tx_id, one in contracts if one["type"] == "TransferContract"]
    assert told(transfers) == [
        (tx_id[:8], "native", address(value["to_address"][2:]), value["amount"]) for tx_id, value in values
    ]
    assert len(transfers) == 7
