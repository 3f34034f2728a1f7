"""Addresses to which a merchant lets money go without being asked each time. Approving one takes a second factor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.ports import Ids
from cambist.registry import Registry
from cambist.services.accounting.tokens import find_chain
from cambist.services.addresses.checks import check_to_address
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.pricing.quotes import Name

from .requests import AddressText

ADDRESSES_MAX = 100
"""Approved addresses of one merchant, live and sandbox together."""

Mode = Literal["live", "sandbox"]


class ApprovalRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/dashboard/approved-addresses``."""

    chain: Name
    address: AddressText
    label: Annotated[str, Meta(max_length=100)] = ""
    mode: Mode = "live"
    totp_code: Annotated[str, Meta(max_length=64)] | None = None


class ApprovedAddress(Struct, frozen=True, kw_only=True, rename="camel"):
    """An address that auto-payouts may go to."""

    approval_id: str
    mode: str
    chain: str
    address: str
    label: str
    approved_at: datetime


def check(registry: Registry, request: ApprovalRequest) -> str:
    """Return the normalized address. Raises InvalidError, before the merchant's code is spent on it."""
    return check_to_address(registry, find_chain(registry, request.chain), request.address, "address")


_COLUMNS = "approval_id, mode, chain, address, label, approved_at"


async def lock_approvals(conn: AsyncConnection, merchant_pk: int) -> None:
    """Let a merchant's approvals and what depends on them change one at a time, until the transaction ends."""
    await conn.exec_driver_sql("SELECT FROM merchants WHERE id = $1 FOR NO KEY UPDATE", (merchant_pk,))


async def approve(  # noqa: PLR0913, PLR0917  whose, what, and where ids and time come from
    conn: AsyncConnection, registry: Registry, merchant_pk: int, request: ApprovalRequest, ids: Ids, now: datetime
) -> ApprovedAddress:
    """Approve an address; one that is approved already gets the new label. The caller has taken the code."""
    address = check(registry, request)
    await lock_approvals(conn, merchant_pk)
    found = await conn.exec_driver_sql(
        "INSERT INTO approved_addresses (approval_id, merchant_pk, mode, chain, address, label, approved_at)"  # noqa: S608
        " VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (merchant_pk, mode, chain, address)"
        f" DO UPDATE SET label = excluded.label RETURNING {_COLUMNS}",
        (ids.new("apa"), merchant_pk, request.mode, request.chain, address, request.label, now),
    )
    approved = _approved(found.one())
    count = await conn.exec_driver_sql("SELECT count(*) FROM approved_addresses WHERE merchant_pk = $1", (merchant_pk,))
    if count.scalar_one() > ADDRESSES_MAX:
        raise ConflictError(
            "TOO_MANY_APPROVED_ADDRESSES", f"A merchant can have {ADDRESSES_MAX} approved addresses. Delete one first."
        )
    return approved


async def list_approved(conn: AsyncConnection, merchant_pk: int, mode: Mode | None) -> Sequence[ApprovedAddress]:
    """Return the merchant's approved addresses, oldest first."""
    rows = await conn.exec_driver_sql(
        f"SELECT {_COLUMNS} FROM approved_addresses"  # noqa: S608  constants
        " WHERE merchant_pk = $1 AND ($2::text IS NULL OR mode = $2) ORDER BY id",
        (merchant_pk, mode),
    )
    return [_approved(row) for row in rows]


async def withdraw_approval(conn: AsyncConnection, merchant_pk: int, approval_id: str, now: datetime) -> None:
    """Take an approval back, and switch off the auto-payouts that go to its address."""
    await lock_approvals(conn, merchant_pk)
    whose = (merchant_pk, approval_id)
    found = await conn.exec_driver_sql(
        "SELECT mode, chain, address FROM approved_addresses WHERE merchant_pk = $1 AND approval_id = $2", whose
    )
    row = found.one_or_none()
    if row is None:
        raise NotFoundError("APPROVED_ADDRESS_NOT_FOUND", "There is no such approved address.")
    # The coins first, as an auto-payout that is being made locks them.
    await conn.exec_driver_sql(
        "UPDATE coin_settings SET autopayout_policy = 'off', autopayout_address = NULL, updated_at = $5"
        " WHERE merchant_pk = $1 AND mode = $2 AND chain = $3 AND autopayout_address = $4",
        (merchant_pk, row.mode, row.chain, row.address, now),
    )
    await conn.exec_driver_sql("DELETE FROM approved_addresses WHERE merchant_pk = $1 AND approval_id = $2", whose)


def _approved(row: Row[Any]) -> ApprovedAddress:
    return ApprovedAddress(**row._mapping)  # noqa: SLF001  SQLAlchemy's public name for it
