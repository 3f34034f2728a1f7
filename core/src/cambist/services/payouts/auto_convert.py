"""Converts by itself what is available of coins whose rule says so: as an exchange, one of a coin at a time.

A run takes the coins whose time it is, and for each asks providers without holding a connection: what is checked before
is checked again behind the lock of the coin's row, which an auto-payout takes as well. Any number of workers may do so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import structlog
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import CoinSettings, Merchant, Project
from cambist.domain.exchanges import MadeFor
from cambist.domain.intents import AskedBy
from cambist.hints import Hints
from cambist.plugin import Units
from cambist.services import platform
from cambist.services.accounting.ledger import asset_key
from cambist.services.audit.entries import GATEWAY, Action, record
from cambist.services.errors import ServiceError
from cambist.services.exchanges.context import ExchangeContext
from cambist.services.exchanges.create import Prepared, prepare
from cambist.services.exchanges.offers import Offer, best_offer
from cambist.services.exchanges.owner import Owner
from cambist.services.exchanges.requests import Wish
from cambist.services.exchanges.starting import NewExchange, start_exchange
from cambist.services.platform import PlatformSettings

from .auto_convert_reasons import find_standing, too_little
from .auto_convert_rules import COLUMNS, Rule, is_coin, rule_of

log = structlog.get_logger(__name__)

COINS_MAX = 4
"""Coins looked at in one run, all at once: no more than a provider's plan of one request a second answers in time."""
CLAIM = timedelta(seconds=60)
"""How long a coin that was looked at is left alone, whatever came of it."""
PAUSE, PAUSE_MAX = timedelta(seconds=60), timedelta(minutes=30)
"""After a refusal: twice as long each time."""
TOO_MUCH = "EXCHANGE_AMOUNT_TOO_HIGH"
"""The refusal after which half as much is asked for, again and again; a rest follows later."""
HALVINGS_MAX = 16

_CLAIM = """
WITH due AS (
    SELECT c.merchant_pk, c.mode, c.chain, c.symbol
    FROM coin_settings c
        JOIN unnest($1::text[], $2::text[], $3::text[]) AS t (chain, symbol, asset)
            ON t.chain = c.chain AND t.symbol = c.symbol
        JOIN ledger_accounts a ON a.merchant_pk = c.merchant_pk AND a.mode = c.mode AND a.asset = t.asset
            AND a.purpose = 'available' AND a.balance > 0
    WHERE c.auto_convert_enabled AND c.auto_convert_due_at <= $4
        AND NOT EXISTS (SELECT FROM merchants m WHERE m.id = c.merchant_pk AND m.suspended_at IS NOT NULL)
        AND NOT EXISTS (SELECT FROM exchanges e WHERE e.merchant_pk = c.merchant_pk AND e.mode = c.mode
            AND e.source_chain = c.chain AND e.source_token = c.symbol AND e.status = 'pending')
    ORDER BY c.auto_convert_due_at
    LIMIT $6
    FOR NO KEY UPDATE OF c SKIP LOCKED
)
UPDATE coin_settings c SET auto_convert_due_at = $5 FROM due
WHERE c.merchant_pk = due.merchant_pk AND c.mode = due.mode AND c.chain = due.chain AND c.symbol = due.symbol
RETURNING c.merchant_pk, c.mode, c.chain, c.symbol
"""


class Run(Struct, frozen=True):
    """How many coins were looked at, and of how many an exchange was started."""

    looked_at: int
    started: int


class Asked(Struct, frozen=True):
    """What was prepared for a coin, by which settings, and the best that was offered for it."""

    rule: Rule
    settings: PlatformSettings
    prepared: Prepared
    offer: Offer


async def run(db: Database, context: ExchangeContext, hints: Hints) -> Run:
    """Look at a few coins whose time it is. Providers that answer late cost each of them some seconds."""
    rules = await _claim(db, context)
    started = sum(await asyncio.gather(*(_convert(db, context, rule) for rule in rules)))
    if started:
        await hints.publish("outbound", "exchanges")
    return Run(len(rules), started)


async def _claim(db: Database, context: ExchangeContext) -> Sequence[Rule]:
    """Return coins with something to convert, which nobody else looks at for a minute."""
    now = context.clock.now()
    coins = [
        (chain.id, token.symbol, asset_key(chain.id, token.contract))
        for chain in context.registry.chains.values()
        for token in chain.tokens
    ]
    columns = tuple([coin[number] for coin in coins] for number in range(3))
    async with db.transaction() as conn:
        claimed = await conn.exec_driver_sql(_CLAIM, (*columns, now, now + CLAIM, COINS_MAX))
        names = [tuple(row) for row in claimed]
        name = tuple_(CoinSettings.merchant_pk, CoinSettings.mode, CoinSettings.chain, CoinSettings.symbol)
        return [rule_of(row) for row in await conn.execute(select(*COLUMNS).where(name.in_(names)))]


async def _convert(db: Database, context: ExchangeContext, rule: Rule) -> bool:
    """Convert what is available of one coin; return whether an exchange was started. One that fails hurts no other."""
    try:
        return await _try(db, context, rule)
    except Exception:  # a plugin may raise anything
        log.exception("auto_convert_failed", **_names(rule))
        return False


def _names(rule: Rule) -> dict[str, object]:
    return {"merchant": rule.merchant_pk, "mode": rule.mode, "chain": rule.chain, "token": rule.symbol}


async def _try(db: Database, context: ExchangeContext, rule: Rule) -> bool:
    try:
        asked = await _ask(db, context, rule)
    except ServiceError as error:
        log.info("auto_convert_refused", code=error.code, reason=error.message, **_names(rule))
        await _put_off(db, context, rule, error)
        return False
    if asked is None:
        return False
    try:
        async with db.transaction() as conn:
            return await _start(conn, context, asked)
    except ServiceError as error:
        # What was spent meanwhile, or a debt that came: the next run sees it.
        log.info("auto_convert_not_started", code=error.code, reason=error.message, **_names(rule))
        return False


async def _ask(db: Database, context: ExchangeContext, rule: Rule) -> Asked | None:
    """Return what is offered for a coin, None where it has to wait. Raises ServiceError where nobody offers it."""
    async with db.transaction() as conn:
        settings = await platform.load(conn)
        standing = await find_standing(conn, context.registry, settings, rule, context.clock.now())
        if standing.reasons or standing.dest is None:
            return None
        halvings = min(rule.refusals, HALVINGS_MAX) if rule.refusal == TOO_MUCH else 0
        units = Units(standing.available >> halvings)
        wish = Wish(source=standing.source, units=units, dest=standing.dest)
        prepared = await _prepare(conn, context, settings, rule, wish)
    if await too_little(context.rates, standing.source, units, settings) is not None:
        if halvings:
            await _forget(db, context, rule)
        return None
    return Asked(rule, settings, prepared, await best_offer(context, settings, wish, prepared.terms))


async def _prepare(
    conn: AsyncConnection, context: ExchangeContext, settings: PlatformSettings, rule: Rule, wish: Wish
) -> Prepared:
    owner = Owner(project_pk=rule.project_pk, merchant_pk=rule.merchant_pk, mode=rule.mode, asked_by=AskedBy.PLATFORM)
    return await prepare(conn, context, settings, owner, wish, made_for=MadeFor.AUTO)


async def _start(conn: AsyncConnection, context: ExchangeContext, asked: Asked) -> bool:
    """Start the exchange, unless something has changed since it was asked for; return whether it did.

    What was decided is decided again: only behind the coin's lock is seen what others have done, who held it before.
    """
    rule, wish, now = asked.rule, asked.prepared.wish, context.clock.now()
    locked = await conn.execute(select(*COLUMNS).where(*is_coin(rule)).with_for_update(skip_locked=True))
    row = locked.one_or_none()
    if row is None or rule_of(row) != rule:
        return False
    settings = await platform.load(conn)
    if settings.exchanges != asked.settings.exchanges:
        return False
    standing = await find_standing(conn, context.registry, settings, rule, now)
    if standing.reasons or standing.available < wish.units:
        return False
    if await _prepare(conn, context, settings, rule, wish) != asked.prepared:
        return False
    txn_id = context.ids.new("xch")
    new = NewExchange(txn_id=txn_id, settings=settings, prepared=asked.prepared, offer=asked.offer)
    await start_exchange(conn, context, new)
    answered = {"auto_convert_refusal": None, "auto_convert_message": None, "auto_convert_refusals": 0}
    await conn.execute(update(CoinSettings).where(*is_coin(rule)).values(**answered, auto_convert_due_at=now))
    await _record(conn, context, asked, txn_id)
    return True


async def _record(conn: AsyncConnection, context: ExchangeContext, asked: Asked, txn_id: str) -> None:
    rule, offer = asked.rule, asked.offer
    named = select(Merchant.merchant_id, Project.project_id).join(Project, Project.merchant_pk == Merchant.id)
    merchant_id, project_id = (await conn.execute(named.where(Project.id == rule.project_pk))).one()
    told = {
        "chain": rule.chain,
        "token": rule.symbol,
        "units": str(asked.prepared.wish.units),
        "destChain": rule.dest_chain,
        "destToken": rule.dest_token,
        "unitsMin": str(offer.units_min),
        "provider": offer.provider,
    }
    by = replace(GATEWAY, merchant_id=merchant_id, project_id=project_id)
    await record(conn, by, Action.AUTO_CONVERT_MADE, context.clock.now(), subject=txn_id, details=told)


async def _put_off(db: Database, context: ExchangeContext, rule: Rule, error: ServiceError) -> None:
    """Write down why nobody exchanges a coin now, for its merchant to read, and look again later."""
    times = rule.refusals + 1 if rule.refusal == error.code else 1
    pause = PAUSE if error.code == TOO_MUCH else min(PAUSE_MAX, PAUSE * 2 ** min(times - 1, 10))
    refused = {
        "auto_convert_refusal": error.code,
        "auto_convert_message": error.message,
        "auto_convert_refusals": times,
        "auto_convert_due_at": context.clock.now() + pause,
    }
    async with db.transaction() as conn:
        await conn.execute(update(CoinSettings).where(*is_coin(rule)).values(**refused))


async def _forget(db: Database, context: ExchangeContext, rule: Rule) -> None:
    """Ask for all of it again next time: half as much each time has come to less than is worth it."""
    fresh = {"auto_convert_refusal": None, "auto_convert_message": None, "auto_convert_refusals": 0}
    due_at = context.clock.now() + PAUSE_MAX
    async with db.transaction() as conn:
        await conn.execute(update(CoinSettings).where(*is_coin(rule)).values(**fresh, auto_convert_due_at=due_at))
