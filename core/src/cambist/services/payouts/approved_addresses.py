"""Addresses to which a merchant lets money go without being asked each time. Approving one takes a second factor."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from msgspec import Meta, Struct
from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.models import Merchant
from cambist.db.structs import columns_of, to_struct
from cambist.domain.destinations import split
from cambist.ports import Ids
from cambist.registry import Registry
from cambist.services.addresses.checks import check_destination
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.identity.merchants import live_not_granted
from cambist.services.listing import Listed, ListOf, Part, Sort, read_list
from cambist.services.pricing.quotes import Name
from cambist.services.supported import find_chain

from .queue import refuse_own_wallet
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
    """An address that auto-payouts may go to, with its tag behind a ``#`` where it has one."""

    approval_id: str
    mode: str
    chain: str
    address: str
    label: str
    approved_at: datetime


async def check(
    conn: AsyncConnection, registry: Registry, merchant_pk: int, request: ApprovalRequest, *, live: bool
) -> str:
    """Return the normalized address, before the merchant's code is spent on it.

    Raises InvalidError, also for the wallet that it would be sent from, to which nothing would ever go; and
    ForbiddenError for live mode where ``live`` says that the operator has not granted it to the merchant.
    """
    if request.mode == "live" and not live:
        raise live_not_granted()
    chain = find_chain(registry.chains, request.chain)
    approved = check_destination(registry, chain, request.address, "address")
    address, _ = split(registry.families[chain.family], approved)
    await refuse_own_wallet(conn, chain, merchant_pk, request.mode, address, "address")
    return approved


_COLUMNS = columns_of(ApprovedAddress, models.ApprovedAddress)


async def lock_approvals(conn: AsyncConnection, merchant_pk: int) -> None:
    """Let a merchant's approvals and what depends on them change one at a time, until the transaction ends."""
    await conn.execute(select(Merchant.id).where(Merchant.id == merchant_pk).with_for_update(key_share=True))


async def approve(  # noqa: PLR0913, PLR0917  whose, what, and where ids and time come from
    conn: AsyncConnection, merchant_pk: int, request: ApprovalRequest, address: str, ids: Ids, now: datetime
) -> ApprovedAddress:
    """Approve an address as ``check`` returned it; one that is approved already gets the new label.

    The caller has taken the code.
    """
    await lock_approvals(conn, merchant_pk)
    new = insert(models.ApprovedAddress).values(
        approval_id=ids.new("apa"),
        merchant_pk=merchant_pk,
        mode=request.mode,
        chain=request.chain,
        address=address,
        label=request.label,
        approved_at=now,
    )
    again = new.on_conflict_do_update(
        index_elements=["merchant_pk", "mode", "chain", "address"], set_={"label": new.excluded.label}
    )
    approved = to_struct(ApprovedAddress, (await conn.execute(again.returning(*_COLUMNS))).one())
    count = await conn.scalar(select(func.count()).where(models.ApprovedAddress.merchant_pk == merchant_pk))
    if (count or 0) > ADDRESSES_MAX:
        raise ConflictError(
            "TOO_MANY_APPROVED_ADDRESSES", f"A merchant can have {ADDRESSES_MAX} approved addresses. Delete one first."
        )
    return approved


async def is_approved(  # noqa: PLR0913  whose, and where it is
    conn: AsyncConnection, merchant_pk: int, mode: str, chain: str, address: str, *, lock: bool = False
) -> bool:
    """Whether auto-payouts may go to an address; ``lock`` keeps it so until the transaction ends."""
    wanted = select(models.ApprovedAddress.id).where(
        models.ApprovedAddress.merchant_pk == merchant_pk,
        models.ApprovedAddress.mode == mode,
        models.ApprovedAddress.chain == chain,
        models.ApprovedAddress.address == address,
    )
    found = await conn.scalar(wanted.with_for_update(read=True, key_share=True) if lock else wanted)
    return found is not None


_LIST = ListOf(models.ApprovedAddress.id)
_ALL = Part(limit=ADDRESSES_MAX, sort=Sort.OLDEST)


async def list_approved(
    conn: AsyncConnection, merchant_pk: int, mode: str | None, part: Part = _ALL, *, chain: str | None = None
) -> Listed[ApprovedAddress]:
    """Return one part of the merchant's approved addresses, all of them unless one is asked for."""
    approved = models.ApprovedAddress
    listed = select(*_COLUMNS).where(approved.merchant_pk == merchant_pk)
    filters, show = {approved.mode: mode, approved.chain: chain}, partial(to_struct, ApprovedAddress)
    return await read_list(conn, listed, show, _LIST, part, filters=filters)


async def withdraw_approval(conn: AsyncConnection, merchant_pk: int, approval_id: str, now: datetime) -> None:
    """Take an approval back, and switch off the auto-payouts that go to its address."""
    await lock_approvals(conn, merchant_pk)
    whose = models.ApprovedAddress.merchant_pk == merchant_pk, models.ApprovedAddress.approval_id == approval_id
    approved = (await conn.execute(select(*_COLUMNS).where(*whose))).one_or_none()
    if approved is None:
        raise NotFoundError("APPROVED_ADDRESS_NOT_FOUND", "There is no such approved address.")
    # The coins first, as an auto-payout that is being made locks them.
    coins = (
        models.CoinSettings.merchant_pk == merchant_pk,
        models.CoinSettings.mode == approved.mode,
        models.CoinSettings.chain == approved.chain,
        models.CoinSettings.autopayout_address == approved.address,
    )
    off = {"autopayout_policy": "off", "autopayout_address": None, "updated_at": now}
    await conn.execute(update(models.CoinSettings).where(*coins).values(off))
    await conn.execute(delete(models.ApprovedAddress).where(*whose))
