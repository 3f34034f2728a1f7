"""Finds refunds and shows them: a page of a project's, or one of them."""

from __future__ import annotations

from datetime import datetime

from msgspec import UNSET, Struct, UnsetType
from sqlalchemy import ColumnElement, and_, bindparam, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Deposit, Payment, Payout
from cambist.db.structs import AnyRow, literally
from cambist.domain.failures import Failure
from cambist.domain.intents import IntentKind
from cambist.domain.payouts import Status
from cambist.services.errors import NotFoundError
from cambist.services.listing import ALWAYS, Listed, ListOf, Owner, Part, Period, read_list
from cambist.services.paging import read_one
from cambist.services.payouts.read import COLUMNS, payout_row, what_every_kind_shows


class RefundView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A refund as its merchant sees it.

    ``payment_id`` is None where the money came for no payment. ``deposit_id`` is there where one deposit of the
    resolution list was sent back. ``waits_for`` says in a word why it has not been sent yet.
    """

    refund_id: str
    payment_id: str | None
    deposit_id: str | None
    status: str
    chain: str
    token: str
    contract_address: str | None
    decimals: int
    amount: str
    to_address: str
    to_tag: str | UnsetType = UNSET
    reason: str | None
    tx_hash: str | None
    error: str | None
    error_code: Failure | None
    waits_for: str | None
    waits_for_text: str | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


def is_its_payment() -> ColumnElement[bool]:
    """Return the condition that a payment is the one that a refund is of, itself or through its deposit.

    After a reorganization, somebody else's money may stand in the deposit's place: that one's payment is not it.
    """
    of_it = Payment.id == func.coalesce(Payout.payment_pk, Deposit.payment_pk)
    return and_(of_it, Payment.project_pk == Payout.project_pk)


_SELECT = (
    select(*COLUMNS, Payment.payment_id, Deposit.deposit_id)
    .outerjoin(Deposit, Deposit.id == Payout.deposit_pk)
    .outerjoin(Payment, is_its_payment())
    .where(literally(Payout.kind, IntentKind.REFUND))
)
_GET = _SELECT.where(Payout.project_pk == bindparam("project_pk"), Payout.payout_id == bindparam("refund_id"))


_LIST = ListOf(Payout.id, Payout.created_at)


async def list_refunds(  # noqa: PLR0913  filters, each by name
    conn: AsyncConnection,
    project_pk: int,
    part: Part,
    *,
    status: Status | None = None,
    payment_id: str | None = None,
    period: Period = ALWAYS,
) -> Listed[RefundView]:
    """Return one part of a project's refunds, or of one payment's: also those that sent a single deposit of it back."""
    own: Owner = {Payout.project_pk: project_pk}
    where: list[ColumnElement[bool]] = []
    if payment_id is not None:
        # A payment has few refunds, found by indexes of their own.
        own, where = {}, [_is_of(project_pk, payment_id)]
    filters = {Payout.status: status}
    return await read_list(conn, _SELECT, _view, _LIST, part, own=own, where=where, filters=filters, period=period)


def _is_of(project_pk: int, payment_id: str) -> ColumnElement[bool]:
    is_payment = Payment.payment_id == payment_id, Payment.project_pk == project_pk
    payment = select(Payment.id).where(*is_payment).scalar_subquery()
    deposits = select(Deposit.id).where(Deposit.payment_pk == payment).scalar_subquery()
    # As an array: the index of deposits is not taken for a condition that is a subquery beside another one.
    is_of_deposit = Payout.deposit_pk == func.any(func.array(deposits))
    # In a deposit's place, another merchant's money may have come since, or that of another payment.
    # The sum keeps the index of whole projects from being taken, which is read from its newest refund on.
    is_own = Payout.payment_pk.is_(None), Payout.project_pk + 0 == project_pk
    return or_(Payout.payment_pk == payment, and_(is_of_deposit, *is_own))


async def get_refund(conn: AsyncConnection, project_pk: int, refund_id: str) -> RefundView:
    missing = NotFoundError("REFUND_NOT_FOUND", "There is no such refund.")
    return _view(await read_one(conn, _GET, missing, {"project_pk": project_pk, "refund_id": refund_id}))


def _view(row: AnyRow) -> RefundView:
    sent = payout_row(row)
    return RefundView(
        refund_id=sent.payout_id,
        payment_id=row.payment_id,
        deposit_id=row.deposit_id,
        reason=sent.reason,
        **what_every_kind_shows(sent),
    )
