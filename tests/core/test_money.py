"""Amounts are exact, and everything that is not plainly an amount is refused."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.domain.money import (
    UNITS_MAX,
    AmountError,
    fiat_to_units,
    format_rate,
    format_units,
    parse_fiat,
    parse_units,
)


@pytest.mark.parametrize(
    "text, decimals, units",
    [
        ("10.5", 6, 10_500_000),
        ("10.5", 18, 10_500_000_000_000_000_000),
        ("0.000001", 6, 1),
        ("7", 0, 7),
        ("0", 6, 0),
        ("1.10", 2, 110),
    ],
)
def test_an_amount_is_read_exactly(text, decimals, units):
    assert parse_units(text, decimals) == units


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "-1", "+1", "1e5", "1E5", "NaN", "Infinity", "1_000", "1,5", ".5", "5.", "00.5", "01", "0x10",
        "١٢", "\uff11\uff12", "1.5.5", " 1", "1 ", "1\n", "1.", "\u22121", "9" * 79, "1\x00",
    ],
)  # fmt: skip
def test_what_is_not_plainly_an_amount_is_refused(text):
    with pytest.raises(AmountError):
        parse_units(text, 6)


def test_more_decimals_than_the_token_has_are_refused_even_when_they_are_zeros():
    with pytest.raises(AmountError, match="more than 6 decimals"):
        parse_units("1.0000000", 6)


def test_an_amount_beyond_what_the_database_holds_is_refused():
    assert parse_units(str(UNITS_MAX), 0) == UNITS_MAX
    with pytest.raises(AmountError, match="too large"):
        parse_units(str(UNITS_MAX + 1), 0)


@given(st.integers(0, UNITS_MAX), st.integers(0, 18))
def test_writing_and_reading_an_amount_gives_it_back(units, decimals):
    text = format_units(units, decimals)
    assert Fraction(text) == Fraction(units, 10**decimals)
    if len(text.partition(".")[0]) <= 78:
        assert parse_units(text, decimals) == units


def test_negative_balances_are_written_with_their_sign():
    assert format_units(-1_500_000, 6) == "-1.5"
    assert format_units(-5, 6) == "-0.000005"


@pytest.mark.parametrize(
    "text, currency, fits",
    [
        ("10.99", "usd", True),
        ("10.999", "usd", False),
        ("10", "jpy", True),
        ("10.5", "jpy", False),
        ("1.234", "kwd", True),
    ],
)
def test_a_fiat_amount_has_no_more_decimals_than_its_currency(text, currency, fits):
    if fits:
        assert parse_fiat(text, currency) == Decimal(text)
    else:
        with pytest.raises(AmountError, match=currency.upper()):
            parse_fiat(text, currency)


@given(
    st.decimals("0.01", "1000000", places=2),
    st.decimals("0.000001", "200000", places=6),
    st.integers(0, 18),
)
def test_fiat_becomes_the_least_enterable_token_amount_that_is_worth_it(amount, rate, decimals):
    units = fiat_to_units(amount, rate, decimals)
    step = 10 ** (decimals - min(decimals, 8))
    assert units % step == 0
    worth = Fraction(units, 10**decimals) * Fraction(rate)
    less = Fraction(units - step, 10**decimals) * Fraction(rate)
    assert less < Fraction(amount) <= worth


def test_a_rate_of_zero_prices_nothing():
    with pytest.raises(AmountError):
        fiat_to_units(Decimal(1), Decimal(0), 6)


@pytest.mark.parametrize("rate, text", [("2500.00", "2500"), ("1E+3", "1000"), ("0.92", "0.92"), ("1E-7", "0.0000001")])
def test_a_rate_is_written_without_exponent(rate, text):
    assert format_rate(Decimal(rate)) == text
