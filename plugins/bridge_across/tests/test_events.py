"""Deposits and fills as the two chains show them: recorded ones, and ones with something changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.plugin import BridgeDeposit, BridgeFill, ExchangeRefusedError, FoundLog, Log, LogQuery, Units
from cambist_bridge_across.abi import DEPOSITED_TOPIC, FILLED_TOPIC

from .samples import (
    ARBITRUM,
    BSC,
    CHAINS,
    ETHEREUM,
    STRANGER,
    TRON,
    events,
    log,
    receipt,
    recorded,
    side,
    spoke_pool,
    wrapped,
)

RECEIPT = receipt(recorded("deposit_ethereum_01456be6d5.json")["receipt"])
CUSTOMER = "0x6b21bb0D79C543B13DEE153700788D2c008633E5"
DEPOSIT = BridgeDeposit(
    deposit_id="4024312",
    tx_id="0x01456be6d500a21b91941e569df54ec4760868d4b51ba9ef2ddab59d33d3c21f",
    units=Units(422_866_751),
    chain="arbitrum",
    contract=side(ARBITRUM, "USDT").token.contract,
    units_out=Units(422_820_007),
    recipient=CUSTOMER,
    refund_to=CUSTOMER,
    refund_contract=side(ETHEREUM, "USDT").token.contract,
    fill_deadline=1_782_476_795,
)

FILL = recorded("fill_ethereum_7eea022c9c.json")["receipt"]
FOUND = FoundLog(
    tx_id=FILL["transactionHash"],
    height=int(FILL["blockNumber"], 16),
    block_hash=FILL["blockHash"],
    log=log(FILL["logs"][0], 0),
)
PAID = 39_321_018_069_126_372
FILLED = BridgeDeposit(
    deposit_id="3122149",
    tx_id="0x" + "00" * 32,
    units=Units(39_650_000_000_000_000),
    chain="ethereum",
    contract=None,
    units_out=Units(PAID),
    recipient="0x23fb2D515C9d3B412b6ada442403504A26b96071",
    refund_to="0x23fb2D515C9d3B412b6ada442403504A26b96071",
    refund_contract=wrapped(ARBITRUM),
    fill_deadline=1_740_517_583,
)


def deposit(told=RECEIPT, chains=CHAINS, where=ETHEREUM):
    return events().deposit(where, told, chains)


def fill(found=FOUND, of=FILLED, where=ETHEREUM, origin=ARBITRUM):
    return events().fill(where, of, origin, found)


def with_log(changed: Log, number: int = 1):
    logs = list(RECEIPT.logs)
    logs[number] = changed
    return replace(RECEIPT, logs=tuple(logs))


def test_a_recorded_deposit_is_told():
    assert deposit() == DEPOSIT


def test_a_recorded_fill_of_coin_is_told_with_what_was_paid():
    assert fill() == BridgeFill(deposit_id="3122149", tx_id=FOUND.tx_id, units=Units(PAID))
    # What the contract unwrapped for the recipient, in the same transaction.
    assert int(FILL["logs"][2]["data"], 16) == PAID


def test_a_fill_is_found_by_chain_and_number():
    assert events().fill_query(ETHEREUM, FILLED, ARBITRUM, 100, 200) == LogQuery(
        address=spoke_pool(ETHEREUM), topics=FOUND.log.topics[:3], first=100, last=200
    )
    for where, origin in ((TRON, ARBITRUM), (ETHEREUM, TRON)):
        with pytest.raises(ExchangeRefusedError):
            events().fill_query(where, FILLED, origin, 1, 2)


def test_what_is_no_deposit_of_ours_is_none():
    logs = RECEIPT.logs
    assert deposit(replace(RECEIPT, succeeded=False)) is None
    assert deposit(replace(RECEIPT, logs=())) is None
    assert deposit(replace(RECEIPT, logs=(logs[0],))) is None
    assert deposit(replace(RECEIPT, logs=(*logs, logs[1]))) is None
    assert deposit(with_log(replace(logs[1], address=STRANGER))) is None
    assert deposit(where=ARBITRUM) is None
    assert deposit(where=TRON) is None
    assert deposit(chains={"ethereum": ETHEREUM, "bsc": BSC}) is None


def test_a_log_of_somebody_else_beside_it_does_no_harm():
    other = replace(RECEIPT.logs[1], address=STRANGER)
    assert deposit(replace(RECEIPT, logs=(*RECEIPT.logs, other))) == DEPOSIT
    lower = replace(RECEIPT.logs[1], address=RECEIPT.logs[1].address.lower())
    assert deposit(with_log(lower)) == DEPOSIT


def word(told: Log, number: int, value: bytes) -> Log:
    """Return a log with one word of its data replaced."""
    return replace(told, data=told.data[: number * 32] + value + told.data[number * 32 + 32 :])


LONG = b"\x01" + bytes(31)  # an address of another kind of chain


@pytest.mark.parametrize("number", [0, 1, 7], ids=["input token", "output token", "recipient"])
def test_a_deposit_for_another_kind_of_chain_is_none(number):
    assert deposit(with_log(word(RECEIPT.logs[1], number, LONG))) is None


def test_a_deposit_of_wrapped_coin_is_for_coin():
    weth = bytes(12) + bytes.fromhex("82af49447d8a07e3bd95bd0d56f35241523fbab1")
    assert deposit(with_log(word(RECEIPT.logs[1], 1, weth))) == replace(DEPOSIT, contract=None)


def test_a_fill_of_another_deposit_is_none():
    for changes in (
        {"deposit_id": "3122150"},
        {"units": FILLED.units + 1},
        {"units_out": FILLED.units_out - 1},
        {"recipient": STRANGER},
        {"refund_to": STRANGER},
        {"refund_contract": STRANGER},
        {"contract": side(ETHEREUM, "USDT").token.contract},
        {"chain": "arbitrum"},
        {"fill_deadline": FILLED.fill_deadline + 1},
    ):
        assert fill(of=replace(FILLED, **changes)) is None
    assert fill(origin=BSC) is None
    assert fill(where=ARBITRUM) is None
    assert fill(replace(FOUND, log=replace(FOUND.log, address=STRANGER))) is None
    assert fill(replace(FOUND, log=replace(FOUND.log, topics=FOUND.log.topics[:3]))) is None


WORDS = {
    "input token": (0, None),
    "output token": (1, None),
    "units": (2, None),
    "output": (3, None),
    "deadline": (5, None),
    "depositor": (8, None),
    "recipient": (9, None),
    "message": (10, None),
    "updated recipient": (11, None),
    "updated message": (12, None),
}


@pytest.mark.parametrize("number", [one for one, _ in WORDS.values()], ids=WORDS.keys())
def test_a_fill_that_says_something_else_of_the_deposit_is_none(number):
    for value in (bytes(31) + b"\x07", LONG):
        assert fill(replace(FOUND, log=word(FOUND.log, number, value))) is None


def test_what_was_paid_is_what_the_depositor_signed_last():
    less = replace(FOUND, log=word(FOUND.log, 13, (PAID - 5).to_bytes(32, "big")))
    assert fill(less).units == PAID - 5


@st.composite
def changed(draw, told: Log) -> Log:
    """Return a log with something changed in its topics or its data."""
    topics, data = [bytearray(topic) for topic in told.topics], bytearray(told.data)
    target = draw(st.sampled_from([*topics, data, data, data]))
    at = draw(st.integers(0, len(target) - 1))
    match draw(st.sampled_from(["bit", "byte", "word", "cut", "add", "topics"])):
        case "bit":
            target[at] ^= 1 << draw(st.integers(0, 7))
        case "byte":
            target[at] = draw(st.integers(0, 255))
        case "word":
            target[at // 32 * 32 : at // 32 * 32 + 32] = draw(st.sampled_from([bytes(32), b"\xff" * 32, LONG]))
        case "cut":
            del target[at:]
        case "add":
            target += draw(st.binary(min_size=1, max_size=40))
        case _:
            topics = draw(st.permutations(topics))[: draw(st.integers(0, len(topics)))]
    return replace(told, topics=tuple(bytes(topic) for topic in topics), data=bytes(data))


@settings(max_examples=300, deadline=None)
@given(told=changed(RECEIPT.logs[1]))
def test_a_changed_log_of_a_deposit_tells_something_else_or_nothing(told):
    found = deposit(with_log(told))
    if found is None:
        return
    # When it was quoted, and until when it is exclusive to whom, are not told.
    unseen = {4, 6, 8}
    words = [told.data[at : at + 32] for at in range(0, len(told.data), 32)]
    usual = [RECEIPT.logs[1].data[at : at + 32] for at in range(0, len(RECEIPT.logs[1].data), 32)]
    assert len(words) == len(usual)
    differing = {number for number, pair in enumerate(zip(words, usual, strict=True)) if pair[0] != pair[1]}
    assert (found == DEPOSIT) == (differing <= unseen and told.topics == RECEIPT.logs[1].topics)


@settings(max_examples=300, deadline=None)
@given(told=changed(FOUND.log))
def test_a_changed_log_of_a_fill_is_that_fill_or_none(told):
    found = fill(replace(FOUND, log=told))
    if found is None:
        return
    assert told.topics[:3] == FOUND.log.topics[:3]
    assert found.units == int.from_bytes(told.data[13 * 32 : 14 * 32], "big")
    # Who filled it, where that money is paid back, and how: nothing of that is ours.
    unseen = {4, 6, 7, 13, 14}
    assert all(
        told.data[number * 32 : number * 32 + 32] == FOUND.log.data[number * 32 : number * 32 + 32]
        for number in range(15)
        if number not in unseen
    )


@settings(max_examples=100, deadline=None)
@given(
    topics=st.lists(st.binary(max_size=40), max_size=4),
    data=st.binary(max_size=500),
    head=st.sampled_from([DEPOSITED_TOPIC, FILLED_TOPIC]),
)
def test_any_log_is_none_and_never_breaks_it(topics, data, head):
    told = Log(address=spoke_pool(ETHEREUM), topics=(head, *topics), data=data, position="log:0")
    assert deposit(replace(RECEIPT, logs=(told,))) is None
    assert fill(replace(FOUND, log=told)) is None
