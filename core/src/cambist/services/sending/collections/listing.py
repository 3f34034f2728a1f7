"""What was brought from one-time addresses to a merchant's main wallet, and what that cost the platform."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from msgspec import Struct
from sqlalchemy import BigInteger, Text, func, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import aliased

from cambist.db.models import Address, Merchant, OutboundIntent
from cambist.db.models.base import UnitsType
from cambist.db.structs import columns_of, literally, to_struct
from cambist.domain.intents import IntentKind
from cambist.plugin import Units
from cambist.services.listing import ALWAYS, Listed, ListOf, Owner, Part, Period, read_list


class Collection(Struct, frozen=True, kw_only=True):
    """One collection. ``fee`` is in the native coin: of the transfer, or its share of a sweep, and of its gas."""

    collection_id: str
    merchant_id: str
    merchant_name: str
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


# Its own transactions, its share of the sweep that it was in, and the top-ups of its address since the one before it.
_FEES = f"""
(SELECT coalesce(sum(t.fee_paid), 0) FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk
    WHERE s.intent_pk = i.id AND t.state = 'final')
+ (SELECT coalesce(div(sum(t.fee_paid), max(w.units)), 0) FROM outbound_intents w
    JOIN outbound_slots s ON s.intent_pk = w.id JOIN outbound_txs t ON t.slot_pk = s.id AND t.state = 'final'
    WHERE w.id = i.sweep_pk)
+ (SELECT coalesce(sum(t.fee_paid), 0) FROM outbound_intents g JOIN outbound_slots s ON s.intent_pk = g.id
    JOIN outbound_txs t ON t.slot_pk = s.id AND t.state = 'final'
    WHERE g.recipient_address_pk = i.source_address_pk AND g.chain = i.chain AND g.scope = i.scope
    AND g.kind = '{IntentKind.TOP_UP}' AND g.created_at >= i.created_at
    AND g.created_at <= coalesce(i.finished_at, g.created_at))
"""  # noqa: S608  a constant
_LAST_TX = """
(SELECT t.tx_id FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk
    WHERE s.intent_pk IN (i.id, i.sweep_pk) AND t.role = 'main' ORDER BY t.state = 'final' DESC, t.id DESC LIMIT 1)
"""
_DEPOSITS = "(SELECT count(*) FROM deposits d WHERE d.collection_pk = i.id)"
_INTENT = aliased(OutboundIntent, name="i")
_SELECT = (
    select(
        *columns_of(
            Collection,
            _INTENT,
            collection_id=func.split_part(_INTENT.reference, ":", 2),
            merchant_id=Merchant.merchant_id,
            merchant_name=Merchant.name,
            status=_INTENT.state,
            source=Address.address,
            tx_id=literal_column(_LAST_TX, Text),
            fee=literal_column(_FEES, UnitsType),
            deposits=literal_column(_DEPOSITS, BigInteger),
        )
    )
    .outerjoin(Merchant, Merchant.id == _INTENT.merchant_pk)
    .outerjoin(Address, Address.id == _INTENT.source_address_pk)
    .where(literally(_INTENT.kind, IntentKind.COLLECTION))
)


_LIST = ListOf(_INTENT.id, _INTENT.created_at)


async def list_collections(  # noqa: PLR0913  filters, each by name
    conn: AsyncConnection,
    merchant_pk: int | None,
    mode: str,
    part: Part,
    *,
    chain: str | None = None,
    period: Period = ALWAYS,
) -> Listed[Collection]:
    """Return one part of a merchant's collections, or of everybody's for None."""
    own: Owner = {_INTENT.mode: mode}
    if merchant_pk is not None:
        own = {_INTENT.merchant_pk: merchant_pk, **own}
    show, filters = partial(to_struct, Collection), {_INTENT.chain: chain}
    return await read_list(conn, _SELECT, show, _LIST, part, own=own, filters=filters, period=period)
