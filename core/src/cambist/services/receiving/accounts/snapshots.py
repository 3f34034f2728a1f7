"""What a deposit to an account was worth when it was first seen, in several currencies, frozen with source and time.

A poll asks nobody: it takes the price points that are fresh enough. Where one lacks, the deposit is stored without it,
and a job fills it in from the point that is nearest to when it was first seen; after two hours it says that there was
no price.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.money import format_rate, minor_units, value_of
from cambist.services.pricing.price_points import AGE_MAX

CURRENCIES = ("usd", "eur")
"""What deposits are valued in unless the operator says otherwise."""
FRESH = timedelta(minutes=15)
"""Price points are written down every five minutes, and may be some minutes old then: what is not older is the price
of now."""
NO_NEARER_AFTER = timedelta(minutes=15)
"""So long after a deposit was first seen no nearer price will come."""
FILLED_MAX = 500

PENDING, NO_PRICE = "pending", "no_price"

_EXACT = Context(prec=200)


class Point(Struct, frozen=True, rename="camel"):
    """A price as a snapshot keeps it: of one whole token, as text."""

    rate: str
    source: str
    observed_at: datetime


class FiatValue(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a deposit was worth in one currency: its amount times ``rate``, which ``source`` told at ``observed_at``."""

    currency: str
    amount: str
    rate: str
    source: str
    observed_at: datetime


Snapshot = Mapping[str, Point]
"""Prices of one token, by currency."""

_decoder = msgspec.json.Decoder(dict[str, Point])

_FRESH_POINTS = """
SELECT w.symbol, c.currency, p.value, p.source, p.observed_at
FROM unnest($1::text[]) AS w (symbol) CROSS JOIN unnest($2::text[]) AS c (currency)
CROSS JOIN LATERAL (
    SELECT value, source, observed_at FROM price_points p
    WHERE p.symbol = w.symbol AND p.fiat_currency = c.currency AND p.observed_at <= $3
        AND p.observed_at >= $3 - $4::interval
    ORDER BY p.observed_at DESC LIMIT 1
) p
"""

_PENDING = """
SELECT d.id, upper(d.token) AS symbol, d.first_seen_at, d.fiat::text AS fiat FROM deposits d
WHERE d.fiat_reason = 'pending' AND d.id > $1 ORDER BY d.id LIMIT $2
"""

# Of the last point before and the first one after, the nearer one.
_NEAREST = """
SELECT w.id, c.currency, p.value, p.source, p.observed_at
FROM unnest($1::bigint[], $2::text[], $3::timestamptz[]) AS w (id, symbol, at)
CROSS JOIN unnest($4::text[]) AS c (currency)
CROSS JOIN LATERAL (
    SELECT * FROM (
        (SELECT value, source, observed_at FROM price_points q WHERE q.symbol = w.symbol
             AND q.fiat_currency = c.currency AND q.observed_at <= w.at AND q.observed_at >= w.at - $5::interval
         ORDER BY q.observed_at DESC LIMIT 1)
        UNION ALL
        (SELECT value, source, observed_at FROM price_points q WHERE q.symbol = w.symbol
             AND q.fiat_currency = c.currency AND q.observed_at > w.at AND q.observed_at <= w.at + $5::interval
         ORDER BY q.observed_at LIMIT 1)
    ) both_sides ORDER BY greatest(observed_at - w.at, w.at - observed_at) LIMIT 1
) p
"""


async def fresh_points(
    conn: AsyncConnection, symbols: Collection[str], currencies: Sequence[str], now: datetime
) -> Mapping[str, Snapshot]:
    """Return what is known of each symbol's price now, in the currencies in which it is."""
    wanted = sorted({symbol.upper() for symbol in symbols})
    if not wanted:
        return {}
    found: dict[str, dict[str, Point]] = {symbol: {} for symbol in wanted}
    for row in await conn.exec_driver_sql(_FRESH_POINTS, (wanted, list(currencies), now, FRESH)):
        found[row.symbol][row.currency] = _point(row)
    return found


def encode(snapshot: Snapshot, currencies: Sequence[str]) -> tuple[str | None, str | None]:
    """Return what a deposit stores of a snapshot: its JSON, and ``pending`` where a currency lacks."""
    reason = PENDING if any(currency not in snapshot for currency in currencies) else None
    return (_encode(snapshot) if snapshot else None), reason


def show(fiat: str | None, units: int, decimals: int) -> Sequence[FiatValue]:
    """Return what a deposit of so many units was worth, from its stored JSON, by currency."""
    if fiat is None:
        return ()
    return [
        FiatValue(
            currency=currency,
            amount=_worth(units, decimals, Decimal(point.rate), currency),
            rate=point.rate,
            source=point.source,
            observed_at=point.observed_at,
        )
        for currency, point in sorted(_decoder.decode(fiat).items())
    ]


async def fill(
    conn: AsyncConnection, currencies: Sequence[str], now: datetime, after: int = 0, limit: int = FILLED_MAX
) -> int | None:
    """Fill in what snapshots lack, of so many deposits behind the primary key ``after``, where a price is known.

    Returns the last primary key looked at, where others may follow it. A point is taken once none that is nearer can
    come: when there is a later one than that, or a quarter of an hour has passed.
    """
    rows = (await conn.exec_driver_sql(_PENDING, (after, limit))).all()
    if not rows:
        return None
    nearest = await _nearest(conn, rows, currencies)
    changed = []
    for row in rows:
        snapshot: dict[str, Point] = {} if row.fiat is None else _decoder.decode(row.fiat)
        before = len(snapshot)
        for currency, point in nearest.get(row.id, {}).items():
            is_nearest = point.observed_at >= row.first_seen_at or now - row.first_seen_at >= NO_NEARER_AFTER
            if currency not in snapshot and is_nearest:
                snapshot[currency] = point
        fiat, reason = encode(snapshot, currencies)
        if reason is not None and now - row.first_seen_at > AGE_MAX:
            reason = NO_PRICE
        if reason != PENDING or len(snapshot) > before:
            changed.append((row.id, fiat, reason))
    if changed:
        ids, fiats, reasons = (list(column) for column in zip(*changed, strict=True))
        await conn.exec_driver_sql(
            "WITH due AS (SELECT id FROM deposits WHERE id = ANY($1::bigint[]) AND fiat_reason = 'pending' ORDER BY id"
            " FOR NO KEY UPDATE) UPDATE deposits d SET fiat = n.fiat::jsonb, fiat_reason = n.reason"
            " FROM unnest($1::bigint[], $2::text[], $3::text[]) AS n (id, fiat, reason) JOIN due USING (id)"
            " WHERE d.id = n.id",
            (ids, fiats, reasons),
        )
    last: int = rows[-1].id
    return last if len(rows) == limit else None


async def _nearest(
    conn: AsyncConnection, rows: Sequence[Any], currencies: Sequence[str]
) -> dict[int, dict[str, Point]]:
    columns = [row.id for row in rows], [row.symbol for row in rows], [row.first_seen_at for row in rows]
    found: dict[int, dict[str, Point]] = {}
    for row in await conn.exec_driver_sql(_NEAREST, (*columns, list(currencies), AGE_MAX)):
        found.setdefault(row.id, {})[row.currency] = _point(row)
    return found


def _point(row: Any) -> Point:  # noqa: ANN401  a row of either statement
    return Point(format_rate(row.value), row.source, row.observed_at)


def _encode(snapshot: Snapshot) -> str:
    return msgspec.json.encode(snapshot, order="sorted").decode()


def _worth(units: int, decimals: int, rate: Decimal, currency: str) -> str:
    smallest = Decimal(1).scaleb(-minor_units(currency))
    worth = value_of(units, decimals, rate).quantize(smallest, rounding=ROUND_HALF_EVEN, context=_EXACT)
    return format(worth, "f")
