"""Says what a payment would ask for, without making one: whatever a payment is refused for, its quote is, too."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import Struct

from cambist.domain.money import format_rate, format_units
from cambist.plugin import ChainInfo
from cambist.services.actor import Actor
from cambist.services.chain_pauses import Pauses, refuse_payments
from cambist.services.chains.rules import TokenRules
from cambist.services.pricing.prices import RateBook
from cambist.services.pricing.quotes import DIRECT, Ask, Asset, Priced, find_asset, price

QUOTE_VALID_S = 60
"""How long a quote is worth looking at. It binds nobody: the rate is locked when the payment is made."""


class Asking(Struct, frozen=True, kw_only=True):
    """What decides about asking for money now."""

    chains: Mapping[str, ChainInfo]
    token_rules: TokenRules
    pauses: Pauses
    rates: RateBook


class Asked(NamedTuple):
    """What may be asked for, and what it comes to."""

    asset: Asset
    priced: Priced


class Quote(Struct, frozen=True, kw_only=True):
    """What a payment made now would ask for."""

    rate: str | None
    expected_amount: str
    expected_amount_raw: str
    decimals: int
    source: str
    valid_until: datetime


async def asked_for(asking: Asking, actor: Actor, ask: Ask) -> Asked:
    """Return what a payment asks for. Raises InvalidError and UnavailableError where it may not, or not now."""
    asset = find_asset(asking.chains, ask.chain, ask.token, actor.mode)
    asking.token_rules.check(actor.merchant_pk, asset.chain.id, asset.token)
    refuse_payments(asking.pauses, asset.chain, actor.mode)
    return Asked(asset, await price(ask, asset, asking.rates, actor.merchant_id))


async def quote(asking: Asking, actor: Actor, ask: Ask, now: datetime) -> Quote:
    """Return what a payment made now would ask for, without promising anything. Raises as ``asked_for``."""
    asset, priced = await asked_for(asking, actor, ask)
    return Quote(
        rate=None if priced.rate is None else format_rate(priced.rate),
        expected_amount=ask.amount if priced.rate is None else format_units(priced.expected, asset.token.decimals),
        expected_amount_raw=str(priced.expected),
        decimals=asset.token.decimals,
        source=priced.source or DIRECT,
        valid_until=now + timedelta(seconds=QUOTE_VALID_S),
    )
