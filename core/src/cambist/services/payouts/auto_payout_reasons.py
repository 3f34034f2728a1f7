"""Why nothing of a coin is paid out by itself right now, as its settings show it.

Every rule of a run (``auto_payout.py``) that can stand in the way has a reason here; all that hold are told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from msgspec import Struct
from sqlalchemy import exists, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Payout
from cambist.domain.intents import IntentKind
from cambist.domain.money import format_units
from cambist.domain.payouts import FINISHED, Status
from cambist.plugin import Units
from cambist.services import platform
from cambist.services.accounting import tokens, usage
from cambist.services.actor import Actor
from cambist.services.errors import ServiceError
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.prices import RateBook
from cambist.services.pricing.quotes import Asset

from . import limits
from .approved_addresses import is_approved
from .auto_payout import is_worth_it
from .coin_settings import LIMIT, CoinSettings
from .queue import PayoutContext

UNDER_WAY = tuple(sorted(status for status in Status if status not in FINISHED))


class Reason(Struct, frozen=True, kw_only=True):
    """Why nothing is paid out now: a name for programs, and a sentence."""

    code: str
    message: str


class Coin(Struct, frozen=True, kw_only=True):
    """A coin's settings, and why its policy does nothing now: empty where the policy is off, or the next run pays."""

    settings: CoinSettings
    minimum_usd: str
    reasons: Sequence[Reason]


async def explain(
    db: Database, context: PayoutContext, rates: RateBook, actor: Actor, coins: Sequence[CoinSettings]
) -> Sequence[Coin]:
    """Return the coins with the reasons. Prices are asked for only where nothing else is in the way."""
    async with db.autocommit() as conn:
        settings = await platform.load(conn)
        found = [await _reasons(conn, context, settings, actor, coin) for coin in coins]
    minimum = settings.collection.min_value_usd

    async def told(coin: CoinSettings, reasons: list[Reason], excess: int) -> Coin:
        if coin.autopayout_policy == LIMIT and not reasons:
            asset = Asset(context.registry.chains[coin.chain], coin.token)
            if not await is_worth_it(rates, asset, excess, settings):
                above = f"{format_units(excess, coin.token.decimals)} {coin.token.symbol} above the threshold"
                reasons.append(Reason(code="BELOW_MINIMUM", message=f"{above} are worth less than {minimum} USD."))
        return Coin(settings=coin, minimum_usd=minimum, reasons=reasons)

    return await asyncio.gather(*(told(coin, *one) for coin, one in zip(coins, found, strict=True)))


async def _reasons(
    conn: AsyncConnection, context: PayoutContext, settings: PlatformSettings, actor: Actor, coin: CoinSettings
) -> tuple[list[Reason], int]:
    """Return what stands in the way but for the price, and the units above the threshold."""
    if coin.autopayout_policy != LIMIT or coin.autopayout_address is None:
        return [], 0
    asset = Asset(context.registry.chains[coin.chain], coin.token)
    balance = (await tokens.balance(conn, actor.merchant_pk, actor.mode, *asset)).balance
    excess = int(balance.available) - int(coin.autopayout_threshold or 0)
    found = [
        *_decided(settings, actor, asset, coin),
        *await _of_merchant(conn, settings, actor, coin, coin.autopayout_address),
        *await _of_limits(conn, context, settings, actor, asset, excess),
    ]
    if balance.receivable < 0:
        text = "Deposits first make up for what a reorganization of the chain took back."
        found.append(Reason(code="RECEIVABLE_OUTSTANDING", message=text))
    if excess <= 0:
        here = format_units(balance.available, coin.token.decimals)
        threshold = format_units(coin.autopayout_threshold or 0, coin.token.decimals)
        text = f"{here} {coin.token.symbol} are available, and only what is above {threshold} is paid out."
        found.append(Reason(code="BELOW_THRESHOLD", message=text))
    return found, excess


def _decided(settings: PlatformSettings, actor: Actor, asset: Asset, coin: CoinSettings) -> Iterator[Reason]:
    """Tell what the operator and the merchant have decided."""
    chain, token = asset
    if not settings.payout_enabled:
        yield Reason(code="PAYOUT_DISABLED", message="Payouts are switched off right now.")
    if actor.mode == "live" and chain.availability != "live":
        yield Reason(code="CHAIN_UNAVAILABLE", message=f"{chain.name} is not available right now.")
    if not coin.enabled:
        text = f"{token.symbol} on {chain.name} is not among the enabled tokens."
        yield Reason(code="TOKEN_NOT_ENABLED", message=text)
    if not settings.allows_address(chain.id, coin.autopayout_address or ""):
        text = "The operator has listed the addresses that money goes to, without this."
        yield Reason(code="TARGET_NOT_ALLOWED", message=text)


async def _of_merchant(
    conn: AsyncConnection, settings: PlatformSettings, actor: Actor, coin: CoinSettings, address: str
) -> Sequence[Reason]:
    """Return what is the matter with the approval, the credits, and the payout before."""
    found = []
    if not await is_approved(conn, actor.merchant_pk, actor.mode, coin.chain, address):
        text = "The address is not among the approved ones any more."
        found.append(Reason(code="ADDRESS_NOT_APPROVED", message=text))
    try:
        await usage.require_credit(conn, actor.merchant_pk, actor.mode, settings)
    except ServiceError as error:
        found.append(Reason(code=error.code, message=error.message))
    under_way = select(Payout.id).where(
        Payout.merchant_pk == actor.merchant_pk,
        Payout.mode == actor.mode,
        Payout.chain == coin.chain,
        Payout.token == coin.token.symbol,
        Payout.kind == IntentKind.AUTO_PAYOUT,
        Payout.status.in_(UNDER_WAY),
    )
    if await conn.scalar(select(exists(under_way))):
        text = "An auto-payout of this coin is under way; the next one follows it."
        found.append(Reason(code="PAYOUT_UNDER_WAY", message=text))
    return found


async def _of_limits(  # noqa: PLR0913, PLR0917  what is judged of one transfer
    conn: AsyncConnection, context: PayoutContext, settings: PlatformSettings, actor: Actor, asset: Asset, excess: int
) -> Sequence[Reason]:
    """Return whether the operator's limits let nothing through now: of 24 hours, or less than leaves at once."""
    now = context.clock.now()
    allowed, left = await limits.limits_of(conn, settings, actor.merchant_pk, actor.mode, asset, now), excess
    if allowed.per_transaction is not None:
        left = min(left, allowed.per_transaction)
    if allowed.per_day is not None:
        sent = await limits.sent_today(conn, actor.merchant_pk, actor.mode, *asset, now)
        if sent >= allowed.per_day:
            error: ServiceError = limits.day_limit_error(allowed, asset.token)
            return [Reason(code=error.code, message=error.message)]
        left = min(left, allowed.per_day - sent)
    if left > 0 and allowed.is_too_small(IntentKind.AUTO_PAYOUT, Units(left)):
        error = limits.minimum_error(allowed, IntentKind.AUTO_PAYOUT, *asset)
        return [Reason(code=error.code, message=error.message)]
    return []
