"""The resolution list: confirmed deposits that are held, and belong to no order that still waits for them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.money import format_units
from cambist.domain.payments import OPEN
from cambist.services.actor import Actor
from cambist.services.errors import NotFoundError
from cambist.services.paging import Page, read_page


class Reason(StrEnum):
    """Why somebody has to decide about a deposit."""

    SURPLUS = "surplus"
    LATE = "late"
    WRONG_TOKEN = "wrong_token"  # noqa: S105  a token on a chain
    WRONG_CHAIN = "wrong_chain"
    FAILED = "failed"
    UNEXPECTED = "unexpected"


class ResolutionView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A deposit somebody has to decide about, or has.

    ``amount`` is all that came, ``held_amount`` what there is to decide about. ``resolution`` is what was decided.
    ``can_accept`` says whether its payment could take it.
    """

    deposit_id: str
    reason: str
    resolution: str | None
    can_accept: bool
    chain: str
    token: str
    contract_address: str | None
    decimals: int
    amount: str
    held_amount: str
    address: str
    from_address: str | None
    tx_hash: str
    mined_at: datetime
    confirmed_at: datetime | None
    resolved_at: datetime | None
    payment_id: str | None
    payment_status: str | None
    order_id: str | None


_OPEN = ", ".join(f"'{status}'" for status in sorted(OPEN))

_COLUMNS = """
d.deposit_id, d.chain, d.token, d.contract, d.decimals, d.units, d.tx_id, d.sender, d.mined_at, d.confirmed_at,
       d.resolution, d.resolved_at, d.units - d.available_units - d.returned_units AS held_units, a.address,
       p.payment_id, p.status AS payment_status, p.order_id, r.reason
"""
_FROM = """
FROM deposits d JOIN addresses a ON a.id = d.address_pk LEFT JOIN payments p ON p.id = d.payment_pk
    CROSS JOIN LATERAL (SELECT CASE
        WHEN p.id IS NULL THEN 'unexpected'
        WHEN p.chain <> d.chain THEN 'wrong_chain'
        WHEN NOT d.matches THEN 'wrong_token'
        WHEN p.status = 'failed' THEN 'failed'
        WHEN p.status IN ('expired', 'underpaid') THEN 'late'
        ELSE 'surplus' END AS reason) r
WHERE d.merchant_pk = $1 AND d.mode = $2 AND (p.project_pk = $3 OR p.id IS NULL AND d.scope IN (0, $3))
"""
# What was accepted while another deposit of its payment was not confirmed yet is decided, though still held.
_WAITING = f"""
{_FROM} AND d.status = 'confirmed' AND d.available_units + d.returned_units < d.units
    AND (p.id IS NULL OR NOT d.matches OR p.status NOT IN ({_OPEN}))
    AND (d.resolution IS DISTINCT FROM 'accepted' OR p.status <> 'expired')
    AND ($4::text IS NULL OR r.reason = $4) AND ($5::text IS NULL OR d.chain = $5)
"""


async def list_resolutions(  # noqa: PLR0913  filters and paging, each by name
    conn: AsyncConnection, actor: Actor, *, reason: Reason | None, chain: str | None, page: int, limit: int
) -> Page[ResolutionView]:
    """Return one page of what waits for a decision: of the project's payments, and what came for none."""
    filters = (*_whose(actor), None if reason is None else str(reason), chain)
    return await read_page(conn, _COLUMNS, _WAITING, filters, _view, newest="d.id", page=page, limit=limit)


async def get_resolution(conn: AsyncConnection, actor: Actor, deposit_id: str) -> ResolutionView:
    """Return one deposit as the list shows it, also when it is decided about."""
    found = await conn.exec_driver_sql(f"SELECT {_COLUMNS} {_FROM} AND d.deposit_id = $4", (*_whose(actor), deposit_id))
    row = found.one_or_none()
    if row is None:
        raise not_found()
    return _view(row)


def not_found() -> NotFoundError:
    """Return the refusal for a deposit that is not there, or not this project's."""
    return NotFoundError("DEPOSIT_NOT_FOUND", "There is no such deposit.")


def _whose(actor: Actor) -> tuple[int, str, int]:
    return actor.merchant_pk, actor.mode, actor.project_pk


def _view(row: Row[Any]) -> ResolutionView:
    waits = int(row.held_units) > 0
    return ResolutionView(
        deposit_id=row.deposit_id,
        reason=row.reason,
        resolution=row.resolution,
        can_accept=waits and row.reason in (Reason.SURPLUS, Reason.LATE),
        chain=row.chain,
        token=row.token,
        contract_address=row.contract,
        decimals=row.decimals,
        amount=format_units(int(row.units), row.decimals),
        held_amount=format_units(int(row.held_units), row.decimals),
        address=row.address,
        from_address=row.sender,
        tx_hash=row.tx_id,
        mined_at=row.mined_at,
        confirmed_at=row.confirmed_at,
        resolved_at=row.resolved_at,
        payment_id=row.payment_id,
        payment_status=row.payment_status,
        order_id=row.order_id,
    )
