"""What tokens cost over time: written down every few minutes, for statements that tell what money was worth."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import PricePoint
from cambist.domain.prices import Rate
from cambist.registry import Registry

from .prices import BATCH_MAX, RateBook, RateUnavailableError

CURRENCY = "usd"
FINE_FOR = timedelta(days=30)
"""For so long every point is kept; of older ones, the first of each hour."""
AGE_MAX = timedelta(hours=2)
"""A price this much older than what it is asked for says nothing about it."""

# Only what has become old since the last time or two is looked at: older hours are thinned out already.
_THIN_OUT = """
DELETE FROM price_points p WHERE p.symbol = ANY($1::text[]) AND p.fiat_currency = ANY($2::text[])
    AND p.observed_at < $3 AND p.observed_at >= $3 - interval '2 days'
    AND EXISTS (
        SELECT FROM price_points earlier WHERE earlier.symbol = p.symbol AND earlier.fiat_currency = p.fiat_currency
            AND earlier.observed_at < p.observed_at
            AND earlier.observed_at >= date_trunc('hour', p.observed_at, 'UTC')
    )
"""
_VALUES_AT = """
SELECT point.value FROM unnest($1::text[], $2::timestamptz[]) WITH ORDINALITY AS w (symbol, at, number)
LEFT JOIN LATERAL (
    SELECT value FROM price_points p WHERE p.symbol = w.symbol AND p.fiat_currency = $3
        AND p.observed_at <= w.at AND p.observed_at >= w.at - $4::interval
    ORDER BY p.observed_at DESC LIMIT 1
) AS point ON true ORDER BY w.number
"""


def symbols_of(registry: Registry, *, live: bool = False) -> Sequence[str]:
    """Return every symbol that something can be paid in, as prices know it: in upper case; on ``live`` chains alone."""
    chains = [chain for chain in registry.chains.values() if not live or chain.availability == "live"]
    return sorted({token.symbol.upper() for chain in chains for token in chain.tokens})


async def record(
    db: Database, rates: RateBook, symbols: Iterable[str], now: datetime, currencies: Collection[str] = ()
) -> int:
    """Write down what every token costs now, thin out what is old, and return how many prices were known.

    In US dollars always, and in these currencies besides.
    """
    symbols, wanted = list(symbols), sorted({CURRENCY, *currencies})
    found = await _ask(rates, symbols, wanted)
    async with db.transaction() as conn:
        if found:
            await conn.execute(insert(PricePoint).on_conflict_do_nothing(), found)
        await conn.exec_driver_sql(_THIN_OUT, (symbols, wanted, now - FINE_FOR))
    return len(found)


async def _ask(rates: RateBook, symbols: Sequence[str], currencies: Sequence[str]) -> Sequence[Mapping[str, object]]:
    async def ask(symbol: str, currency: str) -> Rate | None:
        try:
            return await rates.rate(symbol, currency)
        except RateUnavailableError:
            return None

    pairs = [(symbol, currency) for symbol in symbols for currency in currencies]
    answers: list[Rate | None] = []
    for first in range(0, len(pairs), BATCH_MAX):
        # What is asked for at once is one question to the sources.
        answers += await asyncio.gather(*(ask(*pair) for pair in pairs[first : first + BATCH_MAX]))
    return [
        {"symbol": symbol, "fiat_currency": currency, **msgspec.structs.asdict(rate)}
        for (symbol, currency), rate in zip(pairs, answers, strict=True)
        if rate is not None
    ]


async def values_at(conn: AsyncConnection, moments: Sequence[tuple[str, datetime]]) -> Sequence[Decimal | None]:
    """Return what one of each token cost at its moment, None where no price of about that time is known."""
    found = await conn.exec_driver_sql(
        _VALUES_AT, ([symbol.upper() for symbol, _ in moments], [at for _, at in moments], CURRENCY, AGE_MAX)
    )
    values: Sequence[Decimal | None] = found.scalars().all()
    return values
