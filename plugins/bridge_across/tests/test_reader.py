"""What a deposit's call does, read from its bytes: all of it, or nothing."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.plugin import Call, ExchangeEffects, Token, Units, UnreadablePayloadError
from cambist_bridge_across.addresses import ZERO
from cambist_bridge_across.codec import codec
from cambist_bridge_across.config import AcrossConfig
from cambist_bridge_across.reader import EXCLUSIVITY_OFFSET_MAX, FILL_S_MAX, QUOTE_AGE_S_MAX, AcrossReader

from .samples import (
    ARBITRUM,
    BSC,
    CHAINS,
    DEPOSIT,
    ETHEREUM,
    RELAYER,
    STRANGER,
    TRON,
    WALLET,
    call,
    chain,
    reader,
    recorded,
    side,
    spoke_pool,
    wrapped,
)

EFFECTS = ExchangeEffects(
    sold_contract=side(ETHEREUM, "USDT").token.contract,
    sold=Units(100_000_000),
    spender=spoke_pool(ETHEREUM),
    chain="arbitrum",
    bought_contract=side(ARBITRUM, "USDT").token.contract,
    bought_min=Units(99_900_000),
    recipient=WALLET,
    refund_to=WALLET,
    valid_until=1_780_007_200,
)
ETHER = replace(
    DEPOSIT, input_token=wrapped(ETHEREUM), output_token=wrapped(ARBITRUM), input_amount=10**17, output_amount=10**16
)
QUOTED = DEPOSIT.quote_timestamp
WRAPPED = chain("ethereum", 1, "ETH", ("WETH", wrapped(ETHEREUM), 18))


def read(one: Call, where=ETHEREUM, chains=CHAINS, **config):
    return reader(**config).read(where, WALLET, one, chains)


def test_a_deposit_of_tokens_reads_as_it_was_made():
    assert read(call()) == EFFECTS


def test_a_deposit_of_coin_reads_as_coin_on_both_sides():
    told = read(call(ETHER, value=10**17))
    assert (told.sold_contract, told.sold, told.spender) == (None, 10**17, None)
    assert (told.bought_contract, told.bought_min) == (None, 10**16)


def test_wrapped_coin_without_any_coin_is_a_token_and_must_be_registered():
    with pytest.raises(UnreadablePayloadError, match="not registered"):
        read(call(ETHER))
    told = read(call(ETHER), where=WRAPPED, chains=CHAINS | {"ethereum": WRAPPED})
    assert (told.sold_contract, told.spender) == (wrapped(ETHEREUM), spoke_pool(ETHEREUM))


def test_who_gets_it_and_who_gets_it_back_is_told_as_the_call_says():
    told = read(call(recipient=STRANGER, depositor=RELAYER))
    assert (told.recipient, told.refund_to) == (STRANGER, RELAYER)


def test_a_recorded_deposit_reads_as_its_receipt_shows():
    transaction = recorded("deposit_ethereum_01456be6d5.json")["transaction"]
    data = bytes.fromhex(transaction["input"][2:])
    one = Call(to_address=transaction["to"], data=data)
    with pytest.raises(UnreadablePayloadError, match="no call of depositV3"):
        read(one)
    # The same arguments in the same words, of the function that takes addresses.
    told = read(Call(to_address=transaction["to"], data=bytes.fromhex("7b939232") + data[4:]))
    assert told == ExchangeEffects(
        sold_contract=side(ETHEREUM, "USDT").token.contract,
        sold=Units(422_866_751),
        spender=spoke_pool(ETHEREUM),
        chain="arbitrum",
        bought_contract=side(ARBITRUM, "USDT").token.contract,
        bought_min=Units(422_820_007),
        recipient="0x6b21bb0D79C543B13DEE153700788D2c008633E5",
        refund_to="0x6b21bb0D79C543B13DEE153700788D2c008633E5",
        valid_until=1_782_476_795,
    )


def test_calls_of_other_contracts_and_on_chains_without_across_are_not_its_own():
    assert read(Call(to_address=STRANGER, data=call().data)) is None
    assert read(Call(to_address=spoke_pool(ARBITRUM), data=call().data)) is None
    assert read(call(), where=TRON) is None
    assert read(call(), where=chain("other", 999, "ETH")) is None
    assert reader().spenders(TRON) == frozenset()


def test_the_spokepool_of_a_chain_is_the_only_spender():
    assert reader().spenders(ETHEREUM) == {spoke_pool(ETHEREUM)}
    table = {"ethereum": {"spoke_pool": STRANGER}}
    own = configured(chains=table)
    assert own.spenders(ETHEREUM) == {STRANGER}
    assert own.read(ETHEREUM, WALLET, call(), CHAINS) is None
    assert own.read(ETHEREUM, WALLET, Call(to_address=STRANGER, data=call().data), CHAINS).spender == STRANGER


def configured(**table):
    return AcrossReader(msgspec.convert(table, AcrossConfig))


REFUSED = {
    "a message": {"message": b"\x01"},
    "no recipient": {"recipient": ZERO},
    "no depositor": {"depositor": ZERO},
    "no output token": {"output_token": ZERO},
    "nothing in": {"input_amount": 0},
    "nothing out": {"output_amount": 0},
    "an unknown chain": {"destination_chain_id": 999},
    "no chain": {"destination_chain_id": 0},
    "the same chain": {"destination_chain_id": 1},
    "a token that is not sold": {"input_token": STRANGER},
    "a token that is not bought": {"output_token": STRANGER},
    "another chain's token": {"output_token": DEPOSIT.input_token},
    "a relayer without a time": {"exclusive_relayer": RELAYER},
    "a time without a relayer": {"exclusivity": 60},
    "seconds beyond the deadline": {"exclusive_relayer": RELAYER, "exclusivity": 7201},
    "a year": {"exclusive_relayer": RELAYER, "exclusivity": EXCLUSIVITY_OFFSET_MAX},
    "a moment beyond the deadline": {"exclusive_relayer": RELAYER, "exclusivity": DEPOSIT.fill_deadline + 1},
    "for ever": {"exclusive_relayer": RELAYER, "exclusivity": 2**32 - 1},
    "a deadline before the quote": {"fill_deadline": QUOTED},
    "a deadline that never comes": {"fill_deadline": 2**32 - 1},
    "a deadline too far": {"fill_deadline": QUOTED + QUOTE_AGE_S_MAX + FILL_S_MAX + 1},
}


@pytest.mark.parametrize("changes", REFUSED.values(), ids=REFUSED.keys())
def test_a_deposit_is_refused_with(changes):
    with pytest.raises(UnreadablePayloadError):
        read(call(**changes))


@pytest.mark.parametrize("exclusivity", [1, 7200, QUOTED + 60, DEPOSIT.fill_deadline])
def test_an_exclusive_relayer_is_nobody_elses_matter_until_the_deadline(exclusivity):
    assert read(call(exclusive_relayer=RELAYER, exclusivity=exclusivity)) == EFFECTS


def test_the_coin_that_goes_along_is_the_whole_deposit_or_nothing():
    for value in (1, 10**17 - 1, 10**17 + 1, 2**255):
        with pytest.raises(UnreadablePayloadError, match="coin"):
            read(call(ETHER, value=value))
    with pytest.raises(UnreadablePayloadError, match="coin"):
        read(call(value=DEPOSIT.input_amount))


def test_other_functions_cannot_be_read():
    for selector in ("ad5425c6", "7aef642c", "8b15788e", "babb6aac", "00000000"):
        with pytest.raises(UnreadablePayloadError):
            read(Call(to_address=spoke_pool(ETHEREUM), data=bytes.fromhex(selector) + call().data[4:]))


def test_an_integrators_id_is_read_exactly_where_it_is_configured():
    tail = bytes.fromhex("1dc0de00a1")
    assert read(call(tail=tail), integrator_id="0x00A1") == EFFECTS
    assert read(call(), integrator_id="0x00a1") == EFFECTS
    for one, config in (
        (tail, {}),
        (bytes.fromhex("1dc0de00a2"), {"integrator_id": "0x00a1"}),
        (tail * 2, {"integrator_id": "0x00a1"}),
    ):
        with pytest.raises(UnreadablePayloadError):
            read(call(tail=one), **config)


def test_of_two_chains_with_one_number_the_live_one_is_meant():
    simulated = replace(ARBITRUM, id="simulated", availability="simulated")
    assert read(call(), chains={"simulated": simulated, **CHAINS}) == EFFECTS
    assert read(call(), chains={"simulated": simulated}).chain == "simulated"
    with pytest.raises(UnreadablePayloadError):
        read(call(), chains=CHAINS | {"twin": replace(ARBITRUM, id="twin")})
    not_evm = replace(ARBITRUM, is_evm=False)
    with pytest.raises(UnreadablePayloadError):
        read(call(), chains={"arbitrum": not_evm})


def test_registered_tokens_are_told_as_they_are_registered():
    lower = Token(symbol="USDT", contract=DEPOSIT.output_token.lower(), decimals=6, label="USDT")
    there = replace(ARBITRUM, tokens=(ARBITRUM.native, lower))
    assert read(call(), chains={"arbitrum": there}).bought_contract == lower.contract


def test_a_chain_with_other_decimals_reads_alike():
    token = side(BSC, "USDT").token.contract
    told = read(call(destination_chain_id=56, output_token=token, output_amount=99 * 10**18))
    assert (told.chain, told.bought_contract, told.bought_min) == ("bsc", token, 99 * 10**18)


WORDS = st.sampled_from(
    [bytes(32), b"\xff" * 32, (1).to_bytes(32, "big"), (32).to_bytes(32, "big"), (384).to_bytes(32, "big")]
)
# Made once: whatever is made at a draw is checked again at each.
COUNTS, BITS, LENGTHS = st.integers(1, 3), st.integers(0, 7), st.integers(1, 40)
KINDS = st.sampled_from(["byte", "bit", "word", "cut", "add", "drop", "swap"])
ONE_BYTE, SOME_BYTES = st.binary(min_size=1, max_size=1), st.binary(min_size=1, max_size=40)


@st.composite
def mutated(draw) -> bytes:
    """Return a deposit's bytes with a few of them changed, cut, repeated or added."""
    data = bytearray(call().data)
    for _ in range(draw(COUNTS)):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(KINDS):
            case "byte":
                data[at : at + 1] = draw(ONE_BYTE)
            case "bit" if data:
                data[at] ^= 1 << draw(BITS)
            case "word":
                start = 4 + (at - 4) // 32 * 32
                data[start : start + 32] = draw(WORDS)
            case "cut":
                del data[at:]
            case "add":
                data += draw(SOME_BYTES)
            case "drop":
                del data[at : at + draw(LENGTHS)]
            case _:
                start = 4 + (at - 4) // 32 * 32
                data[start : start + 64] = data[start + 32 : start + 64] + data[start : start + 32]
    return bytes(data)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(data=mutated(), value=st.sampled_from([0, 0, 0, 1, DEPOSIT.input_amount]))
def test_changed_bytes_read_as_they_were_or_differently_or_not_at_all(data, value):
    try:
        told = read(Call(to_address=spoke_pool(ETHEREUM), data=data, value=Units(value)))
    except UnreadablePayloadError:
        return
    if (data, value) == (call().data, 0):
        assert told == EFFECTS
        return
    again = codec().read_deposit_call(data)
    assert codec().deposit_call(again) == data
    assert not again.message
    # Nothing but what is not money can differ unseen: when it was quoted, and who may fill it first.
    unseen = {"quote_timestamp": QUOTED, "exclusive_relayer": ZERO, "exclusivity": 0}
    if told == EFFECTS:
        assert codec().deposit_call(replace(again, **unseen)) == call().data


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=600))
def test_any_bytes_are_refused_and_never_break_it(data):
    for head in (b"", call().data[:4]):
        with pytest.raises(UnreadablePayloadError):
            read(Call(to_address=spoke_pool(ETHEREUM), data=head + data))
