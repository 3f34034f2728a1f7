"""Finds payments: one of a project's, a page of them, or one by the public id that its customer holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial

from msgspec import Struct
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Payment
from cambist.db.structs import AnyRow
from cambist.domain.money import AmountError, parse_amount
from cambist.domain.payments import Status
from cambist.plugin import ChainInfo, Units
from cambist.services.addresses.macs import AddressMacs
from cambist.services.errors import InvalidError, NotFoundError, merchant_suspended
from cambist.services.listing import Listed, ListOf, Part, Period, read_list
from cambist.services.paging import read_one
from cambist.services.receiving.deposits.rows import set_aside_of

from . import views
from .deposits import DEPOSITS, ORPHANED, read_deposits
from .views import PaymentDetail, PaymentView, PublicPayment


def not_found() -> NotFoundError:
    """Return the refusal for a payment that is not there, or not this project's."""
    return NotFoundError("PAYMENT_NOT_FOUND", "There is no such payment.")


class Filters(Struct, frozen=True, kw_only=True):
    """Which payments are wanted. They were made at ``since`` or later, and before ``until``.

    ``amount`` is what was asked for, in tokens or in fiat; it is compared by its value.
    """

    status: Status | None = None
    chain: str | None = None
    order_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    amount: str | None = None


_LIST = ListOf(Payment.id, Payment.created_at, indexed=[Payment.order_id, Payment.status])


async def list_payments(
    conn: AsyncConnection, project_pk: int, macs: AddressMacs, wanted: Filters, part: Part
) -> Listed[PaymentView]:
    """Return one part of a project's payments. Raises InvalidError for filters that cannot be meant."""
    filters = {
        Payment.status: wanted.status,
        Payment.chain: wanted.chain,
        Payment.order_id: wanted.order_id,
        Payment.amount: None if wanted.amount is None else _amount(wanted.amount),
    }
    return await read_list(
        conn,
        select(text(views.COLUMNS)).select_from(Payment),
        partial(_view, macs),
        _LIST,
        part,
        own={Payment.project_pk: project_pk},
        filters=filters,
        period=Period(wanted.since, wanted.until),
    )


def _amount(text: str) -> Decimal:
    try:
        return parse_amount(text)
    except AmountError as error:
        raise InvalidError.field("amount", str(error), "INVALID_AMOUNT") from None


def _view(macs: AddressMacs, row: AnyRow) -> PaymentView:
    return views.payment_view(row._mapping, macs)  # noqa: SLF001  SQLAlchemy's public name for it


async def get_payment(conn: AsyncConnection, project_pk: int, payment_id: str, macs: AddressMacs) -> PaymentDetail:
    found = await conn.exec_driver_sql(
        f"SELECT {views.COLUMNS}, {DEPOSITS}, {ORPHANED} FROM payments p"  # noqa: S608  constants
        " WHERE payment_id = $1 AND project_pk = $2",
        (payment_id, project_pk),
    )
    row = found.mappings().one_or_none()
    if row is None:
        raise not_found()
    return views.payment_detail(row, macs)


async def get_links(conn: AsyncConnection, project_pk: int, payment_id: str) -> AnyRow:
    """Return payment id, public id and status of one of the project's payments: what a receipt's links are made of."""
    links = select(Payment.payment_id, Payment.public_id, Payment.status)
    wanted = links.where(Payment.payment_id == payment_id, Payment.project_pk == project_pk)
    return await read_one(conn, wanted, not_found())


_PUBLIC = f"""
SELECT p.payment_id, p.public_id, p.mode, p.chain, p.token, p.contract, p.decimals, p.address, p.pricing_mode, p.amount,
       p.fiat_currency, p.exchange_rate, p.expected_units, p.received_units, p.required_confirmations, p.status,
       p.tx_id, p.order_id, p.success_url, p.cancel_url, p.expires_at, p.created_at, p.address_mac,
       j.name AS shop_name, m.suspended_at IS NOT NULL AS suspended, p.refunded_units > 0 AS was_refunded, {DEPOSITS}
FROM payments p JOIN projects j ON j.id = p.project_pk JOIN merchants m ON m.id = p.merchant_pk WHERE p.public_id = $1
"""  # noqa: S608  a constant
_SET_ASIDE = f"SELECT {set_aside_of('p')} AS units FROM payments p WHERE p.public_id = $1"  # noqa: S608  a constant


async def get_public(db: Database, chains: Mapping[str, ChainInfo], public_id: str, macs: AddressMacs) -> PublicPayment:
    """Return a payment as its customer sees it: one statement, since every open checkout page asks for it.

    Where something of it was sent back, which is rare, another one asks for that: in the first, it would cost all.
    Raises ForbiddenError while the merchant is suspended and nobody has begun to pay: nobody shall.
    """
    row = await db.fetch_row(_PUBLIC, public_id)
    if row is None:
        raise not_found()
    if row["suspended"] and row["status"] == Status.PENDING and not read_deposits(row["deposits"])[0]:
        raise merchant_suspended()
    aside = await db.fetch_row(_SET_ASIDE, public_id) if row["was_refunded"] else None
    set_aside = Units(0 if aside is None else int(aside["units"]))
    return views.public_payment(row, chains.get(row["chain"]), macs, set_aside=set_aside)
