"""Which deposits are brought to the main wallets: those that are worth it, and those that a payout waits for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.collections import CollectionRule, is_worth_it
from cambist.domain.intents import IntentKind
from cambist.domain.money import value_of
from cambist.plugin import FeeAboveCeilingError, Intent, Plan, Token, Units
from cambist.services.addresses.account_keys import AccountKeys
from cambist.services.addresses.wallets import OwnAddress, gas_station, main_wallet
from cambist.services.platform import load
from cambist.services.pricing.prices import RateUnavailableError
from cambist.services.sending.batches import WAITS_FOR_FUNDS
from cambist.services.sending.context import EngineContext
from cambist.services.sending.intents import NewIntent, submit

UNCOLLECTED_MAX = 500
"""Addresses considered in one go; the oldest, and what is waited for, come first."""
RETRY_AFTER = timedelta(hours=6)

# All confirmed, uncollected deposits of one token on one address, together.
_UNCOLLECTED = f"""
WITH uncollected AS (
    SELECT d.address_pk, d.contract, min(d.token) AS token, min(d.decimals) AS decimals, d.merchant_pk,
           sum(d.units) AS units, min(d.confirmed_at) AS oldest_at
    FROM deposits d JOIN addresses a ON a.id = d.address_pk AND a.purpose IN ('payment', 'account')
    WHERE d.chain = $1 AND d.scope = $2 AND d.status = 'confirmed' AND d.collection_pk IS NULL
    GROUP BY d.address_pk, d.contract, d.merchant_pk
), needed AS (
    SELECT i.merchant_pk, i.contract, sum(i.units) AS units FROM outbound_intents i
    WHERE i.chain = $1 AND i.scope = $2 AND i.state = 'waiting' AND i.reason = $3 GROUP BY i.merchant_pk, i.contract
)
SELECT p.*, src.address, w.units IS NOT NULL AS is_needed
FROM uncollected p JOIN addresses src ON src.id = p.address_pk
    LEFT JOIN needed w ON w.merchant_pk = p.merchant_pk AND w.contract IS NOT DISTINCT FROM p.contract
WHERE NOT EXISTS (
    SELECT FROM outbound_intents i WHERE i.source_address_pk = p.address_pk AND i.chain = $1 AND i.scope = $2
        AND i.kind = '{IntentKind.COLLECTION}' AND i.contract IS NOT DISTINCT FROM p.contract AND i.state = 'failed'
        AND i.finished_at > $4
) AND NOT EXISTS (
    -- The signer would refuse it, and what is swept with it: it is left where it is until it can be sent.
    SELECT FROM chain_tokens t WHERE $2::bigint = 0 AND t.chain = $1 AND t.contract = p.contract AND t.origin = 'added'
        AND t.state IN ('enabled', 'disabled') AND t.sendable IS NOT TRUE
)
ORDER BY is_needed DESC, CASE WHEN w.units IS NULL THEN 0 ELSE p.units END DESC, p.oldest_at LIMIT $5
"""  # noqa: S608  a constant

_NEEDS = f"""
SELECT i.merchant_pk, i.contract, sum(i.units) - coalesce((
        SELECT sum(c.units) FROM outbound_intents c WHERE c.kind = '{IntentKind.COLLECTION}'
            AND c.state IN ('waiting', 'sending') AND c.chain = $1 AND c.scope = $2 AND c.merchant_pk = i.merchant_pk
            AND c.contract IS NOT DISTINCT FROM i.contract
    ), 0) AS units
FROM outbound_intents i WHERE i.chain = $1 AND i.scope = $2 AND i.state = 'waiting' AND i.reason = $3
GROUP BY i.merchant_pk, i.contract
"""  # noqa: S608  a constant


class Uncollected(Struct, frozen=True, kw_only=True):
    """Confirmed deposits of one token on one address."""

    address_pk: int
    address: str
    merchant_pk: int
    token: Token
    units: Units
    oldest_at: datetime


async def collect(context: EngineContext, keys: AccountKeys, *, only_needed: bool = False) -> int:
    """Ask for the collections that are due, or only for those that something waits for; return how many."""
    now = context.clock.now()
    async with context.db.transaction() as conn:
        needs = await _needs(conn, context)
        if only_needed and not any(units > 0 for units in needs.values()):
            return 0
        rule = (await load(conn)).collection
        found = await _uncollected(conn, context, now)
        station = await gas_station(conn, context.chain_scope.info.family, context.chain_scope.mode)
    if not found or station is None:
        return 0
    forced = _covering(found, needs)
    others = [one for one in found if rule.enabled and not only_needed and one not in forced]
    chosen = [*forced, *await _worth(context, others, rule, station.address, now)]
    made = 0
    for one in chosen:
        async with context.db.transaction() as conn:
            wallet = await main_wallet(conn, keys, context.family, one.merchant_pk, context.chain_scope.mode)
            made += await _submit(conn, context, one, wallet, is_forced=one in forced)
    return made


async def _uncollected(conn: AsyncConnection, context: EngineContext, now: datetime) -> Sequence[Uncollected]:
    rows = await conn.exec_driver_sql(
        _UNCOLLECTED, (*context.chain_scope.key, WAITS_FOR_FUNDS, now - RETRY_AFTER, UNCOLLECTED_MAX)
    )
    return [
        Uncollected(
            address_pk=row.address_pk,
            address=row.address,
            merchant_pk=row.merchant_pk,
            token=Token(symbol=row.token, contract=row.contract, decimals=row.decimals, label=row.token),
            units=Units(int(row.units)),
            oldest_at=row.oldest_at,
        )
        for row in rows
    ]


async def _needs(conn: AsyncConnection, context: EngineContext) -> dict[tuple[int, str | None], int]:
    rows = await conn.exec_driver_sql(_NEEDS, (*context.chain_scope.key, WAITS_FOR_FUNDS))
    return {(row.merchant_pk, row.contract): int(row.units) for row in rows}


def _covering(uncollected: Sequence[Uncollected], needs: dict[tuple[int, str | None], int]) -> Sequence[Uncollected]:
    """Choose the largest deposits until what is waited for is there: whatever they are worth, a payout needs them."""
    chosen = []
    for one in uncollected:
        key = (one.merchant_pk, one.token.contract)
        if needs.get(key, 0) > 0:
            needs[key] -= one.units
            chosen.append(one)
    return chosen


async def _worth(
    context: EngineContext, uncollected: Sequence[Uncollected], rule: CollectionRule, station: str, now: datetime
) -> Sequence[Uncollected]:
    if not uncollected:
        return []
    intents = [Intent(source=one.address, to_address=station, token=one.token, amount=one.units) for one in uncollected]
    try:
        plans = await context.chain.plan(intents, sponsor=station)
    except FeeAboveCeilingError:
        return []
    native = context.chain_scope.info.native
    chosen = []
    for one, plan in zip(uncollected, plans, strict=True):
        value, fee = await _value(context, one.token, one.units), await _value(context, native, _cost(plan))
        if plan.refused is None and is_worth_it(value, fee, one.oldest_at, rule, now):
            chosen.append(one)
    return chosen


def _cost(plan: Plan) -> int:
    """Return the fee, and what it costs to bring it there."""
    return plan.sponsoring + (0 if plan.step is None else plan.step.fee.cost_max)


async def _value(context: EngineContext, token: Token, units: int) -> Decimal | None:
    try:
        rate = await context.rates.rate(token.symbol, "usd")
    except RateUnavailableError:
        return None
    return value_of(units, token.decimals, rate.value)


async def _submit(
    conn: AsyncConnection, context: EngineContext, one: Uncollected, wallet: OwnAddress, *, is_forced: bool
) -> int:
    """Claim the deposits that no collection has, and have just as much brought to the wallet."""
    now = context.clock.now()
    rows = await conn.exec_driver_sql(
        "SELECT id, units FROM deposits WHERE chain = $1 AND scope = $2 AND address_pk = $3"
        " AND contract IS NOT DISTINCT FROM $4 AND status = 'confirmed' AND collection_pk IS NULL ORDER BY id"
        " FOR NO KEY UPDATE",
        (*context.chain_scope.key, one.address_pk, one.token.contract),
    )
    deposits = {row.id: int(row.units) for row in rows}
    if not deposits:
        return 0
    reference = f"{IntentKind.COLLECTION}:{context.ids.new('col')}"
    intent = NewIntent(
        reference=reference,
        kind=IntentKind.COLLECTION,
        chain_scope=context.chain_scope,
        merchant_pk=one.merchant_pk,
        source_pk=one.address_pk,
        recipient_pk=wallet.pk,
        to_address=wallet.address,
        token=one.token,
        units=Units(sum(deposits.values())),
        forced=is_forced,
    )
    intent_pk = (await submit(conn, [intent], now))[reference]
    await conn.exec_driver_sql(
        "UPDATE deposits SET collection_pk = $2 WHERE id = ANY($1::bigint[])", (list(deposits), intent_pk)
    )
    return 1
