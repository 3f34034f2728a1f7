"""What looks like a deposit and is none, what is one although it does not look like it, and blocks that do not fit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import pytest

from cambist.plugin import InconsistentChainError, Transfer
from cambist_tron.addresses import hex_of
from cambist_tron.config import TronConfig, resolve
from cambist_tron.decode import check_infos, check_transactions, transfers_of
from cambist_tron.headers import check_header
from cambist_tron.protobuf import encode

from .forging import USDT, Json, call, info, inner, log, mined, trc10, trx, tx
from .recordings import address, decoded_block, decoded_infos, told

OURS, OTHERS, THEIRS = address("0a" * 20), address("0b" * 20), address("0c" * 20)
FAKE = address("0f" * 20)
CONTRACTS = resolve(TronConfig()).contracts
WATCH = frozenset({bytes.fromhex("0a" * 20)})

RESULTS = [
    "SUCCESS", "REVERT", "OUT_OF_ENERGY", "OUT_OF_TIME", "BAD_JUMP_DESTINATION", "ILLEGAL_OPERATION",
    "TRANSFER_FAILED", "UNKNOWN", "STACK_OVERFLOW", "INVALID_CODE",
]  # fmt: skip


def transfers(*pairs: tuple[Json, Json], internal: bool = True) -> list[Transfer]:
    """Return what is found in a block of these transactions and their results."""
    raw, infos = mined(9, "00" * 32, *pairs)
    whole = decoded_block(raw)
    check_header(whole, 9)
    check_transactions(whole, 9)
    results = check_infos(whole, decoded_infos(infos), 9)
    return transfers_of(whole, results, CONTRACTS, WATCH, internal=internal)


def run(
    *, ret: str = "SUCCESS", result: str = "SUCCESS", logs: Sequence[Json] = (), inners: Sequence[Json] = ()
) -> tuple[Json, Json]:
    """Return a call and its result, which may contradict each other."""
    one = call(OTHERS, ret=ret)
    return one, info(one, result=result, logs=logs, inners=inners)


@pytest.mark.parametrize("ret", RESULTS)
def test_native_coin_moves_only_by_a_transaction_that_succeeded(ret: str) -> None:
    """Whatever went wrong, the transfer stands in the block and is none."""
    one = trx(OTHERS, OURS, 5, ret=ret)
    found = transfers((one, info(one, result=ret)))
    assert [transfer.amount for transfer in found] == ([5] if ret == "SUCCESS" else [])


def test_a_block_that_does_not_say_what_came_of_a_payment_is_not_used() -> None:
    """Else leaving it out would hide the payment."""
    for ret in ([], [{}], [{"contractRet": "SUCCESS"}] * 2):
        one = {**trx(OTHERS, OURS, 5), "ret": ret}
        with pytest.raises(InconsistentChainError, match="does not say"):
            transfers((one, info(one)))


def payment(source: str, to_address: str, amount: int) -> Json:
    """Return a transfer of native coin whose bytes are real, with an id that is theirs."""
    one = trx(source, to_address, amount)
    value = encode({1: bytes.fromhex(hex_of(source)), 2: bytes.fromhex(hex_of(to_address)), 3: amount})
    parameter = encode({1: b"type.googleapis.com/protocol.TransferContract", 2: value})
    return signed(one, encode({1: b"\xa3\x58", 8: 1_700_000_060_000, 11: encode({1: 1, 2: parameter})}))


def signed(one: Json, raw: bytes) -> Json:
    return {**one, "raw_data_hex": raw.hex(), "txID": hashlib.sha256(raw).hexdigest()}


@pytest.mark.parametrize(
    "name, value", [("amount", 6), ("amount", 5_000_000), ("to_address", THEIRS), ("owner_address", THEIRS)]
)
def test_what_was_signed_outweighs_what_the_node_says_of_it(name: str, value: int | str) -> None:
    """A changed amount, another recipient, which would hide the payment, and another sender."""
    one = payment(OTHERS, OURS, 5)
    assert [transfer.amount for transfer in transfers((one, info(one)))] == [5]
    told = one["raw_data"]["contract"][0]["parameter"]["value"]
    told[name] = hex_of(value) if isinstance(value, str) else value
    with pytest.raises(InconsistentChainError, match="something else than was signed"):
        transfers((one, info(one)))


def paying_call(source: str, contract: str, sun: int) -> Json:
    """Return a call that takes coin along, whose bytes are real, with an id that is theirs."""
    one = call(source, contract)
    told = one["raw_data"]["contract"][0]["parameter"]["value"]
    told["call_value"] = sun
    ends = {1: bytes.fromhex(hex_of(source)), 2: bytes.fromhex(hex_of(contract))}
    value = encode({**ends, 3: sun, 4: bytes.fromhex(told["data"])})
    parameter = encode({1: b"type.googleapis.com/protocol.TriggerSmartContract", 2: value})
    return signed(one, encode({1: b"\xa3\x58", 11: encode({1: 31, 2: parameter})}))


@pytest.mark.parametrize("ends", [(OURS, THEIRS), (OTHERS, OURS)])
@pytest.mark.parametrize("ret", RESULTS)
def test_coin_that_goes_along_with_a_call_moves_if_that_succeeded(ends: tuple[str, str], ret: str) -> None:
    """To the contract that is called, whoever of both is watched."""
    one = {**paying_call(*ends, 5), "ret": [{"contractRet": ret}]}
    found = transfers((one, info(one, result=ret)))
    assert told(found) == ([(one["txID"][:8], "native", ends[1], 5)] if ret == "SUCCESS" else [])


@pytest.mark.parametrize("name, value", [("call_value", 0), ("call_value", 6), ("contract_address", THEIRS)])
def test_coin_that_goes_along_is_what_was_signed(name: str, value: int | str) -> None:
    """None may be left out, nor invented."""
    one = paying_call(OTHERS, OURS, 5)
    said = one["raw_data"]["contract"][0]["parameter"]["value"]
    said[name] = hex_of(value) if isinstance(value, str) else value
    with pytest.raises(InconsistentChainError, match="something else than was signed"):
        transfers((one, info(one)))
    none = paying_call(OTHERS, OURS, 0)
    none["raw_data"]["contract"][0]["parameter"]["value"]["call_value"] = 5
    with pytest.raises(InconsistentChainError, match="something else than was signed"):
        transfers((none, info(none)))


def test_a_payment_that_is_called_something_else_is_found_out() -> None:
    """As a vote, or as a payment where a vote was signed."""
    one = payment(OTHERS, OURS, 5)
    one["raw_data"]["contract"][0]["type"] = "VoteWitnessContract"
    with pytest.raises(InconsistentChainError, match="something else than was signed"):
        transfers((one, info(one)))
    vote = signed(trx(OTHERS, OURS, 5), encode({1: b"\xa3\x58", 11: encode({1: 4, 2: encode({1: b"x"})})}))
    with pytest.raises(InconsistentChainError, match="something else than was signed"):
        transfers((vote, info(vote)))


def test_a_payment_in_another_spelling_does_not_stop_the_chain() -> None:
    """Fields in another order, twice, of another kind or that nobody knows: nodes take them, so the JSON counts."""
    plain = payment(OTHERS, OURS, 5)
    raw = bytes.fromhex(plain["raw_data_hex"])
    url = encode({1: b"type.googleapis.com/protocol.TransferContract"})
    value = encode({1: bytes.fromhex(hex_of(OTHERS)), 2: bytes.fromhex(hex_of(OURS)), 3: 5})
    backwards = encode({3: 5}) + encode({2: bytes.fromhex(hex_of(OURS))}) + encode({1: bytes.fromhex(hex_of(OTHERS))})
    odd = [backwards, value + b"\x1a\x00", value + b"\x19" + bytes(8), value + b"\x0d" + bytes(4), value + b"\x3b\x3c"]
    spelled = [encode({11: encode({1: 1, 2: url + encode({2: one})})}) for one in odd]
    for whole in (raw + encode({10: url}), raw + encode({99: 7}), b"\x5b\x5c" + raw, *spelled):
        one = signed(plain, whole)
        assert [transfer.amount for transfer in transfers((one, info(one)))] == [5]


def test_a_payment_that_stands_in_the_memo_is_none() -> None:
    """Whoever signs a small one, and has a node that tells the other, is not paid for it."""
    plain, large = payment(OTHERS, OURS, 5), payment(OTHERS, OURS, 5_000_000)
    one = signed(large, bytes.fromhex(plain["raw_data_hex"]) + encode({10: bytes.fromhex(large["raw_data_hex"])}))
    with pytest.raises(InconsistentChainError, match="something else than was signed"):
        transfers((one, info(one)))


def test_bytes_in_capitals_hide_nothing() -> None:
    one = payment(OTHERS, OURS, 5)
    one["raw_data_hex"] = one["raw_data_hex"].upper()
    one["raw_data"]["contract"][0]["type"] = "VoteWitnessContract"
    with pytest.raises(InconsistentChainError, match="something else than was signed"):
        transfers((one, info(one)))


@pytest.mark.parametrize("contracts", [0, 2])
def test_a_transaction_does_one_thing(contracts: int) -> None:
    """A contract that is listed twice would be two payments of one identity."""
    one = payment(OTHERS, OURS, 5)
    result = info(one)
    one["raw_data"]["contract"] *= contracts
    with pytest.raises(InconsistentChainError, match="one thing"):
        transfers((one, result))


def test_a_transaction_stands_in_a_block_once() -> None:
    one = payment(OTHERS, OURS, 5)
    with pytest.raises(InconsistentChainError, match="twice"):
        transfers((one, info(one)), (one, info(one)))


@pytest.mark.parametrize("ret", RESULTS)
@pytest.mark.parametrize("result", RESULTS)
def test_tokens_and_internal_coin_move_only_by_a_run_that_succeeded(ret: str, result: str) -> None:
    """By the block and by the result, even where logs and payments stand with the failure; both must say so."""
    pair = run(ret=ret, result=result, logs=[log(OTHERS, OURS, 5)], inners=[inner(THEIRS, OURS, 6)])
    if (ret == "SUCCESS") != (result == "SUCCESS"):
        with pytest.raises(InconsistentChainError, match="contradict"):
            transfers(pair)
        return
    found = transfers(pair)
    succeeded = ret == "SUCCESS"
    assert told(found) == ([(found[0].tx_id[:8], "trace:0", OURS, 6), (found[1].tx_id[:8], "log:0", OURS, 5)]
                           if succeeded else [])  # fmt: skip


def test_a_result_that_contradicts_itself_is_not_used() -> None:
    """It failed by one field alone, or it left logs and payments behind although no contract ran."""
    one, failed = run(logs=[log(OTHERS, OURS, 5)])
    failed["result"] = "FAILED"
    with pytest.raises(InconsistentChainError, match="contradict"):
        transfers((one, failed))
    plain = trx(OTHERS, THEIRS, 5)
    for odd in ({"log": [log(OTHERS, OURS, 5)]}, {"internal_transactions": [inner(THEIRS, OURS, 6)]}):
        with pytest.raises(InconsistentChainError, match="no result"):
            transfers((plain, {**info(plain), **odd}))


def test_an_asset_named_like_a_coin_is_none() -> None:
    """A TRC-10 asset called TRX or USDT, sent plainly or by a contract."""
    plain = trc10(OTHERS, OURS, 5, "TRX", nonce=1), trc10(OTHERS, OURS, 5, "USDT", nonce=2)
    sent = inner(THEIRS, OURS, 5)
    sent["callValueInfo"] = [{"callValue": 5, "tokenId": "1000001"}]
    assert transfers(*((one, info(one)) for one in plain), run(inners=[sent])) == []


def test_a_call_with_coin_and_an_asset_pays_the_coin() -> None:
    """Both may go along; each says what it is."""
    both = inner(THEIRS, OURS, 5)
    both["callValueInfo"].append({"callValue": 7, "tokenId": "1000001"})
    assert [one.amount for one in transfers(run(inners=[both]))] == [5]


def test_a_token_that_calls_itself_usdt_is_none() -> None:
    """Only registered contracts count, whatever their logs look like."""
    assert transfers(run(logs=[log(OTHERS, OURS, 5, FAKE)])) == []


@pytest.mark.parametrize(
    "change",
    [
        {"topics": ["8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"]},  # an approval
        {"extra": "00" * 32},  # a fourth topic: somebody's own event
        {"padding": "0" * 22 + "41"},  # an address of 21 bytes is no word that the event writes
        {"data": ""},
        {"data": "0" * 64},
    ],
)
def test_a_log_that_is_no_transfer_of_something_is_none(change: Json) -> None:
    """Another event, another shape, or nothing moved."""
    one = log(OTHERS, OURS, 5)
    if "topics" in change:
        one["topics"][0] = change["topics"][0]
    if "extra" in change:
        one["topics"].append(change["extra"])
    if "padding" in change:
        one["topics"][2] = change["padding"] + one["topics"][2][24:]
    if "data" in change:
        one["data"] = change["data"]
    assert transfers(run(logs=[one])) == []


def test_the_position_counts_all_logs_of_the_transaction() -> None:
    """Those of others, too, so that it is the same wherever the transaction is mined."""
    logs = [log(OTHERS, THEIRS, 1), log(OTHERS, OURS, 2, FAKE), log(OTHERS, OURS, 3), log(THEIRS, OURS, 3)]
    assert [(one.position, one.amount) for one in transfers(run(logs=logs))] == [("log:2", 3), ("log:3", 3)]


def test_what_an_address_sends_to_itself_is_nothing() -> None:
    """It changes nothing that it holds."""
    one = trx(OURS, OURS, 5)
    assert transfers((one, info(one)), run(logs=[log(OURS, OURS, 5)], inners=[inner(OURS, OURS, 5)])) == []


@pytest.mark.parametrize(
    "note",
    [
        "delegateResourceOfEnergy", "unDelegateResourceOfEnergy", "delegateResourceOfBandwidth", "freezeForEnergy",
        "unfreezeForEnergy", "freezeBalanceV2ForTronPower", "unfreezeBalanceV2ForEnergy", "withdrawExpireUnfreeze",
        "withdrawExpireUnfreezeWhileUnfreezing", "withdrawExpireUnfreezeWhileCanceling",
        "withdrawExpireUnfreezeWhileSuiciding", "cancelAllUnfreezeV2", "voteWitness", "withdrawReward",
    ],
)  # fmt: skip
def test_an_internal_transaction_that_moves_no_coin_is_none(note: str) -> None:
    """A contract that lends energy to an address of ours names it, and an amount of which nothing arrives."""
    assert transfers(run(inners=[inner(THEIRS, OURS, 10**12, note)])) == []


@pytest.mark.parametrize("note", ["", "zz", "63616C6C", "63616c", "63616c6c00", "call", b"something new".hex()])
def test_an_internal_transaction_of_no_known_kind_is_an_outage(note: str) -> None:
    """It may move coin, or count: one in other words, or cut, or of a node that is newer than what is known here."""
    unknown = {**inner(THEIRS, OURS, 6), "note": note}
    for inners in ([unknown], [{**inner(THEIRS, OTHERS, 0), "note": note}, inner(THEIRS, OURS, 6)]):
        with pytest.raises(InconsistentChainError, match="no known kind"):
            transfers(run(inners=inners))
    assert transfers(run(inners=[{**inner(THEIRS, OTHERS, 6), "note": note}])) == []
    assert transfers(run(inners=[{**inner(THEIRS, OURS, 0), "note": note}])) == []
    assert transfers(run(inners=[{**inner(THEIRS, OURS, 6, rejected=True), "note": note}])) == []


@pytest.mark.parametrize("note", ["call", "create", "suicide"])
def test_coin_that_a_contract_sends_is_found(note: str) -> None:
    """By a call, a creation, or what a contract leaves behind."""
    (found,) = transfers(run(inners=[inner(THEIRS, OTHERS, 1), inner(THEIRS, OURS, 6, note)]))
    assert (found.position, found.sender, found.amount, found.contract) == ("trace:1", THEIRS, 6, None)


def test_the_position_does_not_count_what_only_some_nodes_keep() -> None:
    """One that keeps stakes and votes of contracts, too, must not make another deposit of the same coin."""
    kept = [inner(THEIRS, OTHERS, 1), inner(THEIRS, OTHERS, 0), inner(THEIRS, OURS, 6)]
    more = [
        kept[0],
        inner(THEIRS, OTHERS, 5, "freezeBalanceV2ForEnergy"),
        *kept[1:],
        inner(OURS, OURS, 0, "voteWitness"),
    ]
    assert [one.position for inners in (kept, more) for one in transfers(run(inners=inners))] == ["trace:2", "trace:2"]


@pytest.mark.parametrize("data", ["-" + "0" * 62 + "5", "0x" + "0" * 61 + "5", "0" * 60 + "_1_1", " " * 63 + "5"])
def test_what_python_takes_for_a_number_is_no_amount(data: str) -> None:
    """Less than nothing among it; the block is not used."""
    with pytest.raises(InconsistentChainError, match="an amount that is none"):
        transfers(run(logs=[{**log(OTHERS, OURS, 5), "data": data}]))


@pytest.mark.parametrize("amount", [2**63, 10**30, 10**4000], ids=["one bit", "thirty digits", "thousands"])
def test_an_amount_that_no_field_holds_is_none(amount: int) -> None:
    """A signed number of 64 bits is all that the network knows of coin; the block is not used."""
    one = trx(OTHERS, OURS, amount)
    for pair in ((one, info(one)), run(inners=[inner(THEIRS, OURS, amount)])):
        with pytest.raises(InconsistentChainError, match="an amount that is none"):
            transfers(pair)


def test_an_internal_transaction_that_was_undone_is_none() -> None:
    """The contract went on after a call that failed."""
    assert transfers(run(inners=[inner(THEIRS, OURS, 6, rejected=True), inner(THEIRS, OURS, 0)])) == []


def test_internal_transfers_can_be_left_out() -> None:
    """By the operator, where the nodes do not keep them."""
    assert transfers(run(inners=[inner(THEIRS, OURS, 6)]), internal=False) == []


def test_transfers_come_in_the_order_of_the_chain() -> None:
    """By transaction; what contracts sent before what tokens tell."""
    first, last = trx(OTHERS, OURS, 1, nonce=1), trx(OTHERS, OURS, 4, nonce=2)
    between = run(logs=[log(OTHERS, OURS, 3)], inners=[inner(THEIRS, OURS, 2)])
    assert [one.amount for one in transfers((first, info(first)), between, (last, info(last)))] == [1, 2, 3, 4]


def test_dust_is_told_like_everything_else() -> None:
    """What it is worth is the gateway's to judge."""
    one = trx(OTHERS, OURS, 1)
    assert [found.amount for found in transfers((one, info(one)))] == [1]


@pytest.mark.parametrize("kind", ["AccountCreateContract", "VoteWitnessContract", "SomethingNewContract"])
def test_transactions_of_other_kinds_pass(kind: str) -> None:
    """Those that will be thought of later included, and those without any field that is known."""
    one = tx(kind, {"account_address": "41" + "0a" * 20, "votes": [{"vote_count": 5}]})
    assert transfers((one, info(one))) == []


@pytest.mark.parametrize(
    "data, recipient", [("05", OURS), ("0" * 63, OURS), ("zz" * 32, OURS), ("F" * 64, OURS), ("0" * 64, "")]
)
def test_a_log_in_which_no_words_stand_is_not_used(data: str, recipient: str) -> None:
    """Half a word would hide a payment, and so would half an address."""
    one = log(OTHERS, OURS, 5)
    one["data"] = data
    if not recipient:
        one["topics"][2] = one["topics"][2][:-2]
    with pytest.raises(InconsistentChainError, match="block 9"):
        transfers(run(logs=[one]))


@pytest.mark.parametrize(
    "change",
    [
        {"address": hex_of(USDT)[2:].upper()},
        {"address": hex_of(USDT)[2:-2]},
        {"topics": [*log(OTHERS, OURS, 5)["topics"][:2], "zz" * 32]},
        {"topics": [log(OTHERS, OURS, 5)["topics"][0].upper(), *log(OTHERS, OURS, 5)["topics"][1:]]},
    ],
)
def test_a_log_that_would_only_be_overlooked_is_not_used(change: Json) -> None:
    """Whoever spells a token's address otherwise would hide a payment."""
    with pytest.raises(InconsistentChainError, match="block 9"):
        transfers(run(logs=[{**log(OTHERS, OURS, 5), **change}]))


def test_an_outcome_that_nobody_knows_is_not_used() -> None:
    """Neither for a payment nor for what was sent."""
    one = trx(OTHERS, OURS, 5)
    with pytest.raises(InconsistentChainError, match="outcome"):
        transfers((one, {**info(one), "result": "PERHAPS"}))


def test_an_address_that_is_none_does_not_pass_for_one() -> None:
    """The block is not used."""
    one = trx(OTHERS, OURS, 5)
    one["raw_data"]["contract"][0]["parameter"]["value"]["owner_address"] = "42" + "0b" * 20
    with pytest.raises(InconsistentChainError, match="block 9"):
        transfers((one, info(one)))


def test_a_transaction_whose_id_is_not_the_hash_of_its_bytes_does_not_pass() -> None:
    """Ids tell deposits apart, so an endpoint must not make them up."""
    one = trx(OTHERS, OURS, 5)
    one["raw_data_hex"] = one["raw_data_hex"][:-2] + "00"
    with pytest.raises(InconsistentChainError, match="is not what its id says"):
        transfers((one, info(one)))


def two_paid() -> tuple[Json, list[Json]]:
    """Return a block of two transactions and their results."""
    one, two = trx(OTHERS, OURS, 5, nonce=1), trx(OTHERS, OURS, 6, nonce=2)
    return mined(9, "00" * 32, (one, info(one)), (two, info(two)))


def checked(raw: Json, infos: list[Json]) -> list[str]:
    """Check all that the scanner checks, and return the ids of the transactions whose results were found."""
    whole = decoded_block(raw)
    check_header(whole, 9)
    check_transactions(whole, 9)
    return [one.id for one in check_infos(whole, decoded_infos(infos), 9)]


@pytest.mark.parametrize(
    "name, value",
    [
        ("number", 10), ("timestamp", 1), ("parentHash", "ab" * 32), ("parentHash", ""), ("txTrieRoot", "xy"),
        ("txTrieRoot", "ab" * 32), ("version", -1), ("version", 37), ("witness_address", "41" + "78" * 20),
        ("witness_id", 1), ("accountStateRoot", "ab" * 32),
    ],
)  # fmt: skip
def test_a_header_that_is_not_what_the_id_says_is_never_used(name: str, value: Any) -> None:
    """Every field counts."""
    raw, infos = two_paid()
    raw["block_header"]["raw_data"][name] = value
    with pytest.raises(InconsistentChainError, match=r"block (9|10) "):
        checked(raw, infos)


@pytest.mark.parametrize("block_id", ["", "0", "ab" * 32, "0000000000000009" + "ab" * 24])
def test_an_id_that_is_not_the_headers_is_never_used(block_id: str) -> None:
    """Nor one that is none."""
    raw, infos = two_paid()
    with pytest.raises(InconsistentChainError):
        checked({**raw, "blockID": block_id}, infos)


def test_a_block_without_its_transactions_is_never_an_empty_block() -> None:
    """The root in its header says that it had some."""
    raw, _ = two_paid()
    del raw["transactions"]
    with pytest.raises(InconsistentChainError, match="came without its transactions"):
        checked(raw, [])


@pytest.mark.parametrize(
    "change",
    [
        lambda *infos: infos[:0],
        lambda *infos: infos[:1],
        lambda *infos: infos[:1] * 2,
        lambda *infos: [*infos, infos[1]],
        lambda one, two: [one, {**two, "id": "ab" * 32}],
        lambda one, two: [one, {**two, "blockNumber": 8}],
        lambda one, two: [one, {**two, "blockTimeStamp": one["blockTimeStamp"] + 3000}],
    ],
    ids=["none", "one too few", "one twice", "one too many", "another's", "another block's", "another fork's"],
)
def test_results_that_are_not_those_of_the_block_are_never_used(change: Any) -> None:
    """One for each transaction, and its own."""
    raw, infos = two_paid()
    with pytest.raises(InconsistentChainError):
        checked(raw, change(*infos))


def test_results_may_come_in_another_order() -> None:
    """What counts is that there is one for each."""
    raw, infos = two_paid()
    assert checked(raw, infos[::-1]) == [one["txID"] for one in raw["transactions"]]


def test_logs_may_name_contracts_with_their_first_byte() -> None:
    """Some providers do."""
    one = log(OTHERS, OURS, 5, USDT)
    one["address"] = "41" + one["address"]
    assert [found.contract for found in transfers(run(logs=[one]))] == [USDT]
