"""What tokens were worth over a time, by the prices that were written down."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.money import minor_units
from cambist.domain.prices import Rate

from .spans import Span

AGE_MAX = timedelta(hours=2)
"""Where none was written down within a part, the last one before counts if it is no older than this."""
_EXACT = Context(prec=400)

_PRICES = """
SELECT w.symbol, w.part, coalesce(
    (SELECT avg(p.value) FROM price_points p WHERE p.symbol = w.symbol AND p.fiat_currency = $5
        AND p.observed_at >= w.begins AND p.observed_at < w.ends),
    (SELECT p.value FROM price_points p WHERE p.symbol = w.symbol AND p.fiat_currency = $5
        AND p.observed_at < w.begins AND p.observed_at >= w.begins - $6::interval
        ORDER BY p.observed_at DESC LIMIT 1)
) AS price
FROM unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::timestamptz[]) AS w (symbol, part, begins, ends)
"""
_LATEST = """
SELECT w.symbol, p.value, p.source, p.observed_at FROM unnest($1::text[]) AS w (symbol)
CROSS JOIN LATERAL (
    SELECT value, source, observed_at FROM price_points WHERE symbol = w.symbol AND fiat_currency = $2
        AND observed_at <= $3 AND observed_at >= $3 - $4::interval ORDER BY observed_at DESC LIMIT 1
) AS p
"""


async def prices_in(
    conn: AsyncConnection, wanted: Collection[tuple[str, int]], span: Span, currency: str
) -> Mapping[tuple[str, int], Decimal]:
    """Return the mean price of each symbol within each part of a span that is wanted, without those nobody knows."""
    pairs = sorted({(symbol.upper(), part) for symbol, part in wanted})
    if not pairs:
        return {}
    symbols, parts = [symbol for symbol, _ in pairs], [part for _, part in pairs]
    begins, ends = [span.edges[part] for part in parts], [span.edges[part + 1] for part in parts]
    found = await conn.exec_driver_sql(_PRICES, (symbols, parts, begins, ends, currency, AGE_MAX))
    return {(row.symbol, row.part): row.price for row in found if row.price is not None}


async def latest_prices(
    conn: AsyncConnection, symbols: Collection[str], currency: str, now: datetime
) -> Mapping[str, Rate]:
    """Return what each symbol cost last, who said so and as of when, without those nobody knows."""
    wanted = sorted({symbol.upper() for symbol in symbols})
    found = await conn.exec_driver_sql(_LATEST, (wanted, currency, now, AGE_MAX))
    return {row.symbol: Rate(value=row.value, source=row.source, observed_at=row.observed_at) for row in found}


def fiat_text(values: Iterable[Decimal], currency: str) -> str:
    """Write what is worth so much together, rounded once to the currency's smallest unit."""
    total = Decimal(0)
    for value in values:
        total = _EXACT.add(total, value)
    step = Decimal(1).scaleb(-minor_units(currency))
    rounded = total.quantize(step, rounding=ROUND_HALF_EVEN, context=_EXACT)
    return format(rounded or abs(rounded), "f")  # nothing has no sign
