"""Merchants take money out in person: out of available, with a second factor, and never with an API key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.payouts import Kind, Status
from cambist.plugin import Units
from cambist.registry import Registry

from .api_keys import Actor
from .errors import NotFoundError
from .idempotency import Claim, choose_key, find_replayed, hash_request
from .payouts.create import insert_claim, named_asset, require_payouts
from .payouts.queue import Desk, NewPayout, debit_and_queue
from .payouts.records import COLUMNS, FEE, payout_row
from .payouts.requests import AddressText
from .payouts.targets import check_target
from .payouts.views import FeeView, payout_view
from .quotes import AmountText, Asset, Name, read_units

OPERATION = "withdrawal"


class WithdrawalRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/dashboard/withdrawals``. The project says whether it is live, and who is told of it."""

    project_id: Name
    chain: Name
    token: Name
    to_address: AddressText
    amount: AmountText
    totp_code: Annotated[str, Meta(max_length=64)] | None = None
    idempotency_key: str | None = None


class WithdrawalView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A withdrawal as its merchant sees it. ``waits_for`` says in a sentence why it has not been sent yet."""

    withdrawal_id: str
    project_id: str
    status: str
    mode: str
    chain: str
    token: str
    contract_address: str | None
    decimals: int
    amount: str
    to_address: str
    tx_hash: str | None
    fee: FeeView | None
    error: str | None
    waits_for: str | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


class WithdrawalPage(Struct, frozen=True, kw_only=True):
    """Withdrawals of a merchant, newest first. ``total`` is how many there are on all pages."""

    withdrawals: Sequence[WithdrawalView]
    total: int


class Made(Struct, frozen=True):
    """A withdrawal, and whether it was there before."""

    withdrawal: WithdrawalView
    replayed: bool


class _Order(Struct, frozen=True):
    asset: Asset
    target: str
    units: Units


def _read(registry: Registry, desk: Desk, request: WithdrawalRequest) -> _Order:
    asset = named_asset(desk, request.chain, request.token)
    target = check_target(registry, asset.chain, request.to_address)
    return _Order(asset, target, read_units(request.amount, asset.token))


async def before(
    conn: AsyncConnection, desk: Desk, actor: Actor, request: WithdrawalRequest, header_key: str | None
) -> WithdrawalView | None:
    """Return what the same idempotency key made before, so that no code is asked for twice; None where it is new.

    Refuses what could never be meant, before the merchant's code is spent on it.
    """
    claim = _claim(actor, request, header_key)
    if claim is not None and (made := await find_replayed(conn, claim)) is not None:
        return await get_withdrawal(conn, desk.registry, actor.merchant_row, made)
    _read(desk.registry, desk, request)
    return None


async def create_withdrawal(
    conn: AsyncConnection, desk: Desk, actor: Actor, request: WithdrawalRequest, header_key: str | None
) -> Made:
    """Queue a withdrawal. The caller has taken the merchant's code. After the commit, publish the hint ``outbound``."""
    withdrawal_id = desk.ids.new("wd")
    claim = _claim(actor, request, header_key)
    if claim is not None and not await insert_claim(conn, claim, withdrawal_id, desk):
        made = await find_replayed(conn, claim)
        if made is None:
            raise AssertionError("the key is there: that is why it could not be inserted")
        return Made(await get_withdrawal(conn, desk.registry, actor.merchant_row, made), replayed=True)
    order = _read(desk.registry, desk, request)
    settings = await require_payouts(conn, actor, order.asset)
    new = NewPayout(
        kind=Kind.WITHDRAWAL,
        payout_id=withdrawal_id,
        project_row=actor.project_row,
        merchant_row=actor.merchant_row,
        mode=actor.mode,
        chain=order.asset.chain,
        token=order.asset.token,
        target=order.target,
        units=order.units,
    )
    await debit_and_queue(conn, desk, settings, [new])
    return Made(await get_withdrawal(conn, desk.registry, actor.merchant_row, withdrawal_id), replayed=False)


def _claim(actor: Actor, request: WithdrawalRequest, header_key: str | None) -> Claim | None:
    key = choose_key(header_key, request.idempotency_key)
    if key is None:
        return None
    asked = msgspec.structs.replace(request, idempotency_key=None, totp_code=None)
    return Claim(
        merchant_row=actor.merchant_row,
        project_row=actor.project_row,
        mode=actor.mode,
        operation=OPERATION,
        key=key,
        request_hash=hash_request(asked),
    )


_LISTED = """
FROM payouts p JOIN projects j ON j.id = p.project_id
WHERE p.merchant_id = $1 AND p.kind = 'withdrawal' AND ($2::text IS NULL OR j.project_id = $2)
    AND ($3::text IS NULL OR p.status = $3) AND ($4::text IS NULL OR p.payout_id = $4)
"""
_SELECT = f"SELECT {COLUMNS}, {FEE}, j.project_id AS project_public_id {_LISTED}"


async def list_withdrawals(  # noqa: PLR0913  filters and paging, each by name
    conn: AsyncConnection,
    registry: Registry,
    merchant_row: int,
    *,
    project_id: str | None,
    status: Status | None,
    page: int,
    limit: int,
) -> WithdrawalPage:
    """Return one page of a merchant's withdrawals, live and simulated."""
    filters = (merchant_row, project_id, None if status is None else str(status), None)
    total = await conn.exec_driver_sql(f"SELECT count(*) {_LISTED}", filters)
    rows = await conn.exec_driver_sql(
        f"{_SELECT} ORDER BY p.id DESC LIMIT $5 OFFSET $6", (*filters, limit, (page - 1) * limit)
    )
    return WithdrawalPage(withdrawals=[_view(row, registry) for row in rows], total=total.scalar_one())


async def get_withdrawal(
    conn: AsyncConnection, registry: Registry, merchant_row: int, withdrawal_id: str
) -> WithdrawalView:
    """Return one of the merchant's withdrawals."""
    row = (await conn.exec_driver_sql(_SELECT, (merchant_row, None, None, withdrawal_id))).one_or_none()
    if row is None:
        raise NotFoundError("WITHDRAWAL_NOT_FOUND", "There is no such withdrawal.")
    return _view(row, registry)


def _view(row: Row[Any], registry: Registry) -> WithdrawalView:
    shown = payout_view(payout_row(row), registry)
    return WithdrawalView(
        withdrawal_id=shown.payout_id,
        project_id=row.project_public_id,
        status=shown.status,
        mode=shown.mode,
        chain=shown.chain,
        token=shown.token,
        contract_address=shown.contract_address,
        decimals=shown.decimals,
        amount=shown.amount,
        to_address=shown.to_address,
        tx_hash=shown.tx_hash,
        fee=shown.fee,
        error=shown.error,
        waits_for=shown.waits_for,
        created_at=shown.created_at,
        updated_at=shown.updated_at,
        completed_at=shown.completed_at,
    )
