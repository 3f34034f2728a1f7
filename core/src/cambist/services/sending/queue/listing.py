"""Every intent that is open: what it is, how far it has come, and what stands before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct
from sqlalchemy import BigInteger, ColumnElement, Text, and_, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import join, outerjoin

from cambist.db.models import Address, Exchange, Merchant, OutboundSlot, OutboundTx
from cambist.db.structs import AnyRow, AnySelect, columns_of, literally, one_of, to_struct
from cambist.domain.intents import IntentKind
from cambist.plugin import Fee, Units
from cambist.services.errors import NotFoundError
from cambist.services.listing import ALWAYS, Listed, ListOf, Owner, Part, Period, read_list
from cambist.services.paging import read_one

from .waits import BEHIND, INTENT, IS_GAP, SLOT, Seen, waits_for

TXS_MAX = 2_000
"""Transactions shown with one page, the newest of them."""

State: TypeAlias = Literal["waiting", "cancelling", "sending"]


class QueuedIntent(Struct, frozen=True, kw_only=True):
    """An intent, with its open slot if it has one. ``behind`` is another one of the same sender that comes first.

    ``is_gap``: a nonce before its own is nobody's. ``height`` is up to where the chain was read.
    """

    pk: int
    intent_id: str
    reference: str
    kind: IntentKind
    state: str
    mode: str
    chain: str
    scope: int
    merchant_id: str | None
    merchant_name: str | None
    payout_id: str | None
    txn_id: str | None
    token: str
    contract: str | None
    decimals: int
    units: Units
    source: str
    source_purpose: str
    to_address: str
    tag: str | None
    asked_by: str
    reason: str | None
    exchange_reason: str | None
    is_swept: bool
    cancel_asked_at: datetime | None
    signed_sequence: int | None
    signed_tx_id: str | None
    settle_tx_id: str | None
    settle_asked_at: datetime | None
    settle_refusal: str | None
    due_at: datetime
    created_at: datetime
    updated_at: datetime
    sequence: int | None
    slot_pk: int | None
    missing_since: int | None
    raise_asked_at: datetime | None
    raise_fee_max: Units | None
    raise_refusal: str | None
    behind: str | None
    is_gap: bool
    height: int | None

    @property
    def shown_state(self) -> State:
        """Return its state in one word."""
        if self.state == "waiting":
            return "waiting" if self.cancel_asked_at is None else "cancelling"
        return "sending"


class QueuedTx(Struct, frozen=True, kw_only=True):
    """A transaction of an intent, in whichever slot: those of dead ones tell what became of them."""

    intent_pk: int
    sequence: int | None
    slot_state: str
    role: str
    tx_id: str
    state: str
    fee: Fee
    fee_paid: Units | None
    valid_until: int | None
    height: int | None
    created_at: datetime
    sent_at: datetime | None
    tried_at: datetime | None
    tries: int


_PAYOUT = """
coalesce((SELECT p.payout_id FROM payouts p WHERE p.intent_pk = i.id),
    (SELECT p.payout_id FROM exchanges e JOIN payouts p ON p.id = e.payout_pk WHERE e.intent_pk = i.id))
"""
_HEIGHT = "(SELECT c.height FROM chain_cursors c WHERE c.chain = i.chain AND c.scope = i.scope)"
_COLUMNS = columns_of(
    QueuedIntent,
    INTENT,
    pk=INTENT.id,
    merchant_id=Merchant.merchant_id,
    merchant_name=Merchant.name,
    payout_id=literal_column(_PAYOUT, Text),
    txn_id=Exchange.txn_id,
    source=Address.address,
    source_purpose=Address.purpose,
    exchange_reason=Exchange.waits_for,
    is_swept=INTENT.sweep_pk.is_not(None),
    sequence=SLOT.sequence,
    slot_pk=SLOT.id,
    missing_since=SLOT.missing_since,
    raise_asked_at=SLOT.raise_asked_at,
    raise_fee_max=SLOT.raise_fee_max,
    raise_refusal=SLOT.raise_refusal,
    behind=BEHIND,
    is_gap=IS_GAP,
    height=literal_column(_HEIGHT, BigInteger),
)
_OPEN_SLOT = and_(SLOT.intent_pk == INTENT.id, SLOT.state == literal_column("'open'"))
_JOINED = outerjoin(
    outerjoin(
        outerjoin(
            join(INTENT, Address, Address.id == INTENT.source_address_pk),
            Merchant,
            Merchant.id == INTENT.merchant_pk,
        ),
        Exchange,
        Exchange.intent_pk == INTENT.id,
    ),
    SLOT,
    _OPEN_SLOT,
)
_ANY: AnySelect = select(*_COLUMNS).select_from(_JOINED)
_LIST = ListOf(INTENT.id, INTENT.created_at)
_QUEUE = _ANY.where(literally(INTENT.state, "waiting", "sending"))


async def list_queue(  # noqa: PLR0913  filters, each by name
    conn: AsyncConnection,
    part: Part,
    *,
    mode: str,
    seen: Seen,
    chain: str | None = None,
    kind: IntentKind | None = None,
    state: State | None = None,
    reason: str | None = None,
    merchant_id: str | None = None,
    before: datetime | None = None,
    period: Period = ALWAYS,
) -> Listed[QueuedIntent]:
    """Return one part of what is open; with ``before``, what was asked for until then.

    ``reason`` is what it waits for, as ``reasons.why`` says it by what is ``seen`` besides.

    Raises InvalidError as ``read_list`` does.
    """
    also: list[ColumnElement[bool]] = []
    if state is not None:
        also.append(INTENT.state == ("sending" if state == "sending" else "waiting"))
    if state in {"waiting", "cancelling"}:
        is_cancelling = INTENT.cancel_asked_at.is_not(None)
        also.append(is_cancelling if state == "cancelling" else ~is_cancelling)
    if reason is not None:
        also.append(waits_for(reason, seen))
    filters = {
        INTENT.chain: chain,
        INTENT.kind: kind,
        Merchant.merchant_id: merchant_id,
    }
    where = [] if before is None else [INTENT.created_at <= before]
    own: Owner = {INTENT.mode: mode}
    return await read_list(
        conn, _QUEUE, _intent, _LIST, part, own=own, where=where, filters=filters, also=also, period=period
    )


async def find_intent(conn: AsyncConnection, intent_id: str) -> QueuedIntent:
    """Return an intent, open or ended. Raises NotFoundError."""
    missing = NotFoundError("INTENT_NOT_FOUND", "There is no such transfer.")
    return _intent(await read_one(conn, _ANY.where(INTENT.intent_id == intent_id), missing))


async def find_ids(conn: AsyncConnection, references: Sequence[str]) -> Mapping[str, str]:
    """Return the public ids of these by their references; what nothing was asked for by is left out."""
    wanted = select(INTENT.reference, INTENT.intent_id).where(one_of(INTENT.reference, references))
    return {row.reference: row.intent_id for row in await conn.execute(wanted)}


async def txs_of(conn: AsyncConnection, intents: Sequence[QueuedIntent]) -> dict[int, list[QueuedTx]]:
    """Return the intents' transactions, oldest first, by the intents' primary keys."""
    tx = OutboundTx
    shown = select(
        OutboundSlot.intent_pk,
        OutboundSlot.sequence,
        OutboundSlot.state.label("slot_state"),
        *(tx.role, tx.tx_id, tx.state, tx.fee_paid, tx.valid_until, tx.height),
        *(tx.created_at, tx.sent_at, tx.tried_at, tx.tries),
        *(tx.fee_limit, tx.fee_price, tx.fee_tip, tx.fee_extra, tx.fee_covered),
    )
    joined = shown.select_from(tx).join(OutboundSlot, OutboundSlot.id == tx.slot_pk)
    wanted = joined.where(one_of(OutboundSlot.intent_pk, [one.pk for one in intents]))
    rows = (await conn.execute(wanted.order_by(tx.id.desc()).limit(TXS_MAX))).all()
    found: dict[int, list[QueuedTx]] = {}
    for row in reversed(rows):
        fee = Fee(
            limit=row.fee_limit,
            price=row.fee_price,
            tip=row.fee_tip,
            extra=Units(row.fee_extra),
            covered=row.fee_covered,
        )
        values = {name: getattr(row, name) for name in QueuedTx.__struct_fields__ if name != "fee"}
        found.setdefault(row.intent_pk, []).append(QueuedTx(**values, fee=fee))
    return found


def _intent(row: AnyRow) -> QueuedIntent:
    return to_struct(QueuedIntent, row)
