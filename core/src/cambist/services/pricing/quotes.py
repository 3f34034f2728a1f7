"""What an order costs in tokens: its chain and token found, its amount read, its fiat price converted."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from cambist.domain.money import (
    CURRENCIES,
    AmountError,
    fiat_to_units,
    format_units,
    parse_fiat,
    parse_units,
)
from cambist.plugin import ChainInfo, Token, Units
from cambist.services.errors import InvalidError, UnavailableError
from cambist.services.supported import Wording, find_chain, find_token

from .prices import NotPricedError, RateBook

DIRECT = "direct_crypto"
FIAT = "fiat"

Name = Annotated[str, Meta(min_length=1, max_length=64)]
AmountText = Annotated[str, Meta(min_length=1, max_length=160)]


class Ask(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What shall be paid. ``amount`` is in tokens, or in ``fiat_currency`` where the price is in fiat."""

    chain: Name
    token: Name
    pricing_mode: Literal["direct_crypto", "fiat"]
    amount: AmountText
    fiat_currency: Name | None = None


class Asset(NamedTuple):
    """A token on its chain."""

    chain: ChainInfo
    token: Token


class Priced(Struct, frozen=True, kw_only=True):
    """An amount, and what it means in tokens. ``rate`` is fiat per whole token, None where none was needed."""

    amount: Decimal
    expected: Units
    fiat_currency: str | None = None
    rate: Decimal | None = None
    source: str | None = None


WORDING = Wording(
    chain="is none of the chains at /api/public/chains",
    token="is none of the tokens at /api/public/tokens?chain={chain}",  # noqa: S106  a token on a chain
)


def find_asset(chains: Mapping[str, ChainInfo], chain_id: str, symbol: str, mode: str) -> Asset:
    """Return the token that a project of this mode may ask for.

    A sandbox project has every chain, since its chains are simulated; a live one those with endpoints.
    """
    chain = find_chain(chains, chain_id, wording=WORDING)
    token = find_token(chain, symbol, wording=WORDING)
    if mode == "live" and chain.availability != "live":
        raise UnavailableError("CHAIN_UNAVAILABLE", f"Payments on {chain.name} are not available right now.")
    return Asset(chain, token)


async def price(ask: Ask, asset: Asset, rates: RateBook, asked_by: str) -> Priced:
    """Return what the ask comes to, and is enough to arrive. Fiat is rounded up to what wallets can enter."""
    priced = await _priced(ask, asset, rates, asked_by)
    least = asset.token.least_units
    if priced.expected < least:
        words = f"{format_units(least, asset.token.decimals)} {asset.token.symbol}"
        raise refuse_amount(f"must come to at least {words}, as less does not arrive on {asset.chain.name}")
    return priced


async def _priced(ask: Ask, asset: Asset, rates: RateBook, asked_by: str) -> Priced:
    if ask.pricing_mode == DIRECT:
        return Priced(expected=read_units(ask.amount, asset.token), amount=Decimal(ask.amount))
    currency = ask.fiat_currency
    if currency is None:
        raise InvalidError.field("fiatCurrency", "is required where pricingMode is fiat")
    if currency not in CURRENCIES:
        raise InvalidError.field("fiatCurrency", "must be an ISO 4217 code in lower case, such as usd")
    try:
        amount = parse_fiat(ask.amount, currency)
        rate = await rates.rate(asset.token.symbol, currency, asked_by=asked_by)
    except NotPricedError:
        words = f"is no currency that {asset.token.symbol} is priced in here"
        raise InvalidError.field("fiatCurrency", words, "UNSUPPORTED_CURRENCY") from None
    except AmountError as error:
        raise refuse_amount(str(error)) from None
    try:
        expected = fiat_to_units(amount, rate.value, asset.token.decimals)
    except AmountError as error:
        raise refuse_amount(str(error)) from None
    if not amount:
        raise refuse_amount("must be above zero")
    return Priced(amount=amount, expected=expected, fiat_currency=currency, rate=rate.value, source=rate.source)


def read_units(text: str, token: Token, field: str = "amount") -> Units:
    """Return a token amount above zero. Raises InvalidError, naming the field."""
    try:
        units = parse_units(text, token.decimals)
    except AmountError as error:
        raise refuse_amount(str(error), field) from None
    if not units:
        raise refuse_amount("must be above zero", field)
    return units


def refuse_amount(reason: str, field: str = "amount") -> InvalidError:
    return InvalidError.field(field, reason, "INVALID_AMOUNT")
