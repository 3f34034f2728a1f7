"""A payout as it is stored, whatever its kind: finds one of a project's, or a page of them, and shows them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from sqlalchemy import ColumnElement, Text, bindparam, func, literal_column, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Exchange, OutboundSlot, OutboundTx, Payout, PayoutBatch
from cambist.db.structs import AnyRow, Column, columns_of, literally, one_of_given, to_struct
from cambist.domain.failures import Failure, code_of
from cambist.domain.intents import PAYOUTS, IntentKind
from cambist.domain.money import format_units
from cambist.domain.payouts import Status
from cambist.plugin import Units
from cambist.registry import Registry
from cambist.services.accounting.ledger import Account, Purpose, asset_key
from cambist.services.errors import NotFoundError
from cambist.services.exchanges.rows import ExchangeRow
from cambist.services.listing import ALWAYS, Listed, ListOf, Owner, Part, Period, read_list
from cambist.services.sending.queue.reasons import sentence_of


class SwapOfPayout(Struct, frozen=True, kw_only=True):
    """The exchange whose output a payout's recipient gets: of so many source units, at least ``units_min``.

    ``tx_id`` is the transaction that gives them, ``quoted_units`` what was expected when it was asked for.
    """

    txn_id: str
    kind: str
    source_chain: str
    source_token: str
    source_decimals: int
    units: Units
    quoted_units: Units
    units_min: Units
    waits_for: str | None
    tx_id: str | None

    @classmethod
    def of(cls, row: ExchangeRow) -> SwapOfPayout:
        return cls(**{name: getattr(row, name) for name in cls.__struct_fields__})


class PayoutRow(Struct, frozen=True, kw_only=True):
    """One transfer to somebody. ``held_units`` of its units were taken from held, the others from available.

    ``swap`` is there where an exchange pays it, and it was asked for: such a payout takes nothing by itself, and its
    units are what was promised at least, or what has come. Names in ``_pk`` are of the database alone; ``batch_id`` is
    public. ``fee`` is in the native coin's units.
    """

    pk: int
    payout_id: str
    kind: IntentKind
    project_pk: int
    merchant_pk: int
    mode: str
    chain: str
    scope: int
    token: str
    contract: str | None
    decimals: int
    to_address: str
    to_tag: str | None
    units: Units
    held_units: Units
    status: Status
    batch_id: str | None
    payment_pk: int | None
    deposit_pk: int | None
    intent_pk: int | None
    reason: str | None
    error: str | None
    waits_for: str | None
    tx_id: str | None
    created_at: datetime
    updated_at: datetime
    broadcast_at: datetime | None
    finished_at: datetime | None
    fee: Units | None = None
    swap: SwapOfPayout | None = None

    def account(self, purpose: Purpose) -> Account:
        return Account(self.merchant_pk, asset_key(self.chain, self.contract), purpose)


# As text, since a subquery of Core's finds its outer table in SELECT, but not in RETURNING.
_BATCH_ID = literal_column("(SELECT b.batch_id FROM payout_batches b WHERE b.id = payouts.batch_pk)", Text)
COLUMNS = columns_of(PayoutRow, Payout, batch_id=_BATCH_ID)

_CALL = select(Exchange.intent_pk).where(Exchange.payout_pk == Payout.id).correlate(Payout).scalar_subquery()
_SWAP_PARTS: Sequence[Column] = [
    part
    for name in SwapOfPayout.__struct_fields__
    for part in (literal_column(f"'{name}'", Text), getattr(Exchange, name))
]

FEE = (
    select(func.sum(OutboundTx.fee_paid))
    .join(OutboundSlot, OutboundSlot.id == OutboundTx.slot_pk)
    .where(OutboundSlot.intent_pk == func.coalesce(Payout.intent_pk, _CALL))
    .correlate(Payout)
    .scalar_subquery()
    .label("fee")
)
"""What all transactions of a payout have cost, replaced and cancelling ones included, in the native coin.

Of an exchange it is the call's, without allowances, on the chain of what is given.
"""

SWAP = (
    select(func.jsonb_build_object(*_SWAP_PARTS, type_=JSONB))
    .where(Exchange.payout_pk == Payout.id)
    .correlate(Payout)
    .scalar_subquery()
    .label("swap")
)


_LOCK_BY_INTENTS = (
    select(*COLUMNS)
    .where(one_of_given(Payout.intent_pk, "intent_pks"))
    .order_by(Payout.id)
    .with_for_update(key_share=True, of=Payout)
)


def payout_row(row: AnyRow) -> PayoutRow:
    """Read a row of ``COLUMNS``, and of ``FEE`` and ``SWAP`` where they were asked for."""
    return to_struct(PayoutRow, row)


async def lock_by_intents(conn: AsyncConnection, intent_pks: Sequence[int]) -> dict[int, PayoutRow]:
    """Return payouts by the primary keys of their intents, locked in id order until the transaction ends."""
    rows = await conn.execute(_LOCK_BY_INTENTS, {"intent_pks": list(intent_pks)})
    return {row.intent_pk: payout_row(row) for row in rows}


# Refunds and withdrawals are read where they are made.
_SELECT = select(*COLUMNS, FEE, SWAP).where(literally(Payout.kind, *PAYOUTS))
_FIND = _SELECT.where(one_of_given(Payout.payout_id, "payout_ids"), Payout.project_pk == bindparam("project_pk"))


_LIST = ListOf(Payout.id, Payout.created_at)


async def list_payouts(  # noqa: PLR0913  filters, each by name
    conn: AsyncConnection,
    project_pk: int,
    part: Part,
    *,
    status: Status | None = None,
    chain: str | None = None,
    token: str | None = None,
    batch_id: str | None = None,
    period: Period = ALWAYS,
) -> Listed[PayoutRow]:
    """Return one part of a project's payouts."""
    own: Owner = {Payout.project_pk: project_pk}
    where: list[ColumnElement[bool]] = []
    if batch_id is not None:
        # A batch has a hundred payouts at most, found by an index of their own.
        batch = select(PayoutBatch.id).where(PayoutBatch.batch_id == batch_id, PayoutBatch.project_pk == project_pk)
        own, where = {}, [Payout.batch_pk == batch.scalar_subquery()]
    filters = {Payout.status: status, Payout.chain: chain, Payout.token: token}
    return await read_list(conn, _SELECT, payout_row, _LIST, part, own=own, where=where, filters=filters, period=period)


async def find_payout(conn: AsyncConnection, project_pk: int, payout_id: str) -> PayoutRow:
    found = await find_payouts(conn, project_pk, [payout_id])
    if payout_id not in found:
        raise NotFoundError("PAYOUT_NOT_FOUND", "There is no such payout.")
    return found[payout_id]


async def find_payouts(conn: AsyncConnection, project_pk: int, payout_ids: Sequence[str]) -> dict[str, PayoutRow]:
    """Return those of the project's payouts that are there, by their ids."""
    rows = await conn.execute(_FIND, {"payout_ids": list(payout_ids), "project_pk": project_pk})
    return {row.payout_id: payout_row(row) for row in rows}


async def payout_ids_of_batch(conn: AsyncConnection, batch_pk: int) -> Sequence[str]:
    """Return the ids of a batch's payouts in the order of their rows."""
    ids = await conn.scalars(select(Payout.payout_id).where(Payout.batch_pk == batch_pk).order_by(Payout.id))
    return ids.all()


class FeeView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the chain took for it, in its own coin. The platform paid it: no merchant's balance did."""

    amount: str
    token: str


class SwapView(Struct, frozen=True, kw_only=True, rename="camel"):
    """The swap or bridge that pays a payout, as its merchant sees it.

    ``srcAmount`` is what the wallet gives. ``expectedAmount`` was quoted, ``minAmount`` is promised, in the payout's
    token. ``txHash`` is the transaction on ``srcChain``.
    """

    txn_id: str
    kind: str
    src_chain: str
    src_token: str
    src_amount: str
    expected_amount: str
    min_amount: str
    tx_hash: str | None


class PayoutView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A payout as its merchant sees it. ``waits_for`` says in a word why it has not been sent yet.

    Where ``swap`` is there, ``amount`` is what the recipient gets at least, and what came once it is completed.
    """

    payout_id: str
    kind: str
    status: str
    mode: str
    chain: str
    token: str
    contract_address: str | None
    decimals: int
    amount: str
    to_address: str
    to_tag: str | UnsetType = UNSET
    tx_hash: str | None
    fee: FeeView | None
    error: str | None
    error_code: Failure | None
    waits_for: str | None
    waits_for_text: str | None
    batch_id: str | None
    swap: SwapView | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


def payout_view(row: PayoutRow, registry: Registry) -> PayoutView:
    return PayoutView(
        payout_id=row.payout_id,
        kind=row.kind,
        mode=row.mode,
        fee=fee_view(row, registry),
        batch_id=row.batch_id,
        swap=_swap_view(row),
        **what_every_kind_shows(row),
    )


def _swap_view(row: PayoutRow) -> SwapView | None:
    swap = row.swap
    if swap is None:
        return None
    return SwapView(
        txn_id=swap.txn_id,
        kind=swap.kind,
        src_chain=swap.source_chain,
        src_token=swap.source_token,
        src_amount=format_units(swap.units, swap.source_decimals),
        expected_amount=format_units(swap.quoted_units, row.decimals),
        min_amount=format_units(swap.units_min, row.decimals),
        tx_hash=swap.tx_id,
    )


def what_every_kind_shows(row: PayoutRow) -> dict[str, Any]:
    """Return the fields that views of payouts, refunds and withdrawals have in common."""
    # What the call of an exchange waits for is known there first.
    waits_for = row.waits_for if row.swap is None else row.swap.waits_for
    return {
        "status": row.status,
        "chain": row.chain,
        "token": row.token,
        "contract_address": row.contract,
        "decimals": row.decimals,
        "amount": format_units(row.units, row.decimals),
        "to_address": row.to_address,
        "to_tag": UNSET if row.to_tag is None else row.to_tag,
        "tx_hash": row.tx_id,
        "error": row.error,
        "error_code": code_of(row.error),
        "waits_for": waits_for,
        "waits_for_text": None if waits_for is None else sentence_of(waits_for, of_exchange=row.swap is not None),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "completed_at": row.finished_at if row.status == Status.COMPLETED else None,
    }


def fee_view(row: PayoutRow, registry: Registry) -> FeeView | None:
    """Show what a payout has cost, where the chain that was paid for it is still enabled."""
    chain = registry.chains.get(row.chain if row.swap is None else row.swap.source_chain)
    if row.fee is None or chain is None:
        return None
    return FeeView(amount=format_units(row.fee, chain.native.decimals), token=chain.native.symbol)
