"""Payloads and signatures against eth-account, and everything that the signer must refuse to read."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest
import rlp as other_rlp
from eth_account import Account
from eth_utils.address import to_checksum_address
from hypothesis import given, settings
from hypothesis import strategies as st

from cambist.plugin import (
    Allowance,
    Call,
    ChainInfo,
    Effects,
    Fee,
    SignatureError,
    Step,
    Token,
    Units,
    UnreadablePayloadError,
    UnsignedTx,
)
from cambist.signer.protocol import PAYLOAD_BYTES_MAX
from cambist_chainkit.contracts import APPROVE, TRANSFER
from cambist_chainkit.curve import ORDER
from cambist_evm.family import EvmFamily
from cambist_evm.payload import TxFields, read_payload, write_payload
from cambist_evm.planner import unsigned
from cambist_evm.rlp import RlpError, decode, encode
from cambist_evm.testing import Wallet

CASES = 20_000 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 700
FAMILY = EvmFamily()
WALLET = Wallet("payer")
NATIVE = Token(symbol="ETH", contract=None, decimals=18, label="Ether")
USDX = Token(symbol="USDX", contract=to_checksum_address("0x" + "c0" * 20), decimals=6, label="Dollar")
RECIPIENT = to_checksum_address("0x" + "5a" * 20)

# Made once: whatever is made at a draw is checked again at each.
amounts = st.integers(0, 2**256 - 1) | st.integers(0, 300)
prices = st.integers(0, 2**80)
tips, limits, tokens = st.none() | prices, st.integers(0, 2**40), st.sampled_from([NATIVE, USDX])
raw_addresses = st.binary(min_size=20, max_size=20)


def chain(chain_id: int | None) -> ChainInfo:
    return ChainInfo(
        id="local", name="Local", family="evm", tokens=(NATIVE, USDX), confirmations=1, chain_id_num=chain_id
    )


@st.composite
def steps(draw: st.DrawFn) -> Step:
    price, tip = draw(prices), draw(tips)
    fee = Fee(limit=draw(limits), price=price, tip=None if tip is None else min(tip, price), extra=Units(5))
    to_address = to_checksum_address(draw(raw_addresses))
    return Step(sender=WALLET.address, to_address=to_address, token=draw(tokens), amount=Units(draw(amounts)), fee=fee)


def by_eth_account(step: Step, sequence: int, chain_id: int) -> Any:
    token = not step.token.is_native
    data = TRANSFER + bytes(12) + bytes.fromhex(step.to_address[2:]) + step.amount.to_bytes(32, "big") if token else b""
    tx: dict[str, Any] = {
        "nonce": sequence,
        "gas": step.fee.limit,
        "to": step.token.contract or step.to_address,
        "value": 0 if token else step.amount,
        "data": data,
        "chainId": chain_id,
    }
    if step.fee.tip is None:
        tx["gasPrice"] = step.fee.price
    else:
        tx |= {"type": 2, "maxFeePerGas": step.fee.price, "maxPriorityFeePerGas": step.fee.tip}
    return Account.sign_transaction(tx, WALLET.secret)


@pytest.mark.campaign
@settings(max_examples=CASES, deadline=None)
@given(step=steps(), sequence=st.integers(0, 2**64 - 2), chain_id=st.integers(1, 2**53))
def test_what_is_sealed_is_byte_for_byte_what_eth_account_signs(step: Step, sequence: int, chain_id: int) -> None:
    """Both kinds, native and token: the same bytes and the same id; and what was read is what was meant."""
    tx = unsigned(step, sequence, chain_id)
    signed = FAMILY.seal(tx, WALLET.sign(FAMILY.digest(tx.payload)))
    expected = by_eth_account(step, sequence, chain_id)
    assert signed.raw == expected.raw_transaction
    assert signed.tx_id == "0x" + expected.hash.hex()
    assert Account.recover_transaction(signed.raw) == WALLET.address

    effects = FAMILY.effects(chain(chain_id), tx.payload)
    (movement,) = effects.movements
    assert (movement.contract, movement.recipient, movement.amount, movement.source) == (
        step.token.contract,
        step.to_address,
        step.amount,
        None,
    )
    assert (effects.sequence, effects.delegate) == (sequence, None)
    assert effects.fee_max + step.fee.extra == step.fee.cost_max


def payload(**changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "chain_id": 1, "sequence": 7, "gas": 21_000, "price": 50, "tip": 2, "to": b"\x5a" * 20, "value": 9, "data": b""
    } | changes  # fmt: skip
    return write_payload(TxFields(**fields))


def call(data: bytes, **changes: Any) -> bytes:
    return payload(to=b"\xc0" * 20, value=0, data=data, **changes)


TRANSFERRING = TRANSFER + bytes(12) + b"\x5a" * 20 + (9).to_bytes(32, "big")
APPROVING = APPROVE + TRANSFERRING[4:]
OTHER = "something other than a token's transfer or approve"
FIELDS: list[Any] = [b"\x01", b"\x07", b"\x02", b"\x32", b"\x52\x08", b"\x5a" * 20, b"\x09", b"", []]
LEGACY: list[Any] = [b"\x07", b"\x32", b"\x52\x08", b"\x5a" * 20, b"\x09", b"", b"\x01", b"", b""]


def changed(fields: list[Any], index: int, value: Any) -> bytes:
    return other_rlp.encode([*fields[:index], value, *fields[index + 1 :]])


@pytest.mark.parametrize(
    "raw, why",
    [
        (payload(chain_id=2), "is for chain id 2"),
        (payload(chain_id=2, tip=None), "is for chain id 2"),
        (payload(chain_id=0, tip=None), "is for chain id 0"),
        (payload(to=b""), "creates a contract"),
        (payload(to=b"", tip=None, data=b"\x60\x00"), "creates a contract"),
        (payload(to=b"\x5a" * 21), "creates a contract"),
        (call(b"\x00"), OTHER),
        (call(TRANSFERRING[:-1]), OTHER),
        (call(TRANSFERRING + b"\0"), OTHER),
        (call(TRANSFER + b"\x01" + TRANSFERRING[5:]), OTHER),
        (call(APPROVING[:-1]), OTHER),
        (call(APPROVING + b"\0"), OTHER),
        (call(APPROVE + b"\x01" + APPROVING[5:]), OTHER),
        (call(bytes.fromhex("23b872dd") + TRANSFERRING[4:] + bytes(32)), OTHER),  # transferFrom
        (call(bytes.fromhex("39509351") + APPROVING[4:]), OTHER),  # increaseAllowance
        (call(bytes.fromhex("a457c2d7") + APPROVING[4:]), OTHER),  # decreaseAllowance
        (call(bytes.fromhex("d505accf") + bytes(7 * 32)), OTHER),  # permit
        (payload(to=b"\xc0" * 20, value=1, data=TRANSFERRING), "native coin along with a token's call"),
        (payload(to=b"\xc0" * 20, value=1, data=APPROVING), "native coin along with a token's call"),
        (payload(tip=51), "tip is above its price"),
        (b"\x02" + changed(FIELDS, 8, [[b"\x5a" * 20, [b"\0" * 32]]]), "access list"),
        (b"\x02" + changed(FIELDS, 8, b""), "access list"),
        (b"\x02" + changed(FIELDS, 1, b"\0\x07"), "leading zeros"),
        (b"\x02" + changed(FIELDS, 6, b"\0"), "leading zeros"),
        (b"\x02" + changed(FIELDS, 1, b"\x01" + bytes(8)), "more than 64 bits"),
        (b"\x02" + changed(FIELDS, 6, b"\x01" + bytes(32)), "more than 256 bits"),
        (b"\x02" + changed(FIELDS, 6, []), "a number is needed"),
        (b"\x02" + changed(FIELDS, 7, []), "a list where bytes belong"),
        (b"\x02" + other_rlp.encode([*FIELDS, b""]), "no list of 9 fields"),
        (b"\x02" + other_rlp.encode([*FIELDS, b"\x01", b"\x01", b"\x01"]), "no list of 9 fields"),
        (b"\x02" + other_rlp.encode(FIELDS) + b"\0", "follow the end"),
        (b"\x02" + other_rlp.encode(FIELDS)[:-1], "ends too soon"),
        (b"\x02", "ends too soon"),
        (b"\x02\x01", "no list of 9 fields"),
        (b"\x01" + other_rlp.encode(FIELDS), "of a kind of transaction"),
        (b"\x03" + other_rlp.encode(FIELDS), "of a kind of transaction"),
        (b"\x04" + other_rlp.encode([*FIELDS, []]), "list of authorizations is empty"),
        (b"", "of a kind of transaction"),
        (b"\x19\x01" + bytes(64), "of a kind of transaction"),
        (other_rlp.encode(LEGACY[:6]), "no list of 9 fields"),
        (changed(LEGACY, 7, b"\x01"), "signed already"),
        (changed(LEGACY, 6, b"\x25"), "is for chain id 37"),
        (b"\xf8\x00", "longer than it need be"),
        (b"\xc0" + bytes(1 << 17), "more than 131072"),
        (b"\xc1" * 20, "nested more than 4 deep"),
        (encode([[[[[[b""]]]]]]), "nested more than 4 deep"),
    ],
)  # fmt: skip
def test_what_is_not_exactly_a_payment_on_this_chain_is_not_read(raw: bytes, why: str) -> None:
    """The signer judges what it reads, so it reads nothing that it cannot tell whole."""
    with pytest.raises(UnreadablePayloadError, match=why):
        FAMILY.effects(chain(1), raw)


@pytest.mark.parametrize("amount", [0, 1, 2**256 - 1])
@pytest.mark.parametrize("tip", [None, 2])
def test_an_approval_is_read_as_one(amount: int, tip: int | None) -> None:
    raw = call(APPROVING[:-32] + amount.to_bytes(32, "big"), tip=tip)
    allowed = Allowance(contract=str(USDX.contract), spender=RECIPIENT, amount=Units(amount))
    assert FAMILY.effects(chain(1), raw) == Effects(
        movements=(), fee_max=Units(50 * 21_000), sequence=7, allowance=allowed
    )


@pytest.mark.parametrize("data", [b"\x00", TRANSFERRING, APPROVING, bytes(300)], ids=["short", "like", "alike", "long"])
@pytest.mark.parametrize("tip", [None, 2])
def test_what_a_stranger_is_told_is_a_call(data: bytes, tip: int | None) -> None:
    """Even where it is spelled like a token's call: what code that nobody registered does cannot be told."""
    told = Call(to_address=RECIPIENT, data=data, value=Units(9))
    assert FAMILY.effects(chain(1), payload(data=data, tip=tip)) == Effects(
        movements=(), fee_max=Units(50 * 21_000), sequence=7, call=told
    )


@pytest.mark.parametrize("tip", [None, 2])
def test_a_call_as_long_as_the_signer_takes_it_is_read(tip: int | None) -> None:
    """What can be planned and asked for must be readable there."""
    data = b"\x07" * (PAYLOAD_BYTES_MAX - 200)
    raw = payload(data=data, tip=tip)
    assert PAYLOAD_BYTES_MAX - 200 < len(raw) <= PAYLOAD_BYTES_MAX
    done = FAMILY.effects(chain(1), raw).call
    assert done is not None
    assert done.data == data


def test_a_chain_without_an_id_has_no_payloads() -> None:
    with pytest.raises(UnreadablePayloadError, match="is None"):
        FAMILY.effects(chain(None), payload())


@pytest.mark.campaign
@settings(max_examples=CASES, deadline=None)
@given(seed=st.integers(0, 2**32), tip=st.sampled_from([None, 2]))
def test_a_payload_that_was_tampered_with_is_unreadable_or_tells_of_it(seed: int, tip: int | None) -> None:
    """Flipped, cut and inserted bytes: what is still read is written back as the very same bytes."""
    random = Random(seed)
    raw = bytearray(call(random.choice([TRANSFERRING, APPROVING, b"\x01" * 100]), tip=tip))
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(raw))
        match random.randrange(3):
            case 0:
                raw[at] ^= random.randint(1, 255)
            case 1:
                del raw[at]
            case _:
                raw.insert(at, random.randrange(256))
    try:
        fields = read_payload(bytes(raw))
    except UnreadablePayloadError:
        return
    assert write_payload(fields) == bytes(raw)


def depth(item: Any) -> int:
    return 1 + max(map(depth, item), default=0) if isinstance(item, list) else 0


nested = st.recursive(st.binary(max_size=80), lambda inner: st.lists(inner, max_size=4), max_leaves=12)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(item=nested)
def test_lists_are_encoded_as_the_other_library_does(item: Any) -> None:
    raw = encode(item)
    assert raw == other_rlp.encode(item)
    if depth(item) <= 4:
        assert decode(raw) == item
    else:
        with pytest.raises(RlpError, match="nested more than"):
            decode(raw)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(raw=st.binary(max_size=40))
def test_bytes_are_decoded_exactly_when_they_are_canonical(raw: bytes) -> None:
    """Whatever is decoded is encoded to the same bytes, so there is one spelling of everything."""
    try:
        item = decode(raw)
    except RlpError:
        return
    assert encode(item) == raw


def test_a_signature_of_somebody_else_is_refused() -> None:
    """It would be another account that pays."""
    step = Step(
        sender=WALLET.address,
        to_address=RECIPIENT,
        token=NATIVE,
        amount=Units(1),
        fee=Fee(limit=21_000, price=5, tip=1),
    )
    tx = unsigned(step, 0, 1)
    digest = FAMILY.digest(tx.payload)
    good = WALLET.sign(digest)
    upper = (int.from_bytes(ORDER, "big") - int.from_bytes(good[32:64], "big")).to_bytes(32, "big")
    other = unsigned(step, 1, 1)
    refused = [
        (tx, Wallet("other").sign(digest), "not by"),
        (other, good, "not by"),
        (tx, good[:64] + bytes([good[64] ^ 1]), "not by"),
        (tx, good[:32] + upper + bytes([good[64] ^ 1]), "upper half"),
        (tx, good[:64] + b"\x02", "recovery id"),
        (tx, good[:64] + bytes([27 + good[64]]), "recovery id"),
        (tx, good[:64], "65 bytes"),
        (tx, bytes(65), "is none"),
        (tx, b"\xff" * 32 + good[32:], "is none"),
    ]
    for unsigned_tx, signature, why in refused:
        with pytest.raises(SignatureError, match=why):
            FAMILY.seal(unsigned_tx, signature)
    assert FAMILY.seal(tx, good).tx_id.startswith("0x")


def test_what_is_sealed_must_be_readable() -> None:
    """Even with a right signature."""
    raw = b"\x01" + other_rlp.encode(FIELDS)
    tx = UnsignedTx(sender=WALLET.address, sequence=7, payload=raw, fee=Fee(limit=1, price=1))
    with pytest.raises(UnreadablePayloadError):
        FAMILY.seal(tx, WALLET.sign(FAMILY.digest(raw)))


def test_a_step_without_a_sequence_cannot_be_prepared() -> None:
    step = Step(sender=WALLET.address, to_address=RECIPIENT, token=NATIVE, amount=Units(1), fee=Fee(limit=1, price=1))
    with pytest.raises(ValueError, match="needs a sequence"):
        unsigned(step, None, 1)
