"""The local node's HTTP side: TRON's paths, spellings and silences."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import aiohttp
import msgspec
import pytest

from cambist_tron_node import TronNode, keys
from cambist_tron_node.http import API_KEY_HEADER, ENDPOINTS

from .conftest import Ask

TRX = 1_000_000


def raw(address: str) -> str:
    return keys.address_bytes(address).hex()


async def test_blocks_are_told_by_number_by_id_and_in_rows(node: TronNode, ask: Ask) -> None:
    await node.mine(30)
    now = await ask("wallet/getnowblock")
    assert now["block_header"]["raw_data"]["number"] == node.head
    assert await ask("wallet/getblockbynum", num=node.head) == now
    assert await ask("wallet/getblockbyid", value=now["blockID"]) == now
    assert await ask("wallet/getblock", id_or_num=str(node.head)) == now
    assert await ask("wallet/getblock", id_or_num=now["blockID"]) == now
    assert await ask("wallet/getblock") == now
    row = (await ask("wallet/getblockbylimitnext", startNum=3, endNum=7))["block"]
    assert [each["block_header"]["raw_data"]["number"] for each in row] == [3, 4, 5, 6]
    latest = (await ask("wallet/getblockbylatestnum", num=3))["block"]
    assert latest[-1] == now
    assert len(latest) == 3


async def test_what_is_not_there_is_an_empty_object(node: TronNode, ask: Ask) -> None:
    for path, values in [
        ("wallet/getblockbynum", {"num": 10_000}),
        ("wallet/getblockbyid", {"value": "00" * 32}),
        ("wallet/gettransactionbyid", {"value": "00" * 32}),
        ("wallet/gettransactioninfobyid", {"value": "00" * 32}),
        ("wallet/gettransactioninfobyblocknum", {"num": 0}),
        ("wallet/gettransactionfrompending", {"value": "00" * 32}),
        ("wallet/getblockbylimitnext", {"startNum": 5, "endNum": 5}),
        ("wallet/getblockbylimitnext", {"startNum": 5, "endNum": 106}),
        ("wallet/getaccount", {"address": raw(node.new_account("nobody"))}),
        ("wallet/getcontract", {"value": raw(node.accounts[0])}),
    ]:
        assert await ask(path, **values) == {}, path
    assert await ask("wallet/gettransactioninfobyblocknum", num=10_000) == []
    assert await ask("wallet/gettransactioninfobyblocknum", num=1) == []
    assert await ask("wallet/getblockbylimitnext", startNum=500, endNum=505) == {"block": []}


async def test_the_first_block_is_told_without_its_zeros(ask: Ask) -> None:
    first = await ask("wallet/getblockbynum", num=0)
    assert first["blockID"] == "00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc"
    assert first["block_header"]["raw_data"] == {"txTrieRoot": "00" * 32}


async def test_the_solid_side_is_eighteen_blocks_behind_in_everything(node: TronNode, ask: Ask) -> None:
    to = node.new_account("customer")
    await node.mine(5)
    sent = await node.send_trx(to, 5 * TRX)
    await node.mine(18)
    for path, values in [
        ("gettransactioninfobyid", {"value": sent}),
        ("gettransactionbyid", {"value": sent}),
        ("getaccount", {"address": raw(to)}),
        ("getblockbynum", {"num": node.head}),
    ]:
        assert await ask(f"wallet/{path}", **values) != {}
        assert await ask(f"walletsolidity/{path}", **values) == {}
    now = await ask("walletsolidity/getnowblock")
    assert now["block_header"]["raw_data"]["number"] == node.head - 18 == node.solid_height
    await node.mine()
    assert (await ask("walletsolidity/gettransactioninfobyid", value=sent))["id"] == sent
    assert (await ask("walletsolidity/getaccount", address=raw(to)))["balance"] == 5 * TRX


async def test_the_solid_side_does_not_take_transactions(node: TronNode) -> None:
    async with aiohttp.ClientSession() as session:
        for path in ("broadcasttransaction", "getaccountresource", "getchainparameters", "getcontract", "nonsense"):
            async with session.post(f"{node.url}/walletsolidity/{path}", json={}) as response:
                assert response.status == 404


async def test_a_waiting_transaction_looks_done_on_the_full_side_until_its_info_is_asked_for(
    node: TronNode, ask: Ask
) -> None:
    sent = await node.send_trx(node.accounts[1], TRX)
    waiting = await ask("wallet/gettransactionbyid", value=sent)
    assert waiting["ret"] == [{"contractRet": "SUCCESS"}]
    assert await ask("wallet/gettransactionfrompending", value=sent) == waiting
    assert await ask("wallet/gettransactionlistfrompending") == {"txId": [sent]}
    assert await ask("wallet/getpendingsize") == {"pendingSize": 1}
    assert await ask("wallet/gettransactioninfobyid", value=sent) == {}
    await node.mine()
    assert await ask("wallet/gettransactionbyid", value=sent) == waiting
    assert await ask("wallet/gettransactionfrompending", value=sent) == {}
    assert await ask("wallet/getpendingsize") == {"pendingSize": 0}
    assert await ask("wallet/gettransactioncountbyblocknum", num=node.head) == {"count": 1}


async def test_visible_decides_on_the_spelling_except_where_only_the_address_bar_does(node: TronNode, ask: Ask) -> None:
    await node.send_trx(node.accounts[1], TRX)
    await node.mine()
    plain = await ask("wallet/getblockbynum", num=node.head)
    visible = await ask("wallet/getblockbynum", num=node.head, visible=True)

    def sender(block: Any) -> str:
        owner: str = block["transactions"][0]["raw_data"]["contract"][0]["parameter"]["value"]["owner_address"]
        return owner

    assert sender(plain) == raw(node.accounts[0])
    assert sender(visible) == node.accounts[0]
    assert sender(await ask("wallet/getnowblock", visible=True)) == raw(node.accounts[0])
    async with aiohttp.ClientSession() as session, session.get(f"{node.url}/wallet/getnowblock?visible=true") as got:
        assert sender(await got.json()) == node.accounts[0]


async def test_reads_can_be_asked_with_get_and_with_forms(node: TronNode) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{node.url}/wallet/getblockbynum?num=1") as response:
            by_get = await response.json()
        async with session.post(f"{node.url}/wallet/getblockbynum", data={"num": "1"}) as response:
            assert await response.json() == by_get
        async with session.get(f"{node.url}/wallet/getaccount?address={node.accounts[0]}&visible=true") as response:
            assert (await response.json())["address"] == node.accounts[0]
        async with session.get(f"{node.url}/wallet/broadcasttransaction") as response:
            assert response.status == 405


async def test_errors_have_status_200(node: TronNode, ask: Ask) -> None:
    assert "NumberFormatException" in (await ask("wallet/getblockbynum", num="many"))["Error"]
    assert "INVALID hex" in (await ask("wallet/getaccount", address="xyz"))["Error"]
    assert "INVALID base58" in (await ask("wallet/getaccount", address="Txyz", visible=True))["Error"]
    assert await ask("wallet/getblock", id_or_num="xyz") == {"Error": "id must be legal block hash."}
    assert "NullPointerException" in (await ask("wallet/broadcasttransaction"))["Error"]
    assert "Error" in await ask("wallet/broadcasthex", transaction="ffff")
    async with aiohttp.ClientSession() as session:
        for body in (b"{", b"[]", b"[" * 100_000):
            async with session.post(f"{node.url}/wallet/getnowblock", data=body) as response:
                assert response.status == 200
                assert "Error" in await response.json()


async def test_an_unknown_contract_in_a_transaction_is_as_good_as_none(ask: Ask) -> None:
    odd = {"type": "NeverHeardOf", "parameter": {"value": {}}}
    answer = await ask("wallet/broadcasttransaction", raw_data={"contract": [odd], "expiration": 1}, signature=["00"])
    assert answer["code"] == "CONTRACT_VALIDATE_ERROR"
    assert bytes.fromhex(answer["message"]).decode() == "Contract validate error : No contract!"


async def test_the_node_builds_transactions_that_it_would_take(node: TronNode, ask: Ask) -> None:
    owner, to = node.accounts[:2]
    built = await ask("wallet/createtransaction", owner_address=owner, to_address=to, amount=TRX, visible=True)
    assert built["visible"] is True
    contract = built["raw_data"]["contract"][0]
    assert contract["parameter"]["value"] == {"owner_address": owner, "to_address": to, "amount": TRX}
    head = node.block_id(node.head)
    assert (built["raw_data"]["ref_block_bytes"], built["raw_data"]["ref_block_hash"]) == (head[12:16], head[16:32])
    signature = keys.sign(node.keys[owner], bytes.fromhex(built["txID"])).hex()
    sent = await ask("wallet/broadcasttransaction", **built, signature=[signature])
    assert sent == {"result": True, "txid": built["txID"]}


@pytest.mark.parametrize(
    "path, values",
    [
        ("createaccount", {"account_address": "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH"}),
        ("freezebalancev2", {"frozen_balance": TRX, "resource": "ENERGY"}),
    ],
)
async def test_each_builder_builds_its_own_kind(node: TronNode, ask: Ask, path: str, values: dict[str, Any]) -> None:
    built = await ask(f"wallet/{path}", owner_address=node.accounts[0], visible=True, **values)
    signature = keys.sign(node.keys[node.accounts[0]], bytes.fromhex(built["txID"])).hex()
    assert (await ask("wallet/broadcasttransaction", **built, signature=[signature]))["result"] is True


async def test_stakes_are_built_over_http_from_beginning_to_end(node: TronNode, ask: Ask) -> None:
    owner, receiver = node.accounts[:2]
    for path, values in [
        ("freezebalancev2", {"frozen_balance": 10 * TRX, "resource": "ENERGY"}),
        ("delegateresource", {"receiver_address": receiver, "balance": 5 * TRX, "resource": "ENERGY"}),
        ("undelegateresource", {"receiver_address": receiver, "balance": 5 * TRX, "resource": "ENERGY"}),
        ("unfreezebalancev2", {"unfreeze_balance": 10 * TRX, "resource": "ENERGY"}),
    ]:
        built = await ask(f"wallet/{path}", owner_address=owner, visible=True, **values)
        signature = keys.sign(node.keys[owner], bytes.fromhex(built["txID"])).hex()
        assert (await ask("wallet/broadcasttransaction", **built, signature=[signature]))["result"] is True
        await node.mine()
    account = await ask("wallet/getaccount", address=owner, visible=True)
    assert [each["unfreeze_amount"] for each in account["unfrozenV2"]] == [10 * TRX]


async def test_a_transaction_that_could_not_be_is_not_built(node: TronNode, ask: Ask) -> None:
    owner, nobody = node.accounts[0], node.new_account("nobody")
    answer = await ask("wallet/createtransaction", owner_address=nobody, to_address=owner, amount=1, visible=True)
    assert answer == {
        "Error": "class org.tron.core.exception.ContractValidateException : "
        "Validate TransferContract error, no OwnerAccount."
    }
    before = node.balance(owner)
    await ask("wallet/createtransaction", owner_address=owner, to_address=node.accounts[1], amount=5, visible=True)
    assert node.balance(owner) == before


async def test_signatures_are_weighed_before_they_are_sent(node: TronNode, ask: Ask) -> None:
    owner, to = node.accounts[:2]
    built = await ask("wallet/createtransaction", owner_address=raw(owner), to_address=raw(to), amount=1)
    bare = await ask("wallet/getsignweight", **built)
    assert bare["result"] == {"code": "NOT_ENOUGH_PERMISSION"}
    assert bare["transaction"]["transaction"]["txID"] == built["txID"]
    assert bare["permission"]["keys"] == [{"address": raw(owner), "weight": 1}]
    signed = {**built, "signature": [keys.sign(node.keys[owner], bytes.fromhex(built["txID"])).hex()]}
    enough = await ask("wallet/getsignweight", **signed)
    assert (enough["result"], enough["current_weight"], enough["approved_list"]) == ({}, 1, [raw(owner)])
    assert (await ask("wallet/getapprovedlist", **signed))["approved_list"] == [raw(owner)]
    wrong = {**built, "signature": [keys.sign(node.keys[to], bytes.fromhex(built["txID"])).hex()]}
    assert (await ask("wallet/getsignweight", **wrong))["result"]["code"] == "PERMISSION_ERROR"


async def test_the_node_tells_of_itself_and_of_its_prices(node: TronNode, ask: Ask) -> None:
    await node.mine(30)
    info = await ask("wallet/getnodeinfo")
    assert info["block"] == f"Num:{node.head},ID:{node.block_id(node.head)}"
    assert info["solidityBlock"] == f"Num:{node.solid_height},ID:{node.block_id(node.solid_height)}"
    parameters = {each["key"]: each.get("value") for each in (await ask("wallet/getchainparameters"))["chainParameter"]}
    assert parameters["getEnergyFee"] == 100
    assert parameters["getTransactionFee"] == 1000
    assert parameters["getCreateNewAccountFeeInSystemContract"] == TRX
    assert (await ask("wallet/getenergyprices"))["prices"].endswith(":100")
    assert (await ask("wallet/getbandwidthprices"))["prices"].endswith(":1000")
    assert len((await ask("wallet/listwitnesses"))["witnesses"]) == 27


async def test_addresses_are_judged(node: TronNode, ask: Ask) -> None:
    good = node.accounts[0]
    for text, result, message in [
        (good, True, "Base58check format"),
        (raw(good), True, "Hex string format"),
        (good[:-1] + ("2" if good[-1] != "2" else "3"), False, "Invalid address"),
        ("42" + raw(good)[2:], False, "Invalid address"),
        ("", False, "Length error"),
    ]:
        assert await ask("wallet/validateaddress", address=text) == {"result": result, "message": message}


async def test_keys_and_calls_are_counted(node: TronNode, ask: Ask) -> None:
    await ask("wallet/getnowblock")
    async with aiohttp.ClientSession(headers={API_KEY_HEADER: "secret"}) as session:
        for _ in range(2):
            async with session.post(f"{node.url}/wallet/getnowblock") as response:
                assert response.status == 200
    assert node.calls["wallet/getnowblock"] == 3
    assert node.api_keys == {"secret": 2}


async def test_a_node_can_be_away_and_come_back_at_the_same_address(node: TronNode, ask: Ask) -> None:
    url, head = node.url, node.block_id(node.head)
    await node.stop_listening()
    with pytest.raises(aiohttp.ClientConnectionError):
        await ask("wallet/getnowblock")
    await node.listen_again()
    assert node.url == url
    assert (await ask("wallet/getnowblock"))["blockID"] == head


async def test_a_contract_call_on_a_node_without_contracts_is_refused(node: TronNode, ask: Ask) -> None:
    asked = {"owner_address": node.accounts[0], "contract_address": node.accounts[1], "visible": True}
    answer = await ask("wallet/triggerconstantcontract", **asked, function_selector="name()")
    assert answer == {"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": "Smart contract is not exist."}}
    answer = await ask("wallet/triggersmartcontract", **asked, function_selector="name()")
    assert answer["result"]["message"] == "No contract or not a valid smart contract"
    answer = await ask("wallet/estimateenergy", **asked, function_selector="name()")
    assert answer["result"]["code"] == "CONTRACT_VALIDATE_ERROR"


ODD: list[Any] = [None, True, -1, 2**40, 2**70, 1.5, "", "zz", "00", "T" * 34, [], [1], {}, {"a": 1}, "0" * 85]
NAMES = (
    "num value address owner_address to_address contract_address amount balance data id_or_num startNum endNum type "
    "resource raw_data signature transaction abi parameter call_value fee_limit owner actives visible Permission_id "
    "extra_data function_selector name"
).split()


@pytest.mark.parametrize("path", sorted(path for path in ENDPOINTS if path.startswith("wallet/")))
async def test_nothing_that_is_asked_breaks_the_node(node: TronNode, path: str) -> None:
    """Whatever stands in the place of a value, the answer is JSON with status 200, as from a real node."""
    contract = {"type": "TransferContract", "parameter": {"value": {}}}
    sample = {"raw_data": {"contract": [contract]}, "signature": ["00" * 65], "abi": "[]"}
    async with aiohttp.ClientSession() as session:
        for name, odd in Random(path).sample(list(product(NAMES, ODD)), 120):
            body = msgspec.json.encode({**sample, name: odd})
            async with session.post(f"{node.url}/{path}", data=body) as response:
                assert response.status == 200, (name, odd)
                await response.json()
    assert node.pending() == []
