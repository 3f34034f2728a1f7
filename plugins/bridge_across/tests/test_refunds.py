"""What a receipt gives back of deposits that nobody filled, and what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.plugin import BridgeDeposit, ExchangeRefusedError, LogQuery, Receipt, Units
from cambist_bridge_across.abi import FILLED, FILLED_TOPIC, REFUNDED_TOPIC, TRANSFER_TOPIC

from .samples import (
    ARBITRUM,
    ETHEREUM,
    RELAYER,
    STRANGER,
    TRON,
    WALLET,
    claimed_log,
    event_log,
    events,
    refunded_log,
    side,
    spoke_pool,
    transfer_log,
    word,
    wrapped,
)
from .test_events import DEPOSIT as RECORDED
from .test_events import FOUND, RECEIPT, changed

pytestmark = pytest.mark.slow

POOL, USDT, WETH = spoke_pool(ETHEREUM), side(ETHEREUM, "USDT").token.contract, wrapped(ETHEREUM)
DEPOSIT = replace(RECORDED, refund_to=WALLET)
PAID = transfer_log(USDT, POOL, WALLET, 500)
LEAF = refunded_log(POOL, USDT, [(RELAYER, 70), (WALLET, 500)])


def receipt(*logs) -> Receipt:
    return replace(RECEIPT, logs=logs)


def filled(kind: int = 2, **changes):
    """Return the log of a slow fill that paid the wallet as much as the bundle."""
    told = {"token": USDT, "to": WALLET, "units": 500, "pool": POOL} | changes
    token, to = word(told["token"]), word(told["to"])
    deposit = (word(STRANGER), token, 501, 500, 0, 42161, 7, 1_800_000_000, 0, bytes(32), bytes(32), word(STRANGER))
    paid = (to, bytes(32), told["units"], kind)
    return event_log(FILLED, FILLED_TOPIC, told["pool"], 0, *deposit, word(WALLET), bytes(32), paid)


def refund(told, of: BridgeDeposit = DEPOSIT, where=ETHEREUM):
    return events().refund(where, of, told)


def test_a_refund_is_found_by_the_transfer_from_the_pool():
    assert events().refund_query(ETHEREUM, DEPOSIT, 100, 200) == LogQuery(
        address=USDT, topics=(TRANSFER_TOPIC, word(POOL), word(WALLET)), first=100, last=200
    )
    for where, of in ((TRON, DEPOSIT), (ETHEREUM, replace(DEPOSIT, refund_contract=None))):
        with pytest.raises(ExchangeRefusedError):
            events().refund_query(where, of, 1, 2)


def test_a_refund_is_told_with_its_sum_whatever_the_deposit_was_of():
    assert refund(receipt(PAID, LEAF)) == 500
    assert refund(receipt(PAID, LEAF), replace(DEPOSIT, units=Units(1), deposit_id="1")) == 500
    twice = refunded_log(POOL, USDT, [(WALLET, 200), (RELAYER, 0), (WALLET, 300)])
    halves = [transfer_log(USDT, POOL, WALLET, units) for units in (200, 300)]
    assert refund(receipt(*halves, twice)) == 500
    assert refund(receipt(PAID, LEAF, PAID, refunded_log(POOL, USDT, [(WALLET, 500)], leaf=4))) == 1000


def test_what_goes_on_beside_it_does_no_harm():
    others = (
        transfer_log(USDT, POOL, RELAYER, 70),
        transfer_log(USDT, STRANGER, WALLET, 9),
        transfer_log(WETH, POOL, WALLET, 9),
        refunded_log(POOL, WETH, [(WALLET, 9)]),
        refunded_log(STRANGER, USDT, [(WALLET, 9)]),
    )
    assert refund(receipt(PAID, LEAF, *others)) == 500
    assert refund(receipt(*others, replace(PAID, address=USDT.lower()), replace(LEAF, address=POOL.lower()))) == 500
    # The relayer is refused by the token, and we are not.
    assert refund(receipt(PAID, refunded_log(POOL, USDT, [(RELAYER, 70), (WALLET, 500)], deferred=True))) == 500
    assert refund(receipt(PAID, refunded_log(POOL, USDT, [(WALLET, 500)], returned=10**12))) == 500


def test_a_slow_fill_beside_a_bundle_is_told_apart():
    assert refund(receipt(filled(), PAID, PAID, LEAF)) == 500
    assert refund(receipt(PAID, LEAF, filled(units=9), transfer_log(USDT, POOL, WALLET, 9))) == 500
    # What others got, from others, of something else, or as coin, was no transfer to the wallet.
    for other in ({"to": RELAYER}, {"pool": STRANGER}, {"token": WETH}, {"kind": 0}, {"kind": 1}):
        assert refund(receipt(filled(**other), PAID, LEAF)) == 500
        assert refund(receipt(filled(**other), PAID, PAID, LEAF)) is None
    of_coin = replace(DEPOSIT, refund_contract=WETH)
    wrapped_back = transfer_log(WETH, POOL, WALLET, 500), refunded_log(POOL, WETH, [(WALLET, 500)])
    assert refund(receipt(filled(token=WETH), *wrapped_back), of_coin) == 500


def test_a_refund_that_the_token_had_refused_is_one_when_the_depositor_claims_it():
    claimed = claimed_log(POOL, USDT, WALLET, 500, by=WALLET)
    assert refund(receipt(PAID, claimed)) == 500
    assert refund(receipt(PAID, claimed, PAID, LEAF)) == 1000
    assert refund(receipt(filled(), PAID, PAID, claimed)) == 500
    assert refund(receipt(claimed)) is None
    assert refund(receipt(transfer_log(USDT, POOL, WALLET, 499), claimed)) is None


def test_what_somebody_else_claims_and_gives_away_is_no_refund_and_hides_none():
    given = claimed_log(POOL, USDT, WALLET, 9, by=STRANGER)
    gift = transfer_log(USDT, POOL, WALLET, 9)
    assert refund(receipt(gift, given)) is None
    assert refund(receipt(gift, given, PAID, LEAF)) == 500
    assert refund(receipt(given, PAID, LEAF)) is None
    for other in (
        claimed_log(STRANGER, USDT, WALLET, 9, by=STRANGER),
        claimed_log(POOL, WETH, WALLET, 9, by=STRANGER),
        claimed_log(POOL, USDT, STRANGER, 9, by=WALLET),
        replace(given, data=b""),
    ):
        assert refund(receipt(other, PAID, LEAF)) == 500
        assert refund(receipt(other, gift, PAID, LEAF)) is None


REFUSED = {
    "one that failed": replace(receipt(PAID, LEAF), succeeded=False),
    "no logs": receipt(),
    "a transfer alone, as of a slow fill": receipt(PAID),
    "a bundle alone, whose transfer was refused": receipt(refunded_log(POOL, USDT, [(WALLET, 500)], deferred=True)),
    "a bundle that paid others, beside a slow fill": receipt(PAID, refunded_log(POOL, USDT, [(RELAYER, 500)])),
    "a bundle beside a transfer that nothing tells of": receipt(PAID, LEAF, PAID),
    "a refused bundle beside a slow fill": receipt(
        filled(), PAID, refunded_log(POOL, USDT, [(WALLET, 500)], deferred=True)
    ),
    "a slow fill": receipt(filled(), PAID),
    "a transfer of less": receipt(transfer_log(USDT, POOL, WALLET, 499), LEAF),
    "a transfer from somebody else": receipt(transfer_log(USDT, STRANGER, WALLET, 500), LEAF),
    "a transfer to somebody else": receipt(transfer_log(USDT, POOL, STRANGER, 500), LEAF),
    "a transfer of another token": receipt(transfer_log(WETH, POOL, WALLET, 500), LEAF),
    "a bundle of another token": receipt(PAID, refunded_log(POOL, WETH, [(WALLET, 500)])),
    "a bundle of another contract": receipt(PAID, refunded_log(STRANGER, USDT, [(WALLET, 500)])),
    "a bundle of another chain": receipt(PAID, refunded_log(POOL, USDT, [(WALLET, 500)], chain=10)),
    "a bundle of nothing": receipt(transfer_log(USDT, POOL, WALLET, 0), refunded_log(POOL, USDT, [(WALLET, 0)])),
    "a transfer without an amount": receipt(replace(PAID, data=b""), LEAF),
    "a transfer with more than an amount": receipt(replace(PAID, data=PAID.data + bytes(32)), LEAF),
    "a transfer whose amount is indexed": receipt(replace(PAID, topics=(*PAID.topics, PAID.data), data=b""), LEAF),
    "a bundle that cannot be read": receipt(PAID, LEAF, replace(LEAF, data=LEAF.data + b"\0" * 32)),
    "a deposit": RECEIPT,
    "a fill": receipt(replace(FOUND.log, address=POOL)),
}


@pytest.mark.parametrize("told", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_refund_is_none(told):
    assert refund(told) is None


def test_a_refund_of_somebody_else_or_of_another_token_is_none():
    for changes in ({"refund_to": STRANGER}, {"refund_contract": WETH}, {"refund_contract": None}):
        assert refund(receipt(PAID, LEAF), replace(DEPOSIT, **changes)) is None
    for where in (ARBITRUM, TRON):
        assert refund(receipt(PAID, LEAF), where=where) is None


def test_amounts_that_are_not_as_many_as_addresses_are_none():
    with_more = refunded_log(POOL, USDT, [(WALLET, 500), (RELAYER, 70)])
    words = [with_more.data[at : at + 32] for at in range(0, len(with_more.data), 32)]
    at = words.index(word(2), 6)
    # One amount less: the second is gone, and what comes after it has moved up.
    del words[at + 2]
    words[at] = word(1)
    words[3] = word(int.from_bytes(words[3], "big") - 32)
    assert refund(receipt(PAID, replace(with_more, data=b"".join(words)))) is None


@settings(max_examples=300, deadline=None)
@given(told=changed(LEAF))
def test_a_changed_log_of_a_bundle_is_that_refund_or_none(told):
    found = refund(receipt(PAID, told))
    assert found is None or (found == 500 and told.topics[:2] == LEAF.topics[:2] and len(told.data) == len(LEAF.data))


@settings(max_examples=300, deadline=None)
@given(told=changed(PAID))
def test_a_changed_transfer_is_no_refund(told):
    assert refund(receipt(told, LEAF)) == (500 if told == PAID else None)


@settings(max_examples=100, deadline=None)
@given(
    topics=st.lists(st.binary(max_size=40), max_size=4),
    data=st.binary(max_size=500),
    head=st.sampled_from([REFUNDED_TOPIC, FILLED_TOPIC, TRANSFER_TOPIC]),
    address=st.sampled_from([POOL, USDT]),
)
def test_any_log_beside_a_bundle_never_breaks_it(topics, data, head, address):
    told = replace(PAID, address=address, topics=(head, *topics), data=data)
    assert refund(receipt(told)) is None
    assert refund(receipt(PAID, LEAF, told)) in {None, 500}
