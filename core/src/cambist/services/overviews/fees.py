"""What the platform took and paid over a time: its part of swaps and bridges, and what networks took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.money import format_units, value_of
from cambist.registry import Registry

from .spans import Span
from .worth import fiat_text, prices_in


class CoinFee(Struct, frozen=True, kw_only=True, rename="camel"):
    """Fees in one coin. `fiat` is null where no price is known at all; `unpriced` counts those that are not in it."""

    chain: str
    token: str
    transactions: int
    amount: str
    fiat: str | None
    unpriced: int


class Fees(Struct, frozen=True, kw_only=True, rename="camel"):
    """Fees in each coin, and together as far as prices are known; `unpriced` counts the transactions that are not."""

    coins: Sequence[CoinFee]
    fiat: str
    unpriced: int


# By when they were asked for, or signed: of these there are indexes. A swap that fails gives its fee back.
# Of a bridge it is kept of what is given; of a swap it is the share that was taken before the output.
_EXCHANGED = """
WITH done AS (
    SELECT *, width_bucket(created_at, $2::timestamptz[]) - 1 AS part
    FROM exchanges WHERE mode = $1 AND status = 'succeeded'
        AND created_at >= ($2::timestamptz[])[1] AND created_at < ($2::timestamptz[])[cardinality($2)]
), fees AS (
    SELECT part, source_chain AS chain, source_token AS token, source_decimals AS decimals, fee_units AS units
    FROM done WHERE fee_units > 0
    UNION ALL
    SELECT part, dest_chain, dest_token, dest_decimals,
        div(coalesce(output_units, quoted_units) * fee_bps, 10000 - fee_bps)
    FROM done WHERE fee_bps > 0
)
SELECT part, chain, token, decimals, count(*) AS transactions, sum(units) AS units FROM fees GROUP BY 1, 2, 3, 4
"""
_PAID = """
SELECT width_bucket(created_at, $2::timestamptz[]) - 1 AS part, chain, count(*) AS transactions,
    sum(fee_paid) AS units
FROM outbound_txs WHERE state = 'final' AND (scope = 0) = ($1 = 'live') AND fee_paid > 0
    AND created_at >= ($2::timestamptz[])[1] AND created_at < ($2::timestamptz[])[cardinality($2)]
GROUP BY 1, 2
"""


class _Fee(Struct, frozen=True):
    part: int
    chain: str
    token: str
    decimals: int
    transactions: int
    units: int


async def exchange_fees(conn: AsyncConnection, span: Span, mode: str, currency: str) -> Fees:
    """Return the platform's part of swaps and bridges that were asked for within a span and succeeded."""
    rows = await conn.exec_driver_sql(_EXCHANGED, (mode, list(span.edges)))
    taken = [_Fee(row.part, row.chain, row.token, row.decimals, row.transactions, int(row.units)) for row in rows]
    return await _fees(conn, taken, span, currency)


async def network_fees(conn: AsyncConnection, registry: Registry, span: Span, mode: str, currency: str) -> Fees:
    """Return what networks took for transactions that were signed within a span and are final."""
    rows = await conn.exec_driver_sql(_PAID, (mode, list(span.edges)))
    paid = []
    for row in rows:
        info = registry.chains.get(row.chain)
        # Nobody knows the coin of a chain that is not configured any more.
        symbol, decimals = ("native", 0) if info is None else (info.native.symbol, info.native.decimals)
        paid.append(_Fee(row.part, row.chain, symbol, decimals, row.transactions, int(row.units)))
    return await _fees(conn, paid, span, currency)


async def _fees(conn: AsyncConnection, found: Sequence[_Fee], span: Span, currency: str) -> Fees:
    prices = await prices_in(conn, {(one.token, one.part) for one in found}, span, currency)
    by_coin: dict[tuple[str, str, int], list[_Fee]] = defaultdict(list)
    for one in found:
        by_coin[one.chain, one.token, one.decimals].append(one)
    return Fees(
        coins=[_coin(some, prices, currency) for _, some in sorted(by_coin.items())],
        fiat=fiat_text(_worths(found, prices), currency),
        unpriced=_unpriced(found, prices),
    )


def _coin(some: Sequence[_Fee], prices: Mapping[tuple[str, int], Decimal], currency: str) -> CoinFee:
    worths = _worths(some, prices)
    return CoinFee(
        chain=some[0].chain,
        token=some[0].token,
        transactions=sum(one.transactions for one in some),
        amount=format_units(sum(one.units for one in some), some[0].decimals),
        fiat=fiat_text(worths, currency) if worths else None,
        unpriced=_unpriced(some, prices),
    )


def _unpriced(some: Sequence[_Fee], prices: Mapping[tuple[str, int], Decimal]) -> int:
    return sum(one.transactions for one in some if (one.token.upper(), one.part) not in prices)


def _worths(some: Sequence[_Fee], prices: Mapping[tuple[str, int], Decimal]) -> Sequence[Decimal]:
    found = []
    for one in some:
        price = prices.get((one.token.upper(), one.part))
        if price is not None:
            found.append(value_of(one.units, one.decimals, price))
    return found
