"""Finds refunds and shows them: a page of a project's, or one of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.money import format_units
from cambist.domain.payouts import Status
from cambist.services.errors import NotFoundError
from cambist.services.paging import Page, read_page


class RefundView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A refund as its merchant sees it.

    ``payment_id`` is None where the money came for no payment. ``deposit_id`` is there where one deposit of the
    resolution list was sent back. ``waits_for`` says in a sentence why it has not been sent yet.
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
    reason: str | None
    tx_hash: str | None
    error: str | None
    waits_for: str | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


_LISTED = """
FROM payouts p LEFT JOIN deposits d ON d.id = p.deposit_pk
    LEFT JOIN payments y ON y.id = coalesce(p.payment_pk, d.payment_pk)
WHERE p.project_pk = $1 AND p.kind = 'refund' AND ($2::text IS NULL OR p.status = $2)
    AND ($3::text IS NULL OR p.payout_id = $3)
"""
_COLUMNS = """
p.payout_id, y.payment_id, d.deposit_id, p.status, p.chain, p.token, p.contract, p.decimals, p.units,
       p.to_address, p.reason, p.tx_id, p.error, p.waits_for, p.created_at, p.updated_at, p.finished_at
"""


async def list_refunds(
    conn: AsyncConnection, project_pk: int, *, status: Status | None, page: int, limit: int
) -> Page[RefundView]:
    """Return one page of a project's refunds."""
    filters = (project_pk, None if status is None else str(status), None)
    return await read_page(conn, _COLUMNS, _LISTED, filters, _view, newest="p.id", page=page, limit=limit)


async def get_refund(conn: AsyncConnection, project_pk: int, refund_id: str) -> RefundView:
    """Return one of the project's refunds."""
    found = await conn.exec_driver_sql(f"SELECT {_COLUMNS} {_LISTED}", (project_pk, None, refund_id))
    row = found.one_or_none()
    if row is None:
        raise NotFoundError("REFUND_NOT_FOUND", "There is no such refund.")
    return _view(row)


def _view(row: Row[Any]) -> RefundView:
    return RefundView(
        refund_id=row.payout_id,
        payment_id=row.payment_id,
        deposit_id=row.deposit_id,
        status=row.status,
        chain=row.chain,
        token=row.token,
        contract_address=row.contract,
        decimals=row.decimals,
        amount=format_units(int(row.units), row.decimals),
        to_address=row.to_address,
        reason=row.reason,
        tx_hash=row.tx_id,
        error=row.error,
        waits_for=row.waits_for,
        created_at=row.created_at,
        updated_at=row.updated_at,
        completed_at=row.finished_at if row.status == Status.COMPLETED else None,
    )
