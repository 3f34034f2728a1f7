"""Calldata that was tampered with reads as what it does, or is refused; nothing else comes of it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from cambist.plugin import Call, Units, UnreadablePayloadError
from cambist_swap_1inch.addresses import spell

from .conftest import ETHEREUM, SENDER
from .server import NATIVE, ROUTER, TAIL, TYPES, ZERO, calldata
from .test_reader import SWAPS, USUAL, read, real

pytestmark = pytest.mark.slow

CONTRACTS = {spell(NATIVE): None} | {one.contract: one.contract for one in ETHEREUM.tokens if one.contract}

relaxed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)

words = st.integers(0, 2**256 - 1) | st.integers(0, 2**160 - 1) | st.integers(0, 400) | st.sampled_from([2**255, 2**64])
positions = st.integers(0, 4000)
# Made once: whatever is made at a draw is checked again at each.
kinds = st.sampled_from(["flip", "word", "cut", "more", "insert", "swap"])
bits, places, pieces = st.integers(0, 7), st.integers(0, 9), st.binary(min_size=1, max_size=64)


@st.composite
def edits(draw):
    """Return what changes some bytes: a flip, a word, a cut, a repetition, an insertion."""

    def flip(data, at, bit):
        at %= max(1, len(data))
        return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :] if data else data

    def word(data, at, value):
        at = 4 + 32 * (at % max(1, len(data) // 32))
        return data[:at] + value.to_bytes(32, "big") + data[at + 32 :]

    at = draw(positions)
    kind = draw(kinds)
    if kind == "flip":
        bit = draw(bits)
        return lambda data: flip(data, at, bit)
    if kind == "word":
        value = draw(words)
        return lambda data: word(data, at, value)
    if kind == "cut":
        return lambda data: data[: at % (len(data) + 1)]
    if kind == "more":
        more = draw(pieces)
        return lambda data: data + more
    if kind == "insert":
        more = draw(pieces)
        return lambda data: data[: at % (len(data) + 1)] + more + data[at % (len(data) + 1) :]
    to = draw(places)
    return lambda data: word(data, to, int.from_bytes(data[4 + at % 288 :][:32], "big"))


def told(effects, codec, call):
    """Assert that the effects are what the bytes say, that these are canonical, and return the tokens' addresses."""
    values = codec.decode(TYPES, call.data[4:])
    written = bytes.fromhex("07ed2379") + codec.encode(TYPES, values)
    assert call.data[: len(written)] == written
    assert len(call.data) - len(written) in {0, 4}
    src, dst, _, receiver, amount, amount_min, flags = values[1]
    assert flags == 0
    assert effects.sold == amount > 0
    assert effects.bought_min == amount_min > 0
    assert effects.recipient == (SENDER if receiver == ZERO else spell(receiver))
    return spell(src), spell(dst)


def described(data, sender):
    """Return the words that count: not the executor, who gets what is sold, the executor's data, whose key it was.

    No recipient is the sender.
    """
    recipient = data[132:164] if any(data[132:164]) else bytes(12) + bytes.fromhex(sender[2:])
    return data[36:100] + recipient + data[164:260]


@relaxed
@given(st.lists(edits(), min_size=1, max_size=4), st.sampled_from([0, 1, 5_000_000]))
@example([lambda data: data], 0)
def test_a_changed_call_is_refused_or_read_as_it_is(reader, codec, changes, value):
    data = calldata(**USUAL)
    for change in changes:
        data = change(data)
    call = Call(to_address=ROUTER, data=data, value=Units(value))
    try:
        effects = read(reader, call)
    except UnreadablePayloadError:
        return
    src, dst = told(effects, codec, call)
    assert (effects.sold_contract, effects.bought_contract) == (CONTRACTS[src], CONTRACTS[dst])
    assert value == (0 if effects.sold_contract else effects.sold)


@relaxed
@given(st.sampled_from(SWAPS), edits())
def test_a_changed_real_swap_is_refused_or_read_as_another_one(reader, name, change):
    _, on, sender, call = real(name)
    data = change(call.data)
    assume(data != call.data)
    before = read(reader, call, on, sender)
    try:
        after = read(reader, Call(to_address=call.to_address, data=data, value=call.value), on, sender)
    except UnreadablePayloadError:
        return
    assert (after == before) == (described(data, sender) == described(call.data, sender))


@relaxed
@given(
    src=st.sampled_from(sorted(CONTRACTS)),
    dst=st.sampled_from(sorted(CONTRACTS)),
    amount=st.integers(1, 2**256 - 1),
    amount_min=st.integers(1, 2**256 - 1),
    receiver=st.binary(min_size=20, max_size=20),
    data=st.binary(max_size=300),
    tail=st.sampled_from([b"", TAIL]),
)
def test_what_is_written_is_what_is_read(reader, src, dst, amount, amount_min, receiver, data, tail):
    assume(src != dst)
    written = calldata(src, dst, "0x" + receiver.hex(), amount, amount_min, data=data, tail=tail)
    native = CONTRACTS[src] is None
    effects = read(reader, Call(to_address=ROUTER, data=written, value=Units(amount if native else 0)))
    assert (effects.sold_contract, effects.bought_contract) == (CONTRACTS[src], CONTRACTS[dst])
    assert (effects.sold, effects.bought_min) == (amount, amount_min)
    assert effects.recipient == (spell("0x" + receiver.hex()) if any(receiver) else SENDER)
    assert effects.spender == (None if native else ROUTER)


@relaxed
@given(st.binary(max_size=700))
def test_noise_is_refused(reader, data):
    with pytest.raises(UnreadablePayloadError):
        read(reader, Call(to_address=ROUTER, data=bytes.fromhex("07ed2379") + data))


def test_each_byte_counts_or_is_free(reader):
    data = calldata(**USUAL)
    usual = read(reader, Call(to_address=ROUTER, data=data))
    free = {*range(16, 36), *range(112, 132), *range(323, 324 + 75), *range(len(data) - 4, len(data))}
    for at in range(len(data)):
        for bit in range(8):
            changed = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
            try:
                effects = read(reader, Call(to_address=ROUTER, data=changed))
            except UnreadablePayloadError:
                continue
            assert (effects == usual) == (at in free), at
