"""What was brought from one-time addresses to a merchant's main wallet, and what that cost the platform."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Units
from cambist.services.paging import Page, read_page


class Collection(Struct, frozen=True, kw_only=True):
    """One collection. ``fee`` is in the native coin: of the transfer, or its share of a sweep, and of its gas."""

    collection_id: str
    merchant_id: str
    status: str
    chain: str
    token: str
    decimals: int
    units: Units
    source: str
    tx_id: str | None
    fee: Units
    deposits: int
    created_at: datetime
    finished_at: datetime | None


_LISTED = (
    "FROM outbound_intents i JOIN merchants m ON m.id = i.merchant_pk JOIN addresses a ON a.id = i.source_address_pk"
    " WHERE i.kind = 'collection' AND ($1::bigint IS NULL OR i.merchant_pk = $1) AND i.mode = $2"
    " AND ($3::text IS NULL OR i.chain = $3)"
)

# Its own transactions, its share of the sweep that it was in, and the top-ups of its address since the one before it.
_FEES = """
(SELECT coalesce(sum(t.fee_paid), 0) FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk
    WHERE s.intent_pk = i.id AND t.state = 'final')
+ (SELECT coalesce(div(sum(t.fee_paid), max(w.units)), 0) FROM outbound_intents w
    JOIN outbound_slots s ON s.intent_pk = w.id JOIN outbound_txs t ON t.slot_pk = s.id AND t.state = 'final'
    WHERE w.id = i.sweep_pk)
+ (SELECT coalesce(sum(t.fee_paid), 0) FROM outbound_intents g JOIN outbound_slots s ON s.intent_pk = g.id
    JOIN outbound_txs t ON t.slot_pk = s.id AND t.state = 'final'
    WHERE g.recipient_address_pk = i.source_address_pk AND g.chain = i.chain AND g.scope = i.scope
    AND g.kind = 'top_up' AND g.created_at >= i.created_at
    AND g.created_at <= coalesce(i.finished_at, g.created_at))
"""
_LAST_TX = """
(SELECT t.tx_id FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk
    WHERE s.intent_pk IN (i.id, i.sweep_pk) AND t.role = 'main' ORDER BY t.state = 'final' DESC, t.id DESC LIMIT 1)
"""
_COLUMNS = f"""
i.reference, m.merchant_id, i.state, i.chain, i.token, i.decimals, i.units, a.address, i.created_at, i.finished_at,
{_LAST_TX} AS tx_id, {_FEES} AS fee, (SELECT count(*) FROM deposits d WHERE d.collection_pk = i.id) AS deposits
"""  # noqa: S608  constants


async def list_collections(  # noqa: PLR0913  filters and paging, each by name
    conn: AsyncConnection, merchant_pk: int | None, mode: str, *, chain: str | None, page: int, limit: int
) -> Page[Collection]:
    """Return one page of a merchant's collections, or of everybody's for None."""
    filters = (merchant_pk, mode, chain)
    return await read_page(conn, _COLUMNS, _LISTED, filters, _collection, newest="i.id", page=page, limit=limit)


def _collection(row: Row[Any]) -> Collection:
    return Collection(
        collection_id=row.reference.partition(":")[2],
        merchant_id=row.merchant_id,
        status=row.state,
        chain=row.chain,
        token=row.token,
        decimals=row.decimals,
        units=Units(int(row.units)),
        source=row.address,
        tx_id=row.tx_id,
        fee=Units(int(row.fee)),
        deposits=row.deposits,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )
