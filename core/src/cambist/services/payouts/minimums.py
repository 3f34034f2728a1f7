"""The least that a payout of each token may be where the operator sets no minimum: what its transfer may cost.

The worker has every live chain plan a transfer of each token to an address that was never used, which sends nothing,
and stores the fee in the token itself. What a payout is judged by is that, times ``payoutMinimumFees``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import structlog
from msgspec import Struct, structs
from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.engine import Database
from cambist.db.structs import columns_of, one_of, to_struct
from cambist.deadlines import within
from cambist.domain.branches import WALLET_BRANCH
from cambist.domain.money import AmountError, fiat_to_units, value_of
from cambist.plugin import AddressFamily, Chain, ChainInfo, FeeAboveCeilingError, Intent, Plan, Token, Units
from cambist.services.addresses.account_keys import INDEXES, AccountKeys
from cambist.services.addresses.wallets import gas_station
from cambist.services.platform import PlatformSettings
from cambist.services.pricing import price_points

log = structlog.get_logger(__name__)

MODE = "live"
AGE_MAX = timedelta(hours=1)
"""An older minimum counts no more: fees and prices have moved on, and nobody has looked."""
CHAIN_TIMEOUT_S = 20
UNUSED_INDEX = INDEXES - 1
"""The platform's own address of this index, on the branch of its wallets, is given to nobody."""


class PayoutMinimum(Struct, frozen=True, kw_only=True):
    """What a transfer of a token costs in the token, the fee in native units that says so, and the prices in USD."""

    chain: str
    symbol: str
    units: Units
    fee_units: Units
    native_price: Decimal | None
    token_price: Decimal | None
    derived_at: datetime


async def derive_all(
    db: Database, keys: AccountKeys, families: Mapping[str, AddressFamily], chains: Mapping[str, Chain], now: datetime
) -> None:
    """Derive the minimums of every token; those of a chain that cannot be asked stay as they were, and grow old."""
    await asyncio.gather(*(_try(db, keys, families[chain.info.family], chain, now) for chain in chains.values()))


async def _try(db: Database, keys: AccountKeys, family: AddressFamily, chain: Chain, now: datetime) -> None:
    try:
        await within(CHAIN_TIMEOUT_S, derive(db, keys, family, chain, now))
    except Exception as error:  # noqa: BLE001  trouble of one chain must not take the others along
        log.warning("payout_minimums_unknown", chain=chain.info.id, error=f"{type(error).__name__}: {error}")


async def derive(db: Database, keys: AccountKeys, family: AddressFamily, chain: Chain, now: datetime) -> None:
    """Derive the minimums of a chain's tokens: those that can be planned, and have a price where they need one.

    Does nothing before the worker has derived the gas station's address. Raises ChainError; while fees are above the
    ceiling, of all or of one token, the minimums that were derived below it hold on, as the least that they would be.
    """
    info = chain.info
    async with db.transaction() as conn:
        station = await gas_station(conn, info.family, MODE)
        if station is None:
            return
        key = await keys.get(conn, None, MODE, family.coin_type)
        prices = await price_points.values_at(conn, [(token.symbol, now) for token in info.tokens])
    unused = family.derive_address(key.xpub, WALLET_BRANCH, UNUSED_INDEX)
    intents = [
        Intent(source=station.address, to_address=unused, token=token, amount=token.least_units)
        for token in info.tokens
    ]
    try:
        plans = await chain.plan(intents, sponsor=station.address)
    except FeeAboveCeilingError:
        await _renew(db, info, [token.symbol for token in info.tokens], now)
        raise
    dear = [token.symbol for token, plan in zip(info.tokens, plans, strict=True) if plan.above_ceiling is not None]
    if dear:
        await _renew(db, info, dear, now)
    known = dict(zip(info.tokens, prices, strict=True))
    found = [_minimum(info, token, known, plan, now) for token, plan in zip(info.tokens, plans, strict=True)]
    rows = [structs.asdict(one) for one in found if one is not None]
    if rows:
        new = insert(models.PayoutMinimum)
        changed = {name: new.excluded[name] for name in PayoutMinimum.__struct_fields__}
        async with db.transaction() as conn:
            await conn.execute(new.on_conflict_do_update(index_elements=["chain", "symbol"], set_=changed), rows)


async def _renew(db: Database, info: ChainInfo, symbols: Sequence[str], now: datetime) -> None:
    minimum = models.PayoutMinimum
    renewed = update(minimum).where(minimum.chain == info.id, one_of(minimum.symbol, symbols)).values(derived_at=now)
    async with db.transaction() as conn:
        await conn.execute(renewed)


def _minimum(
    info: ChainInfo, token: Token, prices: Mapping[Token, Decimal | None], plan: Plan, now: datetime
) -> PayoutMinimum | None:
    if plan.step is None:
        return None
    units = fee = plan.step.fee.cost_max
    native_price = token_price = None
    if not token.is_native:
        # The gas station's stake is not for this transfer: what it covers now is gone when others have used it. Coin
        # needs none, and what is said to be covered of its transfer is paid with the price of the recipient's account.
        fee = structs.replace(plan.step.fee, covered=0).cost_max
        native_price, token_price = prices[info.native], prices[token]
        if native_price is None or token_price is None:
            return None
        try:
            units = fiat_to_units(value_of(fee, info.native.decimals, native_price), token_price, token.decimals)
        except AmountError:
            return None
    return PayoutMinimum(
        chain=info.id,
        symbol=token.symbol,
        units=units,
        fee_units=fee,
        native_price=native_price,
        token_price=token_price,
        derived_at=now,
    )


COST = "SELECT units FROM payout_minimums WHERE chain = {chain} AND symbol = {symbol} AND derived_at > {since}"
"""What a transfer costs, in SQL; ``since`` is ``AGE_MAX`` ago."""


def by_cost(settings: PlatformSettings, mode: str, units: Decimal | None) -> Units | None:
    """Return the least that a payout may be by what it costs, in units; None where nobody knows, and in sandbox."""
    if mode != MODE or not settings.payout_minimum_fees or units is None:
        return None
    return Units(int(units) * settings.payout_minimum_fees)


async def list_in_force(conn: AsyncConnection, settings: PlatformSettings, now: datetime) -> Sequence[PayoutMinimum]:
    """Return the minimums that count now, with ``units`` as payouts are judged by them."""
    if not settings.payout_minimum_fees:
        return []
    minimum = models.PayoutMinimum
    rows = await conn.execute(
        select(*columns_of(PayoutMinimum, minimum))
        .where(minimum.derived_at > now - AGE_MAX)
        .order_by(minimum.chain, minimum.symbol)
    )
    found = [to_struct(PayoutMinimum, row) for row in rows]
    return [
        structs.replace(one, units=Units(one.units * settings.payout_minimum_fees))
        for one in found
        if (limit := settings.limit_of(one.chain, one.symbol)) is None or limit.minimum is None
    ]
