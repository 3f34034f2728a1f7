"""The entries of a statement: movements that change what a merchant has, newest first, page by page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Token
from cambist.registry import Registry
from cambist.services.accounting import tokens
from cambist.services.errors import InvalidError
from cambist.services.paging import TOTAL_MAX, check_period
from cambist.services.supported import find_chain

from .kinds import TYPES, kinds_of, sign_of, type_of

PAGE_MAX = 100
BATCH = 1_000
"""Entries read at once for a file."""

TRANSACTION_MAX = timedelta(minutes=10)
"""Transactions are dated by their start and numbered by their end: their order may differ by this much."""

_AFTER_ALL = 2**63 - 1


class Filters(Struct, frozen=True, kw_only=True):
    """Which entries are wanted. ``since`` is included, ``until`` is not."""

    chain: str | None = None
    token: str | None = None
    type: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class Entry(Struct, frozen=True, kw_only=True):
    """One change of what a merchant has. ``from_balance`` and ``to_balance`` are None for outside of them.

    ``pk`` orders entries and is for cursors alone. ``units`` is signed: above zero where it came nearer to being
    spent.
    """

    pk: int
    entry_id: str
    type: str
    chain: str
    token: Token
    units: int
    from_balance: str | None
    to_balance: str | None
    reference: str
    created_at: datetime


class Scope(Struct, frozen=True, kw_only=True):
    """Whose statement it is, and the tokens that are wanted of it, by their names in the ledger."""

    merchant_pk: int
    mode: str
    assets: Mapping[str, tuple[str, Token]]


async def scope_of(conn: AsyncConnection, registry: Registry, merchant_pk: int, mode: str, filters: Filters) -> Scope:
    """Return what the filters leave of a merchant's tokens. Raises InvalidError for chains and tokens unheard of."""
    if filters.type is not None and filters.type not in TYPES:
        raise InvalidError.field("type", f"must be one of {', '.join(TYPES)}")
    check_period(filters.since, filters.until)
    held = await tokens.ever_had(conn, registry, merchant_pk, mode)
    found = {
        one.balance.asset: (one.chain, one.token)
        for one in held
        if filters.chain in {None, one.chain} and filters.token in {None, one.token.symbol}
    }
    if not found:
        _check_names(registry, filters)
    return Scope(merchant_pk=merchant_pk, mode=mode, assets=found)


def _check_names(registry: Registry, filters: Filters) -> None:
    """Refuse what nobody could ever have, rather than answering that there is nothing of it."""
    chains = registry.chains.values() if filters.chain is None else [find_chain(registry.chains, filters.chain)]
    if filters.token is not None and not any(chain.token(filters.token) for chain in chains):
        where = f"on {filters.chain}" if filters.chain is not None else "on any chain"
        raise InvalidError.field("token", f"is not supported {where}", "UNSUPPORTED_TOKEN")


_ACCOUNTS = """
accounts AS MATERIALIZED (
    SELECT id, purpose FROM ledger_accounts WHERE mode = $1 AND merchant_pk = $2 AND asset = ANY($3::text[])
        AND purpose IN ('available', 'pending', 'held', 'receivable')
)
"""
_CONDITION = (
    "m.id < $4 AND m.id >= $5 AND ($6::text IS NULL OR"
    " (SELECT (t.kind ~ $6) = $7 FROM ledger_transactions t WHERE t.id = m.transaction_pk))"
    " AND ($8::timestamptz IS NULL OR"
    " (SELECT t.created_at >= $8 FROM ledger_transactions t WHERE t.id = m.transaction_pk))"
    " AND ($9::timestamptz IS NULL OR"
    " (SELECT t.created_at < $9 FROM ledger_transactions t WHERE t.id = m.transaction_pk))"
)


def _page(size: int, offset: int = 0, *, oldest_first: bool = False) -> str:
    # Numbers are part of the text: for one that it cannot see, PostgreSQL would plan to sort everything.
    size, offset = int(size), int(offset)
    end, order = offset + size, "ASC" if oldest_first else "DESC"
    return f"""
WITH {_ACCOUNTS}, picked AS MATERIALIZED (
    SELECT DISTINCT m.id FROM accounts CROSS JOIN LATERAL (
        (SELECT m.id FROM ledger_movements m WHERE m.debit_account_pk = accounts.id AND {_CONDITION}
            ORDER BY m.id {order} LIMIT {end})
        UNION ALL
        (SELECT m.id FROM ledger_movements m WHERE m.credit_account_pk = accounts.id AND {_CONDITION}
            ORDER BY m.id {order} LIMIT {end})
    ) m ORDER BY m.id {order} LIMIT {size} OFFSET {offset}
)
SELECT m.id, m.asset, m.units, debit.purpose AS from_balance, credit.purpose AS to_balance, t.kind, t.reference,
    t.created_at
FROM picked JOIN ledger_movements m ON m.id = picked.id JOIN ledger_transactions t ON t.id = m.transaction_pk
LEFT JOIN accounts debit ON debit.id = m.debit_account_pk LEFT JOIN accounts credit ON credit.id = m.credit_account_pk
ORDER BY m.id {order}
"""  # noqa: S608  numbers and constants of this module


PAGE = _page(PAGE_MAX + 1)
_BATCH = _page(BATCH + 1)


# A movement between two of the merchant's accounts is found from the one that it leaves, and so counted once.
def counting(most: int) -> str:
    """Return the statement that counts up to so many entries."""
    # Each side is cut, so that an index is read and not the whole table, of which others have most.
    cut = f"ORDER BY m.id DESC LIMIT {int(most)}"
    return f"""
WITH {_ACCOUNTS}
SELECT count(*) FROM (
    SELECT FROM accounts CROSS JOIN LATERAL (
        (SELECT m.id FROM ledger_movements m WHERE m.debit_account_pk = accounts.id AND {_CONDITION} {cut})
        UNION ALL
        (SELECT m.id FROM ledger_movements m WHERE m.credit_account_pk = accounts.id AND {_CONDITION}
            AND m.debit_account_pk NOT IN (SELECT id FROM accounts) {cut})
    ) m LIMIT {int(most)}
) counted
"""  # noqa: S608  numbers and constants of this module


# Halves the range of ids until the first movement is found that was made at the moment or later.
_FIRST_AT = """
WITH RECURSIVE halves (low, high) AS (
    SELECT coalesce(min(id), 0), coalesce(max(id), 0) + 1 FROM ledger_movements
    UNION ALL
    SELECT CASE WHEN earlier THEN middle + 1 ELSE low END, CASE WHEN earlier THEN high ELSE middle END
    FROM (
        SELECT low, high, (low + high) / 2 AS middle, coalesce((
            SELECT t.created_at < $1 FROM ledger_movements m JOIN ledger_transactions t ON t.id = m.transaction_pk
            WHERE m.id >= (low + high) / 2 ORDER BY m.id LIMIT 1
        ), false) AS earlier
        FROM halves WHERE low < high
    ) AS probes
)
SELECT low FROM halves WHERE low >= high
"""


class Bounds(Struct, frozen=True):
    """The movements between which all wanted ones lie: ``first`` included, ``end`` not."""

    first: int = 0
    end: int = _AFTER_ALL


async def bounds_of(conn: AsyncConnection, filters: Filters) -> Bounds:
    """Return the movements around the wanted time, so that no page passes over years of others."""
    first, end = 0, _AFTER_ALL
    if filters.since is not None:
        first = (await conn.exec_driver_sql(_FIRST_AT, (filters.since - TRANSACTION_MAX,))).scalar_one()
    if filters.until is not None:
        end = (await conn.exec_driver_sql(_FIRST_AT, (filters.until + TRANSACTION_MAX,))).scalar_one()
    return Bounds(first, end)


async def count(conn: AsyncConnection, scope: Scope, filters: Filters, bounds: Bounds, most: int = TOTAL_MAX) -> int:
    """Return how many entries there are; ``most`` is that many or more."""
    found = await conn.exec_driver_sql(counting(most), arguments(scope, filters, bounds))
    return int(found.scalar_one())


async def read(  # noqa: PLR0913  a list, and which part of it
    conn: AsyncConnection,
    scope: Scope,
    filters: Filters,
    bounds: Bounds,
    limit: int,
    *,
    page: int = 1,
    oldest_first: bool = False,
) -> tuple[Sequence[Entry], bool]:
    """Return up to ``limit`` entries, newest first unless the oldest are wanted first, and whether there are more.

    For files up to ``BATCH``.

    Raises InvalidError for a page beyond ``TOTAL_MAX``: all that stands before it would have to be read.
    """
    if page * limit > TOTAL_MAX:
        raise InvalidError.field("page", "is too deep; go on from page to page by nextCursor")
    statement = PAGE if limit <= PAGE_MAX else _BATCH
    if page > 1 or oldest_first:
        statement = _page(limit + 1, (page - 1) * limit, oldest_first=oldest_first)
    rows = (await conn.exec_driver_sql(statement, arguments(scope, filters, bounds))).all()
    entries = []
    for row in rows[:limit]:
        chain, token = scope.assets[row.asset]
        entries.append(
            Entry(
                pk=row.id,
                entry_id=_entry_id(row.id, row.kind, row.reference),
                type=type_of(row.kind),
                chain=chain,
                token=token,
                units=int(row.units) * sign_of(row.from_balance, row.to_balance),
                from_balance=row.from_balance,
                to_balance=row.to_balance,
                reference=row.reference,
                created_at=row.created_at,
            )
        )
    return entries, len(rows) > limit


def arguments(scope: Scope, filters: Filters, bounds: Bounds) -> tuple[object, ...]:
    """Return what the statement of a page takes."""
    pattern, matches = kinds_of(filters.type) if filters.type is not None else (None, True)
    return (
        scope.mode,
        scope.merchant_pk,
        list(scope.assets),
        bounds.end,
        bounds.first,
        pattern,
        matches,
        filters.since,
        filters.until,
    )


def _entry_id(pk: int, kind: str, reference: str) -> str:
    """Name a movement: the same one always gets the same name, and the name does not tell how many there are."""
    digest = hashlib.sha256(f"{kind}:{reference}:{pk}".encode()).digest()
    return "led_" + base64.b32encode(digest)[:26].decode().lower()
