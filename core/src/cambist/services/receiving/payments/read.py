"""Finds payments: one of a project's, a page of them, or one by the public id that its customer holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Payment
from cambist.db.structs import AnyRow
from cambist.domain.payments import Status
from cambist.plugin import ChainInfo
from cambist.services.addresses.macs import AddressMacs
from cambist.services.errors import NotFoundError
from cambist.services.paging import Page, read_one, read_page

from . import views
from .views import DEPOSITS, PaymentDetail, PaymentView, PublicPayment


def not_found() -> NotFoundError:
    """Return the refusal for a payment that is not there, or not this project's."""
    return NotFoundError("PAYMENT_NOT_FOUND", "There is no such payment.")


async def list_payments(  # noqa: PLR0913  filters and paging, each by name
    conn: AsyncConnection,
    project_pk: int,
    macs: AddressMacs,
    *,
    status: Status | None,
    chain: str | None,
    page: int,
    limit: int,
) -> Page[PaymentView]:
    listed = select(text(views.COLUMNS)).select_from(Payment).where(Payment.project_pk == project_pk)
    filters = {Payment.status: status, Payment.chain: chain}
    return await read_page(
        conn, listed, partial(_view, macs), newest=Payment.id, filters=filters, page=page, limit=limit
    )


def _view(macs: AddressMacs, row: AnyRow) -> PaymentView:
    return views.payment_view(row._mapping, macs)  # noqa: SLF001  SQLAlchemy's public name for it


async def get_payment(conn: AsyncConnection, project_pk: int, payment_id: str, macs: AddressMacs) -> PaymentDetail:
    found = await conn.exec_driver_sql(
        f"SELECT {views.COLUMNS}, {DEPOSITS} FROM payments p WHERE payment_id = $1 AND project_pk = $2",  # noqa: S608  constants
        (payment_id, project_pk),
    )
    row = found.mappings().one_or_none()
    if row is None:
        raise not_found()
    deposits, _ = views.read_deposits(row["deposits"])
    return views.payment_detail(row, deposits, macs)


async def get_links(conn: AsyncConnection, project_pk: int, payment_id: str) -> AnyRow:
    """Return payment id, public id and status of one of the project's payments: what a receipt's links are made of."""
    links = select(Payment.payment_id, Payment.public_id, Payment.status)
    wanted = links.where(Payment.payment_id == payment_id, Payment.project_pk == project_pk)
    return await read_one(conn, wanted, not_found())


_PUBLIC = f"""
SELECT p.payment_id, p.public_id, p.mode, p.chain, p.token, p.contract, p.decimals, p.address, p.pricing_mode, p.amount,
       p.fiat_currency, p.exchange_rate, p.expected_units, p.received_units, p.required_confirmations, p.status,
       p.tx_id, p.order_id, p.success_url, p.cancel_url, p.expires_at, p.created_at, p.address_mac,
       j.name AS shop_name, {DEPOSITS}
FROM payments p JOIN projects j ON j.id = p.project_pk WHERE p.public_id = $1
"""  # noqa: S608  a constant


async def get_public(db: Database, chains: Mapping[str, ChainInfo], public_id: str, macs: AddressMacs) -> PublicPayment:
    """Return a payment as its customer sees it: one statement, since every open checkout page asks for it."""
    row = await db.fetch_row(_PUBLIC, public_id)
    if row is None:
        raise not_found()
    return views.public_payment(row, chains.get(row["chain"]), macs)
