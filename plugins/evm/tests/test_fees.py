"""What is offered for gas: lasting, never above the ceiling, and enough for nodes to give up what it replaces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.plugin import Fee, FeeAboveCeilingError, Units
from cambist_evm.fees import GWEI, FeeBounds, Market, fee_now, in_gwei, outbidding

BOUNDS = FeeBounds(ceiling=100 * GWEI, tip_min=0, tip_max=100 * GWEI)


def offered(base_gwei: int | None, tip_gwei: int) -> Fee:
    base = None if base_gwei is None else base_gwei * GWEI
    return fee_now(Market(base_fee=base, tip=tip_gwei * GWEI, data_fee=9), BOUNDS, "local", 21_000)


def test_a_fee_lasts_while_the_base_fee_doubles() -> None:
    fee = Fee(limit=21_000, price=22 * GWEI, tip=2 * GWEI, extra=Units(9), price_now=12 * GWEI)
    assert offered(10, 2) == fee


def test_near_the_ceiling_the_room_shrinks_before_sending_stops() -> None:
    """What gets in now is sent, and what costs more waits."""
    assert offered(70, 5).price == 100 * GWEI
    assert offered(95, 5).price == 100 * GWEI
    with pytest.raises(FeeAboveCeilingError, match="local asks for 101 gwei per gas, and fee_ceiling_gwei is 100"):
        offered(96, 5)


def test_a_chain_without_tips_has_a_price_alone() -> None:
    assert offered(None, 7) == Fee(limit=21_000, price=7 * GWEI, extra=Units(9))
    with pytest.raises(FeeAboveCeilingError):
        offered(None, 101)


def test_a_chain_that_asks_for_nothing_is_offered_nothing() -> None:
    assert offered(0, 0) == Fee(limit=21_000, price=0, tip=0, extra=Units(9), price_now=0)


@given(
    price=st.integers(0, 10**13),
    tip_share=st.integers(0, 100) | st.none(),
    base=st.integers(0, 10**12) | st.none(),
    market_tip=st.integers(0, 10**11),
)
def test_what_outbids_is_a_tenth_more_of_both_and_fit_for_now(
    price: int, tip_share: int | None, base: int | None, market_tip: int
) -> None:
    """Geth's rule, at its full arithmetic; the market's demand; and the ceiling, or nothing at all."""
    old = Fee(limit=50_000, price=price, tip=None if tip_share is None else price * tip_share // 100, extra=Units(3))
    market = Market(base_fee=base, tip=market_tip)
    try:
        new = outbidding(market, BOUNDS, "local", old)
    except FeeAboveCeilingError:
        assert max(market.entry, price + max(-(-price // 8), 1)) > BOUNDS.ceiling or market_tip > BOUNDS.ceiling
        return
    assert new.limit == old.limit
    assert new.price > old.price
    assert new.price * 10 >= old.price * 11
    assert market.entry <= new.price <= BOUNDS.ceiling
    assert (new.tip is None) == (old.tip is None)
    if new.tip is not None and old.tip is not None:
        assert new.tip > old.tip
        assert new.tip * 10 >= old.tip * 11
        assert market.tip <= new.tip <= new.price


def test_outbidding_ends_at_the_ceiling() -> None:
    """A price is raised some thirty times, and then it is for a person to look."""
    fee = Fee(limit=21_000, price=2 * GWEI, tip=1 * GWEI)
    market = Market(base_fee=GWEI // 2, tip=GWEI)
    prices = []
    while fee.price * 9 // 8 < 100 * GWEI:
        fee = outbidding(market, BOUNDS, "local", fee)
        prices.append(fee.price)
    with pytest.raises(FeeAboveCeilingError, match="fee_ceiling_gwei is 100"):
        outbidding(market, BOUNDS, "local", fee)
    assert 20 < len(prices) < 60
    assert prices[-1] <= 100 * GWEI


@pytest.mark.parametrize(
    "wei, gwei", [(0, "0"), (1, "0.000000001"), (GWEI, "1"), (1_500_000_000, "1.5"), (100 * GWEI, "100")]
)
def test_gwei_are_written_without_needless_digits(wei: int, gwei: str) -> None:
    assert in_gwei(wei) == gwei
