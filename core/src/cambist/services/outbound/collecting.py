"""Which deposits are brought to the main wallets: those that are worth it, and those that a payout waits for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.collections import Holding, WorthRule, is_worth_it
from cambist.plugin import FeeAboveCeilingError, Intent, Plan, Token, Units
from cambist.services.keys import AccountKeys
from cambist.services.platform import load
from cambist.services.prices import RateUnavailableError
from cambist.services.wallet_addresses import OwnAddress, gas_station, main_wallet

from .desk import Desk
from .intents import NewIntent, submit
from .sending import WAITS_FOR_FUNDS

PILES_MAX = 500
"""Addresses considered in one go; the oldest, and what is waited for, come first."""
RETRY_AFTER = timedelta(hours=6)
COLLECTION_PRIORITY = 50

# A pile is what all settled, uncollected deposits of one token have left on one address.
_PILES = """
WITH piles AS (
    SELECT d.address_id, d.contract, min(d.token) AS token, min(d.decimals) AS decimals, d.merchant_id,
           sum(d.units) AS units, min(d.settled_at) AS oldest_at
    FROM deposits d JOIN addresses a ON a.id = d.address_id AND a.purpose = 'payment'
    WHERE d.chain = $1 AND d.scope = $2 AND d.status = 'settled' AND d.collection_id IS NULL
    GROUP BY d.address_id, d.contract, d.merchant_id
), wanted AS (
    SELECT i.merchant_id, i.contract, sum(i.units) AS units FROM outbound_intents i
    WHERE i.chain = $1 AND i.scope = $2 AND i.state = 'waiting' AND i.reason = $3 GROUP BY i.merchant_id, i.contract
)
SELECT p.*, src.address, w.units IS NOT NULL AS is_wanted
FROM piles p JOIN addresses src ON src.id = p.address_id
    LEFT JOIN wanted w ON w.merchant_id = p.merchant_id AND w.contract IS NOT DISTINCT FROM p.contract
WHERE NOT EXISTS (
    SELECT FROM outbound_intents i WHERE i.source_address_id = p.address_id AND i.chain = $1 AND i.scope = $2
        AND i.kind = 'collection' AND i.contract IS NOT DISTINCT FROM p.contract AND i.state = 'failed'
        AND i.finished_at > $4
)
ORDER BY is_wanted DESC, CASE WHEN w.units IS NULL THEN 0 ELSE p.units END DESC, p.oldest_at LIMIT $5
"""

_NEEDS = """
SELECT i.merchant_id, i.contract, sum(i.units) - coalesce((
        SELECT sum(c.units) FROM outbound_intents c WHERE c.kind = 'collection' AND c.state IN ('waiting', 'sending')
            AND c.chain = $1 AND c.scope = $2 AND c.merchant_id = i.merchant_id
            AND c.contract IS NOT DISTINCT FROM i.contract
    ), 0) AS units
FROM outbound_intents i WHERE i.chain = $1 AND i.scope = $2 AND i.state = 'waiting' AND i.reason = $3
GROUP BY i.merchant_id, i.contract
"""


class Pile(Struct, frozen=True, kw_only=True):
    """Settled deposits of one token on one address."""

    address_row: int
    address: str
    merchant_row: int
    token: Token
    units: Units
    oldest_at: datetime


async def collect(desk: Desk, keys: AccountKeys, *, only_needed: bool = False) -> int:
    """Ask for the collections that are due, or only for those that something waits for; return how many."""
    now = desk.clock.now()
    async with desk.db.transaction() as conn:
        needs = await _needs(conn, desk)
        if only_needed and not any(units > 0 for units in needs.values()):
            return 0
        rule = (await load(conn)).collection
        piles = await _piles(conn, desk, now)
        station = await gas_station(conn, desk.site.info.family, desk.site.mode)
    if not piles or station is None:
        return 0
    forced = _covering(piles, needs)
    worth = WorthRule(
        value_min=Decimal(rule.min_value_usd),
        fee_share_bps_max=rule.max_fee_share_bps,
        age_max=timedelta(hours=rule.max_age_hours),
    )
    others = [pile for pile in piles if rule.enabled and not only_needed and pile not in forced]
    chosen = [*forced, *await _worth(desk, others, worth, station.address, now)]
    made = 0
    for pile in chosen:
        async with desk.db.transaction() as conn:
            wallet = await main_wallet(conn, keys, desk.family, pile.merchant_row, desk.site.mode)
            made += await _submit(conn, desk, pile, wallet, is_forced=pile in forced)
    return made


async def _piles(conn: AsyncConnection, desk: Desk, now: datetime) -> Sequence[Pile]:
    rows = await conn.exec_driver_sql(_PILES, (*desk.site.key, WAITS_FOR_FUNDS, now - RETRY_AFTER, PILES_MAX))
    return [
        Pile(
            address_row=row.address_id,
            address=row.address,
            merchant_row=row.merchant_id,
            token=Token(symbol=row.token, contract=row.contract, decimals=row.decimals, label=row.token),
            units=Units(int(row.units)),
            oldest_at=row.oldest_at,
        )
        for row in rows
    ]


async def _needs(conn: AsyncConnection, desk: Desk) -> dict[tuple[int, str | None], int]:
    rows = await conn.exec_driver_sql(_NEEDS, (*desk.site.key, WAITS_FOR_FUNDS))
    return {(row.merchant_id, row.contract): int(row.units) for row in rows}


def _covering(piles: Sequence[Pile], needs: dict[tuple[int, str | None], int]) -> Sequence[Pile]:
    """Choose the largest piles until what is waited for is there: whatever they are worth, a payout needs them."""
    chosen = []
    for pile in piles:
        key = (pile.merchant_row, pile.token.contract)
        if needs.get(key, 0) > 0:
            needs[key] -= pile.units
            chosen.append(pile)
    return chosen


async def _worth(desk: Desk, piles: Sequence[Pile], rule: WorthRule, station: str, now: datetime) -> Sequence[Pile]:
    if not piles:
        return []
    wanted = [Intent(source=one.address, target=station, token=one.token, amount=one.units) for one in piles]
    try:
        plans = await desk.chain.plan(wanted, sponsor=station)
    except FeeAboveCeilingError:
        return []
    native = desk.site.info.native
    chosen = []
    for pile, plan in zip(piles, plans, strict=True):
        holding = Holding(
            value=await _value(desk, pile.token, pile.units),
            fee=await _value(desk, native, _cost(plan)),
            oldest_at=pile.oldest_at,
        )
        if plan.refused is None and is_worth_it(holding, rule, now):
            chosen.append(pile)
    return chosen


def _cost(plan: Plan) -> int:
    """Return the fee, and what it costs to bring it there."""
    return plan.sponsoring + (0 if plan.step is None else plan.step.fee.cost_max)


async def _value(desk: Desk, token: Token, units: int) -> Decimal | None:
    try:
        rate = await desk.rates.rate(token.symbol, "usd")
    except RateUnavailableError:
        return None
    return Decimal(units).scaleb(-token.decimals) * rate.value


async def _submit(conn: AsyncConnection, desk: Desk, pile: Pile, wallet: OwnAddress, *, is_forced: bool) -> int:
    """Take the pile's deposits that nobody else has taken, and have just as much brought to the wallet."""
    now = desk.clock.now()
    rows = await conn.exec_driver_sql(
        "SELECT id, units FROM deposits WHERE chain = $1 AND scope = $2 AND address_id = $3"
        " AND contract IS NOT DISTINCT FROM $4 AND status = 'settled' AND collection_id IS NULL ORDER BY id"
        " FOR NO KEY UPDATE",
        (*desk.site.key, pile.address_row, pile.token.contract),
    )
    deposits = {row.id: int(row.units) for row in rows}
    if not deposits:
        return 0
    reference = f"collection:{desk.ids.new('col')}"
    intent = NewIntent(
        reference=reference,
        kind="collection",
        mode=desk.site.mode,
        chain=desk.site.info.id,
        scope=desk.site.scope,
        merchant_row=pile.merchant_row,
        source_row=pile.address_row,
        recipient_row=wallet.row,
        target=wallet.address,
        token=pile.token,
        units=Units(sum(deposits.values())),
        priority=COLLECTION_PRIORITY,
        forced=is_forced,
    )
    row = (await submit(conn, [intent], now))[reference]
    await conn.exec_driver_sql(
        "UPDATE deposits SET collection_id = $2 WHERE id = ANY($1::bigint[])", (list(deposits), row)
    )
    return 1
