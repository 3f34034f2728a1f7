"""What came of payments, and what came in, over a time: of one merchant, of some projects of it, or of everybody."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.money import format_units, value_of
from cambist.domain.payments import OPEN, Status

from .attention import Whose
from .spans import Span
from .worth import fiat_text, prices_in


class StateCounts(Struct, frozen=True, kw_only=True, rename="camel"):
    """How many payments are in each state now."""

    pending: int = 0
    detected: int = 0
    confirming: int = 0
    paid: int = 0
    overpaid: int = 0
    underpaid: int = 0
    expired: int = 0
    failed: int = 0
    refunded: int = 0


class Payments(Struct, frozen=True, kw_only=True, rename="camel"):
    """Payments that were made within a time. `paid` are those that were paid in full, refunded later or not.

    `conversionPercent` is how many of those that have ended were paid; null while none has.
    """

    made: int
    open: int
    paid: int
    conversion_percent: str | None
    states: StateCounts


class TurnoverPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """One day or hour: the payments that were made in it, and what came in, in fiat."""

    begins_at: datetime
    payments: Payments
    deposits: int
    fiat: str
    unpriced: int


class CoinTurnover(Struct, frozen=True, kw_only=True, rename="camel"):
    """What came in of one coin. `amounts` are of the parts of the series, in their order.

    `fiat` is null where no price is known at all; `unpriced` counts the deposits that are not in it.
    """

    chain: str
    token: str
    contract_address: str | None
    decimals: int
    deposits: int
    amount: str
    amounts: Sequence[str]
    fiat: str | None
    unpriced: int


class Turnover(Struct, frozen=True, kw_only=True, rename="camel"):
    """Payments that were made, and confirmed deposits to payments and accounts that were first seen, within a time.

    `fiat` is by the mean price of each day or hour. `unpriced` counts the deposits that are not in it, since nobody
    knows a price of their time.
    """

    payments: Payments
    deposits: int
    fiat: str
    unpriced: int
    coins: Sequence[CoinTurnover]
    series: Sequence[TurnoverPart]


# $1 is the mode, $2 the edges; what follows says whose.
_PAYMENTS = """
SELECT width_bucket(created_at, $2::timestamptz[]) - 1 AS part, status,
    count(*) FILTER (WHERE CASE WHEN status = 'refunded' THEN status_before_refund ELSE status END
        IN ('paid', 'overpaid')) AS paid, count(*) AS made
FROM payments
WHERE mode = $1 AND created_at >= ($2::timestamptz[])[1] AND created_at < ($2::timestamptz[])[cardinality($2)] {whose}
GROUP BY 1, 2
"""
_DEPOSITS = """
SELECT width_bucket(d.first_seen_at, $2::timestamptz[]) - 1 AS part, d.chain, d.contract, d.decimals,
    max(d.token) AS token, count(*) AS deposits, sum(d.units) AS units
FROM deposits d {joined}
WHERE d.mode = $1 AND d.status = 'confirmed' AND (d.payment_pk IS NOT NULL OR d.account_pk IS NOT NULL)
    AND d.first_seen_at >= ($2::timestamptz[])[1] AND d.first_seen_at < ($2::timestamptz[])[cardinality($2)] {whose}
GROUP BY 1, 2, 3, 4
"""
_OF_PROJECTS = "LEFT JOIN payments p ON p.id = d.payment_pk LEFT JOIN accounts a ON a.id = d.account_pk"


class _Coin(Struct, frozen=True):
    chain: str
    contract: str | None
    decimals: int
    token: str


class _Came(Struct, frozen=True):
    """What came of one coin in one part. ``worth`` is None where no price is known."""

    part: int
    units: int
    deposits: int
    worth: Decimal | None


async def read_turnover(
    conn: AsyncConnection, span: Span, mode: str, currency: str, whose: Whose | None = None
) -> Turnover:
    """Return what happened within a span: to a merchant or to projects of it, or to everybody."""
    counted = await _payments(conn, span, mode, whose)
    came = await _deposits(conn, span, mode, currency, whose)
    by_part: dict[int, list[_Came]] = defaultdict(list)
    for parts in came.values():
        for one in parts:
            by_part[one.part].append(one)
    everything = [one for parts in came.values() for one in parts]
    coins = [_coin(coin, parts, span, currency) for coin, parts in came.items()]
    return Turnover(
        payments=_summed([one for counts in counted.values() for one in counts]),
        deposits=sum(one.deposits for one in everything),
        fiat=_fiat(everything, currency),
        unpriced=_unpriced(everything),
        coins=sorted(coins, key=lambda one: (-Decimal(one.fiat or -1), one.chain, one.token)),
        series=[
            TurnoverPart(
                begins_at=span.edges[part],
                payments=_summed(counted.get(part, ())),
                deposits=sum(one.deposits for one in by_part[part]),
                fiat=_fiat(by_part[part], currency),
                unpriced=_unpriced(by_part[part]),
            )
            for part in span.parts
        ],
    )


class _Counted(Struct, frozen=True):
    status: str
    made: int
    paid: int


async def _payments(
    conn: AsyncConnection, span: Span, mode: str, whose: Whose | None
) -> Mapping[int, Sequence[_Counted]]:
    where, values = _whose(whose, "merchant_pk", "project_pk")
    rows = await conn.exec_driver_sql(_PAYMENTS.format(whose=where), (mode, list(span.edges), *values))
    found: dict[int, list[_Counted]] = defaultdict(list)
    for row in rows:
        found[row.part].append(_Counted(row.status, row.made, row.paid))
    return found


async def _deposits(
    conn: AsyncConnection, span: Span, mode: str, currency: str, whose: Whose | None
) -> Mapping[_Coin, Sequence[_Came]]:
    where, values = _whose(whose, "d.merchant_pk", "coalesce(p.project_pk, a.project_pk)")
    joined = _OF_PROJECTS if whose is not None and whose.project_pks is not None else ""
    statement = _DEPOSITS.format(joined=joined, whose=where)
    rows = (await conn.exec_driver_sql(statement, (mode, list(span.edges), *values))).all()
    prices = await prices_in(conn, {(row.token, row.part) for row in rows}, span, currency)
    found: dict[_Coin, list[_Came]] = defaultdict(list)
    named = {(row.chain, row.contract, row.decimals): row.token for row in rows}
    for row in rows:
        price = prices.get((row.token.upper(), row.part))
        units = int(row.units)
        value = None if price is None else value_of(units, row.decimals, price)
        coin = _Coin(row.chain, row.contract, row.decimals, named[row.chain, row.contract, row.decimals])
        found[coin].append(_Came(row.part, units, row.deposits, value))
    return found


def _whose(whose: Whose | None, merchant: str, project: str) -> tuple[str, tuple[Any, ...]]:
    """Return the condition that leaves one merchant's rows, or those of some projects, and its values."""
    if whose is None:
        return "", ()
    if whose.project_pks is None:
        return f"AND {merchant} = $3", (whose.merchant_pk,)
    return f"AND {merchant} = $3 AND {project} = ANY($4::bigint[])", (whose.merchant_pk, list(whose.project_pks))


def _summed(counts: Sequence[_Counted]) -> Payments:
    made, paid = sum(one.made for one in counts), sum(one.paid for one in counts)
    states: dict[str, int] = defaultdict(int)
    for one in counts:
        states[one.status] += one.made
    still_open = sum(states[status] for status in OPEN)
    return Payments(
        made=made,
        open=still_open,
        paid=paid,
        conversion_percent=_percent(paid, made - still_open),
        states=StateCounts(**{str(status): states[status] for status in Status}),
    )


def _percent(part: int, whole: int) -> str | None:
    if not whole:
        return None
    return format((Decimal(part * 100) / whole).quantize(Decimal("0.01")), "f")


def _coin(coin: _Coin, came: Sequence[_Came], span: Span, currency: str) -> CoinTurnover:
    by_part = {one.part: one.units for one in came}
    is_known = any(one.worth is not None for one in came)
    return CoinTurnover(
        chain=coin.chain,
        token=coin.token,
        contract_address=coin.contract,
        decimals=coin.decimals,
        deposits=sum(one.deposits for one in came),
        amount=format_units(sum(by_part.values()), coin.decimals),
        amounts=[format_units(by_part.get(part, 0), coin.decimals) for part in span.parts],
        fiat=_fiat(came, currency) if is_known else None,
        unpriced=_unpriced(came),
    )


def _fiat(came: Sequence[_Came], currency: str) -> str:
    return fiat_text((one.worth for one in came if one.worth is not None), currency)


def _unpriced(came: Sequence[_Came]) -> int:
    return sum(one.deposits for one in came if one.worth is None)
