"""Why nothing of a coin is converted right now: what a run (``auto_convert.py``) goes by, and what merchants read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy import exists, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Exchange, Project
from cambist.domain.exchanges import Kind, MadeFor, Status
from cambist.domain.money import format_units, value_of
from cambist.plugin import Units
from cambist.registry import Registry
from cambist.services import platform
from cambist.services.accounting import tokens, usage
from cambist.services.accounting.ledger import Balance
from cambist.services.actor import Actor
from cambist.services.errors import InvalidError, ServiceError, project_inactive
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.prices import NotPricedError, RateBook, RateUnavailableError
from cambist.services.pricing.quotes import Asset
from cambist.services.supported import find_chain, find_token

from . import coin_settings
from .auto_convert_rules import Rule, destination, of_merchant, rule_of
from .auto_payout_reasons import Reason
from .coin_settings import LIMIT, CoinSettings

FAILED_PAUSE = timedelta(minutes=30)
"""How long a coin is left alone whose exchange has failed: it may have cost gas, and the next one may, too."""


class Standing(Struct, frozen=True, kw_only=True):
    """What a rule finds. Nothing is converted where there are reasons; without any, there is a ``dest``."""

    source: Asset
    dest: Asset | None
    available: Units
    reasons: Sequence[Reason]


class Conversion(Struct, frozen=True, kw_only=True):
    """What is told beside a coin's settings. No reasons: the rule is switched off, or the next run converts."""

    minimum_usd: str
    reasons: Sequence[Reason]


async def find_standing(
    conn: AsyncConnection, registry: Registry, settings: PlatformSettings, rule: Rule, now: datetime
) -> Standing:
    """Return all that stands in a rule's way, but for prices, which are asked for without a connection."""
    chain = find_chain(registry.chains, rule.chain)
    source = Asset(chain, find_token(chain, rule.symbol))
    try:
        dest = destination(registry, source, rule.dest_chain, rule.dest_token)
    except InvalidError as error:
        reason = Reason(code=error.code, message=error.message)
        return Standing(source=source, dest=None, available=Units(0), reasons=[reason])
    balance = (await tokens.balance(conn, rule.merchant_pk, rule.mode, *source)).balance
    reasons = [
        *_decided(settings, rule, source, dest),
        *await _of_merchant(conn, settings, rule, source, dest),
        *await _of_exchanges(conn, rule, now),
        *_of_balance(rule, source, balance),
    ]
    return Standing(source=source, dest=dest, available=Units(balance.available), reasons=reasons)


def _decided(settings: PlatformSettings, rule: Rule, source: Asset, dest: Asset) -> Iterator[Reason]:
    """Tell what the operator has decided."""
    is_swap = source.chain.id == dest.chain.id
    if not (settings.exchanges.swap_enabled if is_swap else settings.exchanges.bridge_enabled):
        kind = Kind.SWAP if is_swap else Kind.BRIDGE
        yield Reason(code=f"{kind.upper()}_DISABLED", message=f"{kind.capitalize()}s are switched off right now.")
    for chain in {source.chain.id: source.chain, dest.chain.id: dest.chain}.values():
        if rule.mode == "live" and chain.availability != "live":
            yield Reason(code="CHAIN_UNAVAILABLE", message=f"{chain.name} is not available right now.")


async def _of_merchant(
    conn: AsyncConnection, settings: PlatformSettings, rule: Rule, source: Asset, dest: Asset
) -> Sequence[Reason]:
    """Return what is the matter with the project, the coins and the credits."""
    found = []
    if not await conn.scalar(select(Project.is_active).where(Project.id == rule.project_pk)):
        found.append(Reason(code=project_inactive().code, message="The project of this rule is switched off."))
    disabled = await coin_settings.disabled(conn, rule.merchant_pk, rule.mode)
    for chain, token in (source, dest):
        if (chain.id, token.symbol) in disabled:
            text = f"{token.symbol} on {chain.name} is not among the enabled tokens."
            found.append(Reason(code="TOKEN_NOT_ENABLED", message=text))
    try:
        await usage.require_credit(conn, rule.merchant_pk, rule.mode, settings)
    except ServiceError as error:
        found.append(Reason(code=error.code, message=error.message))
    return found


async def _of_exchanges(conn: AsyncConnection, rule: Rule, now: datetime) -> Sequence[Reason]:
    """Return what earlier exchanges of the coin are in the way."""
    of_coin = (
        Exchange.merchant_pk == rule.merchant_pk,
        Exchange.mode == rule.mode,
        Exchange.source_chain == rule.chain,
        Exchange.source_token == rule.symbol,
    )
    if await conn.scalar(select(exists(select(Exchange.id).where(*of_coin, Exchange.status == Status.PENDING)))):
        text = "An exchange of this coin is under way; the next one follows it."
        return [Reason(code="EXCHANGE_UNDER_WAY", message=text)]
    failed = (
        select(Exchange.error, Exchange.finished_at)
        .where(
            *of_coin,
            Exchange.made_for == MadeFor.AUTO,
            Exchange.status == Status.FAILED,
            Exchange.finished_at > now - FAILED_PAUSE,
            Exchange.dest_chain == rule.dest_chain,
            Exchange.dest_token == rule.dest_token,
        )
        .order_by(Exchange.finished_at.desc())
        .limit(1)
    )
    last = (await conn.execute(failed)).one_or_none()
    if last is None:
        return []
    minutes = int(FAILED_PAUSE.total_seconds()) // 60
    text = f"The last exchange has failed, and the next is made {minutes} minutes after it: {last.error}"
    return [Reason(code="EXCHANGE_FAILED", message=text)]


def _of_balance(rule: Rule, source: Asset, balance: Balance) -> Iterator[Reason]:
    """Tell what is the matter with what there is. What is above its threshold belongs to the auto-payout."""
    symbol, decimals = source.token.symbol, source.token.decimals
    if balance.receivable < 0:
        text = "Deposits first make up for what a reorganization of the chain took back."
        yield Reason(code="RECEIVABLE_OUTSTANDING", message=text)
    if balance.available <= 0:
        yield Reason(code="NOTHING_AVAILABLE", message=f"No {symbol} is available.")
    elif rule.autopayout_policy == LIMIT and balance.available > (threshold := rule.autopayout_threshold or 0):
        here, stays = (format_units(units, decimals) for units in (balance.available, threshold))
        text = f"{here} {symbol} are available, and what is above {stays} is paid out first."
        yield Reason(code="AUTO_PAYOUT_FIRST", message=text)


async def too_little(rates: RateBook, source: Asset, units: Units, settings: PlatformSettings) -> Reason | None:
    """Return why so much is not worth converting, or why nobody can tell; None where it is."""
    rule = settings.exchanges
    if not rule.auto_convert_min:
        return None
    symbol, decimals = source.token.symbol, source.token.decimals
    try:
        rate = await rates.rate(symbol, "usd")
    except NotPricedError:
        text = f"{symbol} has no price here, so that nobody can tell what it is worth."
        return Reason(code="EXCHANGE_PRICE_UNKNOWN", message=text)
    except RateUnavailableError as error:
        return Reason(code=error.code, message=error.message)
    if value_of(units, decimals, rate.value) >= rule.auto_convert_min:
        return None
    text = f"{format_units(units, decimals)} {symbol} are worth less than {rule.auto_convert_min_usd} USD."
    return Reason(code="BELOW_MINIMUM", message=text)


async def explain(  # noqa: PLR0913, PLR0917  whose coins, and what is known of them
    db: Database, registry: Registry, rates: RateBook, actor: Actor, coins: Sequence[CoinSettings], now: datetime
) -> Sequence[Conversion]:
    """Return for each coin why nothing of it is converted. Prices are asked for only where nothing else hinders it."""
    wanted = {(coin.chain, coin.token.symbol) for coin in coins if coin.auto_convert_enabled}
    standings: dict[tuple[str, str], tuple[Rule, Standing]] = {}
    async with db.autocommit() as conn:
        settings = await platform.load(conn)
        for row in await conn.execute(of_merchant(actor.merchant_pk, actor.mode)) if wanted else ():
            rule = rule_of(row)
            if (rule.chain, rule.symbol) in wanted:
                standings[rule.chain, rule.symbol] = rule, await find_standing(conn, registry, settings, rule, now)
    all_told = await asyncio.gather(*(_told(rates, settings, *found) for found in standings.values()))
    told = dict(zip(standings, all_told, strict=True))
    minimum = settings.exchanges.auto_convert_min_usd
    return [Conversion(minimum_usd=minimum, reasons=told.get((one.chain, one.token.symbol), ())) for one in coins]


async def _told(rates: RateBook, settings: PlatformSettings, rule: Rule, standing: Standing) -> Sequence[Reason]:
    if standing.reasons:
        return standing.reasons
    small = await too_little(rates, standing.source, standing.available, settings)
    if small is not None:
        return [small]
    return [] if rule.refusal is None else [Reason(code=rule.refusal, message=rule.message or "")]
