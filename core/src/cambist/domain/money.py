"""Amounts: decimal text at the edge, integers of the smallest unit inside, nothing in between."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Context, Decimal

from cambist.plugin import Units

UNITS_MAX = 10**60
"""Bound of every amount in smallest units; the database's columns hold 78 digits, and every sum must fit, too."""

ENTERABLE_DECIMALS = 8
"""How many decimals customers' wallets let one type. A finer amount could not be paid exactly."""

RATE_DECIMALS_MAX = 18

_PLAIN = re.compile(r"(0|[1-9][0-9]{0,77})(?:\.([0-9]{1,77}))?", re.ASCII)

# Exact for every product of the numbers above: nothing is rounded except where a rounding is asked for.
_EXACT = Context(prec=400)

# ISO 4217: what circulates, and the funds codes that are priced in practice.
CURRENCIES = frozenset(
    """aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd btn bwp byn bzd cad cdf chf
    clf clp cny cop crc cup cve czk djf dkk dop dzd egp ern etb eur fjd fkp gbp gel ghs gip gmd gnf gtq gyd hkd hnl htg
    huf idr ils inr iqd irr isk jmd jod jpy kes kgs khr kmf kpw krw kwd kyd kzt lak lbp lkr lrd lsl lyd mad mdl mga mkd
    mmk mnt mop mru mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf
    sar sbd scr sdg sek sgd shp sle sos srd ssp stn svc syp szl thb tjs tmt tnd top try ttd twd tzs uah ugx usd uyi uyu
    uyw uzs ved ves vnd vuv wst xaf xcd xcg xdr xof xpf yer zar zmw zwg""".split()
)
"""Every fiat currency a price can be in, as a lower-case ISO 4217 code."""

# ISO 4217: minor units that are not 2.
_MINOR_UNITS = {
    **dict.fromkeys("bif clp djf gnf isk jpy kmf krw pyg rwf ugx uyi vnd vuv xaf xof xpf".split(), 0),
    **dict.fromkeys("bhd iqd jod kwd lyd omr tnd".split(), 3),
    **dict.fromkeys("clf uyw".split(), 4),
}


class AmountError(ValueError):
    """A text is no amount; the message says why, in words for the merchant."""


def _plain(text: str) -> tuple[str, str]:
    match = _PLAIN.fullmatch(text)
    if match is None:
        raise AmountError("must be a decimal number in plain digits, such as 12.5")
    return match[1], match[2] or ""


def parse_units(text: str, decimals: int) -> Units:
    """Read a token amount.

    Raises AmountError for anything but plain digits with at most one point, for more decimals than the token
    has (trailing zeros count: what cannot be meant exactly is refused), and beyond ``UNITS_MAX``.
    """
    whole, fraction = _plain(text)
    if len(fraction) > decimals:
        raise AmountError(f"has more than {decimals} decimals")
    units = int(whole + fraction.ljust(decimals, "0"))
    if units > UNITS_MAX:
        raise AmountError("is too large")
    return Units(units)


def parse_amount(text: str) -> Decimal:
    """Read an amount of anything, exactly. Raises AmountError as ``parse_units`` does, but for the decimals."""
    _plain(text)
    return Decimal(text)


def same_value(text: str) -> str:
    """Return one spelling for all texts of the same amount: ``12.50`` is ``12.5``. What is no amount stays as it is."""
    match = _PLAIN.fullmatch(text)
    if match is None or not match[2]:
        return text
    fraction = match[2].rstrip("0")
    return f"{match[1]}.{fraction}" if fraction else match[1]


def format_units(units: int, decimals: int) -> str:
    """Write a token amount without superfluous zeros: ``1500000`` with 6 decimals is ``1.5``."""
    sign, digits = ("-", str(-units)) if units < 0 else ("", str(units))
    if decimals == 0:
        return sign + digits
    digits = digits.rjust(decimals + 1, "0")
    whole, fraction = digits[:-decimals], digits[-decimals:].rstrip("0")
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def minor_units(currency: str) -> int:
    """Return how many decimals a fiat currency (lower-case ISO 4217) has."""
    return _MINOR_UNITS.get(currency, 2)


def parse_fiat(text: str, currency: str) -> Decimal:
    """Read a fiat amount. Raises AmountError as ``parse_units`` does, with the currency's minor units."""
    _, fraction = _plain(text)
    if len(fraction) > (decimals := minor_units(currency)):
        raise AmountError(f"has more than {decimals} decimals, which {currency.upper()} does not have")
    value = Decimal(text)
    if value >= 10**15:
        raise AmountError("is too large")
    return value


def fiat_to_units(amount: Decimal, rate: Decimal, decimals: int) -> Units:
    """Convert a fiat amount at ``rate`` (fiat per whole token) to token units.

    Rounds up to what wallets can enter, so that the merchant never gets less than was asked for. Raises
    AmountError beyond ``UNITS_MAX``.
    """
    if rate <= 0:
        raise AmountError("has no positive exchange rate")
    step = Decimal(1).scaleb(-min(decimals, ENTERABLE_DECIMALS))
    # A quotient need not be finite: with 400 digits a rounding error is beyond every digit that is kept.
    tokens = _EXACT.divide(amount, rate).quantize(step, rounding=ROUND_CEILING, context=_EXACT)
    units = int(_EXACT.scaleb(tokens, decimals))
    if units > UNITS_MAX:
        raise AmountError("is too large")
    return Units(units)


def value_of(units: int, decimals: int, rate: Decimal) -> Decimal:
    """Return exactly what token units are worth at ``rate`` (fiat per whole token)."""
    return _EXACT.multiply(_EXACT.scaleb(Decimal(units), -decimals), rate)


def format_rate(rate: Decimal) -> str:
    """Write a price without exponent and superfluous zeros."""
    text = format(rate, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
