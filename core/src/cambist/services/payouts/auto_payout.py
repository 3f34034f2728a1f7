"""The policy ``limit``: what available holds above a coin's threshold goes to an approved address, by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import compress

import structlog
from msgspec.structs import replace
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import CoinSettings, Merchant, Project
from cambist.db.structs import AnyRow, columns_of, to_struct
from cambist.domain.destinations import split
from cambist.domain.intents import IntentKind
from cambist.domain.money import value_of
from cambist.hints import Hints
from cambist.plugin import Units
from cambist.services import platform
from cambist.services.accounting.ledger import Purpose, asset_key, lock_balances
from cambist.services.actor import Actor
from cambist.services.audit.entries import GATEWAY, Action, record
from cambist.services.errors import ForbiddenError, ServiceError, UnavailableError
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.prices import RateBook
from cambist.services.pricing.quotes import Asset

from . import limits
from .approved_addresses import is_approved
from .create import require_payouts
from .queue import NewPayout, PayoutContext, debit_and_queue

log = structlog.get_logger(__name__)

COINS_MAX = 500
"""Coins looked at in one run; they are picked by chance, so that those that cannot be paid keep nobody back."""


# A payout of the coin that is under way has to end first: so what is above the threshold is sent once, not twice.
_DUE = f"""
SELECT c.merchant_pk, c.mode, c.chain, c.symbol, c.autopayout_threshold AS threshold, a.balance,
       c.autopayout_address AS to_address
FROM coin_settings c
    JOIN unnest($1::text[], $2::text[], $3::text[]) AS t (chain, symbol, asset)
        ON t.chain = c.chain AND t.symbol = c.symbol
    JOIN ledger_accounts a ON a.merchant_pk = c.merchant_pk AND a.mode = c.mode AND a.asset = t.asset
        AND a.purpose = 'available'
WHERE c.autopayout_policy = 'limit' AND c.enabled AND a.balance > c.autopayout_threshold
    AND EXISTS (SELECT FROM approved_addresses p WHERE p.merchant_pk = c.merchant_pk AND p.mode = c.mode
        AND p.chain = c.chain AND p.address = c.autopayout_address)
    AND NOT EXISTS (SELECT FROM merchants m WHERE m.id = c.merchant_pk AND m.suspended_at IS NOT NULL)
    AND NOT EXISTS (SELECT FROM payouts o WHERE o.merchant_pk = c.merchant_pk AND o.mode = c.mode AND o.chain = c.chain
        AND o.token = c.symbol AND o.kind = '{IntentKind.AUTO_PAYOUT}'
        AND o.status IN ('requested', 'processing', 'broadcast', 'cancelling'))
"""  # noqa: S608  a constant


async def run(db: Database, context: PayoutContext, rates: RateBook, hints: Hints) -> int:
    """Queue what is due; return how many payouts that were. Any number of workers may do so at once."""
    assets = {
        (chain.id, token.symbol): Asset(chain, token)
        for chain in context.registry.chains.values()
        for token in chain.tokens
    }
    async with db.autocommit() as conn:
        settings = await platform.load(conn)
        due = await _due(conn, assets) if settings.payout_enabled else []
    worth = await asyncio.gather(
        *(
            is_worth_it(rates, assets[row.chain, row.symbol], int(row.balance) - int(row.threshold), settings)
            for row in due
        )
    )
    queued = 0
    for row in compress(due, worth):
        try:
            async with db.transaction() as conn:
                queued += await _pay(conn, context, row, assets)
        except ServiceError as error:
            # A limit, credits that are used up, a chain that is away: the next run tries again.
            log.info(
                "auto_payout_refused", merchant=row.merchant_pk, chain=row.chain, token=row.symbol, code=error.code
            )
    if queued:
        await hints.publish("outbound")
    return queued


async def _due(
    conn: AsyncConnection, assets: dict[tuple[str, str], Asset], coin: tuple[int, str, str, str] | None = None
) -> Sequence[AnyRow]:
    columns = (
        [chain for chain, _ in assets],
        [symbol for _, symbol in assets],
        [asset_key(asset.chain.id, asset.token.contract) for asset in assets.values()],
    )
    if coin is None:
        return (await conn.exec_driver_sql(f"{_DUE} ORDER BY random() LIMIT $4", (*columns, COINS_MAX))).all()
    one = " AND c.merchant_pk = $4 AND c.mode = $5 AND c.chain = $6 AND c.symbol = $7"
    return (await conn.exec_driver_sql(_DUE + one, (*columns, *coin))).all()


async def is_worth_it(rates: RateBook, asset: Asset, units: int, settings: PlatformSettings) -> bool:
    """Whether it is worth the least that collecting is worth; where nobody knows a price, everything is.

    Ask about many at the same moment: one after the other, each is a question to the sources, which are paced.
    """
    try:
        rate = await rates.rate(asset.token.symbol, "usd")
    except UnavailableError:
        return True
    return value_of(units, asset.token.decimals, rate.value) >= settings.collection.min_value


async def _pay(conn: AsyncConnection, context: PayoutContext, row: AnyRow, assets: dict[tuple[str, str], Asset]) -> int:
    """Queue one coin's payout, where it is still due; return whether it was."""
    own = (
        CoinSettings.merchant_pk == row.merchant_pk,
        CoinSettings.mode == row.mode,
        CoinSettings.chain == row.chain,
        CoinSettings.symbol == row.symbol,
    )
    rule = select(CoinSettings.autopayout_project_pk).where(*own).with_for_update(skip_locked=True)
    locked = (await conn.execute(rule)).one_or_none()
    if locked is None:
        return 0
    # Only now is seen what others have committed, who held the lock before.
    found = await _due(conn, assets, (row.merchant_pk, row.mode, row.chain, row.symbol))
    if not found:
        return 0
    due = found[0]
    if not await is_approved(conn, row.merchant_pk, row.mode, row.chain, due.to_address, lock=True):
        return 0
    actor = await _actor(conn, row.merchant_pk, row.mode, locked.autopayout_project_pk)
    asset = assets[row.chain, row.symbol]
    settings = await require_payouts(conn, actor, asset)
    units = await _allowed(conn, context, settings, actor, asset, int(due.balance) - int(due.threshold))
    if units <= 0:
        return 0
    to_address, to_tag = split(context.registry.families[asset.chain.family], due.to_address)
    new = NewPayout.of(actor, IntentKind.AUTO_PAYOUT, context.ids.new("po"), asset, to_address, units, to_tag)
    await debit_and_queue(conn, context, settings, [new])
    await _check_left(conn, new, int(due.threshold))
    by = replace(GATEWAY, merchant_id=actor.merchant_id, project_id=actor.project_id)
    told = {"chain": row.chain, "token": row.symbol, "units": str(units), "toAddress": due.to_address}
    await record(conn, by, Action.AUTO_PAYOUT_MADE, context.clock.now(), subject=new.payout_id, details=told)
    return 1


async def _check_left(conn: AsyncConnection, new: NewPayout, threshold: int) -> None:
    """Refuse where less than the threshold is left, as something else was paid since it was read what is available.

    The account is locked by now. Raises ForbiddenError; what is above the threshold goes in the next run.
    """
    available = new.account(Purpose.AVAILABLE)
    if (await lock_balances(conn, new.mode, [available]))[available] < threshold:
        raise ForbiddenError("INSUFFICIENT_BALANCE", "Something else was paid meanwhile.")


async def _actor(conn: AsyncConnection, merchant_pk: int, mode: str, rule_project_pk: int | None) -> Actor:
    """Return who pays: the project that set the rule, or another one of the mode where that is gone."""
    projects = select(*columns_of(Actor, Project, project_pk=Project.id, merchant_id=Merchant.merchant_id))
    found = await conn.execute(
        projects.join(Merchant, Merchant.id == Project.merchant_pk)
        .where(Project.merchant_pk == merchant_pk, Project.mode == mode)
        .order_by((Project.id == rule_project_pk).desc(), Project.is_active.desc(), Project.id)
        .limit(1)
    )
    return to_struct(Actor, found.one())


async def _allowed(  # noqa: PLR0913, PLR0917  what is judged of one transfer
    conn: AsyncConnection, context: PayoutContext, settings: PlatformSettings, actor: Actor, asset: Asset, units: int
) -> Units:
    """Return how much of it the operator's limits let through now; the rest goes another time."""
    now = context.clock.now()
    found = await limits.limits_of(conn, settings, actor.merchant_pk, actor.mode, asset, now)
    if found.per_transaction is not None:
        units = min(units, found.per_transaction)
    if found.per_day is not None:
        sent = await limits.sent_today(conn, actor.merchant_pk, actor.mode, asset.chain, asset.token, now)
        units = min(units, found.per_day - sent)
    return Units(units)
