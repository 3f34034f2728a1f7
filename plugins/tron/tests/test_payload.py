"""Payloads and signatures: recorded transactions, tronpy's own encoding, and everything that must not be read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from coincurve import PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from tronpy.proto import tron_pb2 as other

from cambist.plugin import (
    ChainInfo,
    Fee,
    Movement,
    SignatureError,
    Staking,
    Step,
    Token,
    Units,
    UnreadablePayloadError,
    UnsignedTx,
)
from cambist_chainkit.contracts import TRANSFER
from cambist_chainkit.curve import ORDER
from cambist_tron.addresses import PREFIX, of_point, raw_of, spell
from cambist_tron.family import ACTIVATION_SUN, BANDWIDTH_SUN, TronFamily
from cambist_tron.payload import TxFields, bandwidth_of, read_payload, read_signed, write_payload
from cambist_tron.protobuf import NUMBER_MAX, decode, encode
from cambist_tron.writing import PLACEHOLDER_TIP, unsigned
from devnets.tron.tests.recordings import RECORDED

CASES = 5_000 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 700
FAMILY = TronFamily()
KEY = b"\x07" * 32
OWNER = of_point(PrivateKey(KEY).public_key.format(compressed=False)[1:])
RECIPIENT = spell(b"\x5a" * 20)
TRX = Token(symbol="TRX", contract=None, decimals=6, label="TRON")
USDX = Token(symbol="USDX", contract=spell(b"\xc0" * 20), decimals=6, label="Dollar")
CHAIN = ChainInfo(id="tron", name="TRON", family="tron", tokens=(TRX, USDX), confirmations=19)
FEE = Fee(limit=70_000, price=100)


def fields(**changes: Any) -> TxFields:
    made: dict[str, Any] = {
        "owner": raw_of(OWNER),
        "to_address": b"\x5a" * 20,
        "amount": 9,
        "ref_block_bytes": b"\x12\x34",
        "ref_block_hash": b"\x01\x02\x03\x04\x05\x06\x07\x08",
        "expiration_ms": 1_700_000_300_000,
        "timestamp_ms": 1_700_000_000_123,
    } | changes
    return TxFields(**made)


def step(token: Token = TRX, amount: int = 9, **changes: Any) -> Step:
    made: dict[str, Any] = {"sender": OWNER, "to_address": RECIPIENT, "token": token, "amount": Units(amount)}
    return Step(**({"fee": FEE} | made | changes))


def tx_of(one: Step, timestamp_ms: int = 1) -> UnsignedTx:
    return unsigned(one, PLACEHOLDER_TIP, timestamp_ms)


def signature_of(payload: bytes, key: bytes = KEY) -> bytes:
    return PrivateKey(key).sign_recoverable(FAMILY.digest(payload), hasher=None)


def found_in(value: Any) -> Iterator[dict[str, Any]]:
    """Return every transaction in a recorded answer whose bytes were recorded, too."""
    if isinstance(value, dict):
        if {"txID", "raw_data_hex", "raw_data"} <= value.keys() and value["raw_data_hex"] != "placeholder":
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from found_in(one)


RECORDINGS = {
    one["txID"]: one for path in sorted(RECORDED.glob("*.json")) for one in found_in(json.loads(path.read_bytes()))
}


def is_ours(one: dict[str, Any]) -> bool:
    (contract,) = one["raw_data"]["contract"]
    data = contract["parameter"]["value"].get("data", "")
    sent = contract["type"] == "TransferContract" or data.startswith(TRANSFER.hex() + "0" * 24)
    return sent and "data" not in one["raw_data"]


def test_recorded_transfers_are_read_and_written_to_the_byte() -> None:
    """Of all kinds of wallets: the same bytes, the id that the network gave them, and what they did."""
    ours = [one for one in RECORDINGS.values() if is_ours(one)]
    assert len(ours) >= 10
    assert any(read_payload(bytes.fromhex(one["raw_data_hex"])).contract for one in ours)
    for one in ours:
        payload = bytes.fromhex(one["raw_data_hex"])
        read = read_payload(payload)
        (contract,) = one["raw_data"]["contract"]
        value = contract["parameter"]["value"]
        assert write_payload(read) == payload
        assert FAMILY.digest(payload).hex() == one["txID"]
        assert (PREFIX + read.owner).hex() == value["owner_address"]
        assert read.expiration_ms == one["raw_data"]["expiration"]
        assert read.fee_limit == one["raw_data"].get("fee_limit", 0)
        if read.contract is None:
            assert ((PREFIX + (read.to_address or b"")).hex(), read.amount) == (value["to_address"], value["amount"])
        else:
            assert (PREFIX + read.contract).hex() == value["contract_address"]


def test_recorded_signatures_are_their_owners() -> None:
    """What wallets signed is sealed here to what they broadcast, whichever way they write the recovery id."""
    signed = [one for one in RECORDINGS.values() if is_ours(one) and len(one.get("signature", [""])[0]) == 130]
    assert signed
    for one in signed:
        payload, theirs = bytes.fromhex(one["raw_data_hex"]), bytes.fromhex(one["signature"][0])
        signature = theirs[:64] + bytes([theirs[64] % 27])
        tx = UnsignedTx(sender=spell(read_payload(payload).owner), sequence=None, payload=payload, fee=FEE)
        sealed = FAMILY.seal(tx, signature)
        assert sealed.tx_id == one["txID"]
        assert read_signed(sealed.raw) == read_payload(payload)


def test_other_recorded_transactions_are_not_read() -> None:
    """TRC-10, other calls of contracts, memos."""
    others = [one for one in RECORDINGS.values() if not is_ours(one)]
    assert {one["raw_data"]["contract"][0]["type"] for one in others} >= {
        "TransferAssetContract",
        "TriggerSmartContract",
    }
    for one in others:
        with pytest.raises(UnreadablePayloadError):
            FAMILY.effects(CHAIN, bytes.fromhex(one["raw_data_hex"]))


# Made once: whatever is made at a draw is checked again at each.
TOKENS, RAW_ADDRESSES = st.sampled_from([TRX, USDX]), st.binary(min_size=20, max_size=20)
ACTIONS = st.sampled_from(["lend", "reclaim", "stake", "unstake", "transfer", "transfer", "transfer"])
NUMBERS, WORDS = (st.integers(1, top) | st.integers(1, 300) for top in (NUMBER_MAX, 2**256 - 1))
LIMITS, PRICES = st.integers(1, 2**30), st.integers(1, 1000)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    token = draw(TOKENS)
    action = draw(ACTIONS)
    return step(
        token=token if action == "transfer" else TRX,
        amount=draw(WORDS if token is USDX and action == "transfer" else NUMBERS),
        to_address=spell(draw(RAW_ADDRESSES)),
        fee=Fee(limit=draw(LIMITS), price=draw(PRICES)),
        action=action,
    )


@pytest.mark.campaign
@settings(max_examples=CASES, deadline=None)
@given(one=steps(), timestamp_ms=st.integers(1, 2**42))
def test_what_is_read_is_what_was_meant(one: Step, timestamp_ms: int) -> None:
    """By us, and by tronpy's messages where it has them: the whole of the payload is in the effects."""
    tx = tx_of(one, timestamp_ms)
    effects = FAMILY.effects(CHAIN, tx.payload)
    assert (effects.sequence, effects.delegate) == (None, None)
    assert effects.valid_until == tx.valid_until == PLACEHOLDER_TIP.head_time_ms // 1000 + 300
    sealed = FAMILY.seal(tx, signature_of(tx.payload))
    assert effects.tx_id == sealed.tx_id == FAMILY.digest(tx.payload).hex()
    limit = one.fee.limit * one.fee.price if not one.token.is_native else 0
    assert effects.fee_max >= limit + len(sealed.raw) * BANDWIDTH_SUN
    assert bandwidth_of(tx.payload) == len(sealed.raw) + 64
    if one.action == "transfer":
        assert effects.staking is None
        assert effects.movements == (
            Movement(contract=one.token.contract, recipient=one.to_address, amount=one.amount),
        )
        by_tronpy(one, tx, sealed.raw)
    else:
        borrower = one.to_address if one.action in {"lend", "reclaim"} else None
        assert effects.movements == ()
        assert effects.staking == Staking(action=one.action, amount=one.amount, borrower=borrower)


def by_tronpy(one: Step, tx: UnsignedTx, raw: bytes) -> None:
    """Compare with the messages that tronpy encodes transactions with."""
    whole = other.Transaction.FromString(raw)
    assert whole.raw_data.SerializeToString() == tx.payload
    (contract,) = whole.raw_data.contract
    if one.token.is_native:
        sent = other.TransferContract()
        assert contract.parameter.Unpack(sent)
        assert (sent.owner_address, sent.to_address, sent.amount) == (
            PREFIX + raw_of(one.sender),
            PREFIX + raw_of(one.to_address),
            one.amount,
        )
    else:
        called = other.TriggerSmartContract()
        assert contract.parameter.Unpack(called)
        assert called.contract_address == PREFIX + raw_of(one.token.contract or "")
        assert called.data[-32:] == one.amount.to_bytes(32, "big")
        assert (called.call_value, whole.raw_data.fee_limit) == (0, one.fee.limit * one.fee.price)


def contract_in(payload: bytes) -> dict[int, Any]:
    raw = decode(payload, {1: "bytes", 4: "bytes", 8: "number", 11: "bytes", 14: "number", 18: "number"})
    return dict(raw)


def changed(payload: bytes, change: dict[int, Any], *, inside: str = "raw") -> bytes:
    """Return the payload with fields put in or out, of the raw data, the contract, or what the contract says."""
    raw = contract_in(payload)
    contract = dict(decode(raw[11], {1: "number", 2: "bytes"}))
    wrapped = dict(decode(contract[2], {1: "bytes", 2: "bytes"}))
    if inside == "value":
        known = dict.fromkeys((1, 2, 4), "bytes")
        value: dict[int, Any] = dict(decode(wrapped[2], {**known, 3: "number"}))
        wrapped[2] = encode(value | change)
    if inside == "any":
        wrapped |= change
    contract[2] = encode(wrapped)
    if inside == "contract":
        contract |= change
    raw[11] = encode(contract)
    return encode(raw | change) if inside == "raw" else encode(raw)


NATIVE = write_payload(fields())
CALL = write_payload(fields(contract=b"\xc0" * 20, fee_limit=7_000_000))
LEND = write_payload(fields(action="lend", amount=5_000_000))
DATA = TRANSFER + bytes(12) + b"\x5a" * 20 + (9).to_bytes(32, "big")


@pytest.mark.parametrize(
    "payload, why",
    [
        (b"", "type 0"),
        (b"\0", "field 0"),
        (b"\xff" * 40, "does not end"),
        (NATIVE[:-1], "does not end"),
        (NATIVE + b"\0", "field 0"),
        (NATIVE + b"\x98\x06\x01", "field 99"),
        (NATIVE * 2, "twice, or out of order"),
        (changed(NATIVE, {10: b"memo"}), "field 10"),
        (changed(NATIVE, {3: 5}), "field 3"),
        (changed(NATIVE, {9: b"auth"}), "field 9"),
        (changed(NATIVE, {12: b"script"}), "field 12"),
        (changed(NATIVE, {18: 5}), "runs no contract"),
        (changed(CALL, {18: 0}), "or runs one without"),
        (changed(NATIVE, {8: 0}), "whole second"),
        (changed(NATIVE, {8: 1_700_000_300_500}), "whole second"),
        (changed(NATIVE, {14: 0}), "no timestamp"),
        (changed(NATIVE, {1: b"\x12"}), "refers to no block"),
        (changed(NATIVE, {4: b""}), "refers to no block"),
        (changed(NATIVE, {5: 2}, inside="contract"), "field 5"),
        (changed(NATIVE, {3: b"provider"}, inside="contract"), "field 3"),
        (changed(NATIVE, {1: 2}, inside="contract"), "type 2"),
        (changed(NATIVE, {1: 31}, inside="contract"), "field 3"),
        (changed(NATIVE, {1: 54}, inside="contract"), "another kind"),
        (changed(NATIVE, {1: b"type.googleapis.com/protocol.TransferAssetContract"}, inside="any"), "one way"),
        (changed(NATIVE, {1: b"protocol.TransferContract"}, inside="any"), "one way"),
        (changed(NATIVE, {1: b"\x41" * 20}, inside="value"), "no address"),
        (changed(NATIVE, {2: b"\x42" + b"\x5a" * 20}, inside="value"), "no address"),
        (changed(NATIVE, {4: b"more"}, inside="value"), "field 4"),
        (changed(CALL, {3: 5}, inside="value"), "field 3"),
        (changed(CALL, {5: 5}, inside="value"), "field 5"),
        (changed(CALL, {6: 1_002_000}, inside="value"), "field 6"),
        (changed(CALL, {4: b""}, inside="value"), "something other than transfer"),
        (changed(CALL, {4: DATA + b"\0"}, inside="value"), "something other than transfer"),
        (changed(CALL, {4: DATA[:-1]}, inside="value"), "something other than transfer"),
        (changed(CALL, {4: bytes.fromhex("095ea7b3") + DATA[4:]}, inside="value"), "something other than transfer"),
        (changed(CALL, {4: DATA[:15] + b"\x41" + DATA[16:]}, inside="value"), "something other than transfer"),
        (changed(CALL, {2: b"\x41" + b"\xc1" * 20}, inside="value"), "no registered token"),
    ],
)
def test_what_is_not_written_here_is_not_read(payload: bytes, why: str) -> None:
    """Each of these is a transaction that would do something else, or would be another one than it seems."""
    with pytest.raises(UnreadablePayloadError, match=why):
        FAMILY.effects(CHAIN, payload)


def test_stakes_are_for_energy_and_never_locked() -> None:
    """A lock would keep a loan from being given back, bandwidth is never lent."""
    raw = contract_in(LEND)
    contract = dict(decode(raw[11], {1: "number", 2: "bytes"}))
    wrapped = dict(decode(contract[2], {1: "bytes", 2: "bytes"}))
    value: dict[int, Any] = dict(decode(wrapped[2], {1: "bytes", 2: "number", 3: "number", 4: "bytes"}))

    def rewritten(change: dict[int, Any]) -> bytes:
        inner = encode({**wrapped, 2: encode(value | change)})
        return encode({**raw, 11: encode({**contract, 2: inner})})

    assert rewritten({}) == LEND
    for change in ({2: 0}, {2: 2}, {5: 1}, {6: 28_800}):
        with pytest.raises(UnreadablePayloadError):
            FAMILY.effects(CHAIN, rewritten(change))


@pytest.mark.campaign
@settings(max_examples=CASES, deadline=None)
@given(payload=st.sampled_from([NATIVE, CALL, LEND]), data=st.data())
def test_a_changed_payload_is_another_or_none(payload: bytes, data: st.DataObject) -> None:
    """Whatever bytes are changed: it is refused, or it is the one spelling of what is read then."""
    start = data.draw(st.integers(0, len(payload) - 1))
    end = data.draw(st.integers(start, min(start + 4, len(payload))))
    other_payload = payload[:start] + data.draw(st.binary(max_size=5)) + payload[end:]
    try:
        read = read_payload(other_payload)
    except UnreadablePayloadError:
        return
    assert write_payload(read) == other_payload


@pytest.mark.parametrize(
    "varint", [b"\x88\x00", b"\x88\x80\x00", b"\x80" * 9 + b"\x01", b"\xff" * 9 + b"\x01", b"\x80" * 10 + b"\x01"]
)
def test_numbers_have_one_spelling(varint: bytes) -> None:
    """Neither padded with zeros nor beyond 63 bits."""
    with pytest.raises(UnreadablePayloadError):
        decode(b"\x08" + varint, {1: "number"})


def test_other_chains_read_nothing() -> None:
    """The family's payloads are TRON's."""
    chain = ChainInfo(id="ethereum", name="Ethereum", family="evm", tokens=(TRX, USDX), confirmations=1)
    with pytest.raises(UnreadablePayloadError, match="no TRON network"):
        FAMILY.effects(chain, NATIVE)


def test_a_transfer_of_coin_may_cost_an_activation() -> None:
    """Which is more than its bandwidth; a call costs its limit and its bandwidth, and activates nobody."""
    assert FAMILY.effects(CHAIN, NATIVE).fee_max == ACTIVATION_SUN
    assert FAMILY.effects(CHAIN, CALL).fee_max == 7_000_000 + bandwidth_of(CALL) * BANDWIDTH_SUN
    assert FAMILY.effects(CHAIN, LEND).fee_max == bandwidth_of(LEND) * BANDWIDTH_SUN


def test_what_is_withdrawn_is_all_that_there_is() -> None:
    """The payload names no amount."""
    tx = tx_of(step(action="withdraw", amount=5_000_000))
    assert FAMILY.effects(CHAIN, tx.payload).staking == Staking(action="withdraw", amount=Units(0))


@pytest.mark.campaign
def test_signatures_are_the_senders_or_refused() -> None:
    """Changed, of the wrong half, of somebody else, or for a payload of somebody else: nothing is sealed."""
    tx = tx_of(step(USDX))
    signature = signature_of(tx.payload)
    assert FAMILY.seal(tx, signature).tx_id == FAMILY.digest(tx.payload).hex()
    high = (int.from_bytes(ORDER, "big") - int.from_bytes(signature[32:64], "big")).to_bytes(32, "big")
    other_key = PrivateKey(b"\x08" * 32)
    stranger = of_point(other_key.public_key.format(compressed=False)[1:])
    theirs = tx_of(step(USDX, sender=stranger))
    wrong: list[tuple[UnsignedTx, bytes]] = [
        (tx, b""),
        (tx, signature[:64]),
        (tx, signature + b"\0"),
        (tx, signature[:64] + bytes([signature[64] ^ 1])),
        (tx, signature[:64] + bytes([signature[64] + 27])),
        (tx, signature[:32] + high + bytes([signature[64] ^ 1])),
        (tx, bytes(65)),
        (tx, signature_of(tx.payload, b"\x08" * 32)),
        (theirs, signature_of(theirs.payload)),
        (UnsignedTx(sender=OWNER, sequence=None, payload=theirs.payload, fee=FEE), signature_of(theirs.payload)),
        (
            UnsignedTx(sender=OWNER, sequence=None, payload=theirs.payload, fee=FEE),
            signature_of(theirs.payload, b"\x08" * 32),
        ),
    ]
    random = Random(5)
    for _ in range(100):
        place = random.randrange(64)
        changed_byte = bytes([signature[place] ^ random.randrange(1, 256)])
        wrong.append((tx, signature[:place] + changed_byte + signature[place + 1 :]))
    for unsigned_tx, broken in wrong:
        with pytest.raises(SignatureError):
            FAMILY.seal(unsigned_tx, broken)
