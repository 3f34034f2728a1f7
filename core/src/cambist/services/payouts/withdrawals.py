"""Merchants take money out in person: out of available, with a second factor, and never with an API key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from sqlalchemy import bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Payout, Project
from cambist.db.structs import AnyRow, literally
from cambist.domain.failures import Failure
from cambist.domain.intents import IntentKind
from cambist.domain.payouts import Status
from cambist.plugin import Units
from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.addresses.checks import check_tag, check_to_address
from cambist.services.errors import NotFoundError
from cambist.services.idempotency import Claim, Made, by_value, choose_key, claim_of, find_replayed, take_key
from cambist.services.identity.projects import require_active
from cambist.services.listing import ALWAYS, Listed, ListOf, Part, Period, read_list
from cambist.services.paging import read_one
from cambist.services.pricing.quotes import AmountText, Asset, Name, read_units

from .create import named_asset, require_payouts
from .queue import NewPayout, PayoutContext, debit_and_queue, refuse_own_wallet
from .read import COLUMNS, FEE, FeeView, fee_view, payout_row, what_every_kind_shows
from .requests import AddressText, TagText

OPERATION = "withdrawal"


class WithdrawalRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The body of ``POST /api/dashboard/withdrawals``. The project says whether it is live, and who is told of it."""

    project_id: Name
    chain: Name
    token: Name
    to_address: AddressText
    to_tag: TagText | None = None
    amount: AmountText
    totp_code: Annotated[str, Meta(max_length=64)] | None = None
    idempotency_key: str | None = None


class WithdrawalView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A withdrawal as its merchant sees it. ``waits_for`` says in a word why it has not been sent yet."""

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
    to_tag: str | UnsetType = UNSET
    tx_hash: str | None
    fee: FeeView | None
    error: str | None
    error_code: Failure | None
    waits_for: str | None
    waits_for_text: str | None
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


def _read(context: PayoutContext, request: WithdrawalRequest) -> tuple[Asset, str, Units, str | None]:
    """Return what is withdrawn, to which address, and with which tag."""
    asset = named_asset(context.registry, request.chain, request.token)
    to_address = check_to_address(context.registry, asset.chain, request.to_address)
    to_tag = check_tag(context.registry, asset.chain, request.to_tag)
    return asset, to_address, read_units(request.amount, asset.token), to_tag


async def before(
    conn: AsyncConnection, context: PayoutContext, actor: Actor, request: WithdrawalRequest, header_key: str | None
) -> WithdrawalView | None:
    """Return what the same idempotency key made before, so that no code is asked for twice; None where it is new.

    Refuses what could never be meant, before the merchant's code is spent on it.
    """
    await require_active(conn, actor)
    claim = _claim(actor, request, header_key)
    if claim is not None and (made := await find_replayed(conn, claim)) is not None:
        return await get_withdrawal(conn, context.registry, actor.merchant_pk, made)
    asset, to_address, *_ = _read(context, request)
    await refuse_own_wallet(conn, asset.chain, actor.merchant_pk, actor.mode, to_address)
    return None


async def made_meanwhile(
    conn: AsyncConnection, context: PayoutContext, actor: Actor, request: WithdrawalRequest, header_key: str | None
) -> WithdrawalView | None:
    """Return what a twin with the same key makes right now, once it is made; None where there is none.

    The caller undoes the transaction: it takes the key, which is how it waits, and would keep it for nothing.
    """
    claim = _claim(actor, request, header_key)
    made = await take_key(conn, claim, "", context.clock.now())
    return None if made is None else await get_withdrawal(conn, context.registry, actor.merchant_pk, made)


async def create_withdrawal(  # noqa: PLR0913  what may refuse it, by name
    conn: AsyncConnection,
    context: PayoutContext,
    actor: Actor,
    request: WithdrawalRequest,
    header_key: str | None,
    *,
    check: Callable[[], Awaitable[object]] | None = None,
) -> Made[WithdrawalView]:
    """Queue a withdrawal. The caller has taken the merchant's code. After the commit, publish the hint ``outbound``.

    ``check`` raises what the caller refuses. It may wait: the key is taken before, where ``made_meanwhile`` finds it.
    """
    withdrawal_id = context.ids.new("wd")
    made = await take_key(conn, _claim(actor, request, header_key), withdrawal_id, context.clock.now())
    if made is not None:
        return Made(await get_withdrawal(conn, context.registry, actor.merchant_pk, made), replayed=True)
    if check is not None:
        await check()
    await require_active(conn, actor)
    asset, to_address, units, to_tag = _read(context, request)
    settings = await require_payouts(conn, actor, asset)
    new = NewPayout.of(actor, IntentKind.WITHDRAWAL, withdrawal_id, asset, to_address, units, to_tag)
    await debit_and_queue(conn, context, settings, [new])
    return Made(await get_withdrawal(conn, context.registry, actor.merchant_pk, withdrawal_id), replayed=False)


def _claim(actor: Actor, request: WithdrawalRequest, header_key: str | None) -> Claim | None:
    asked = by_value(request, totp_code=None)
    return claim_of(actor, OPERATION, choose_key(header_key, request.idempotency_key), asked)


_SELECT = (
    select(*COLUMNS, FEE, Project.project_id)
    .outerjoin(Project, Project.id == Payout.project_pk)
    .where(literally(Payout.kind, IntentKind.WITHDRAWAL))
)
_GET = _SELECT.where(Payout.merchant_pk == bindparam("merchant_pk"), Payout.payout_id == bindparam("withdrawal_id"))


_LIST = ListOf(Payout.id, Payout.created_at)


async def list_withdrawals(  # noqa: PLR0913  filters, each by name
    conn: AsyncConnection,
    registry: Registry,
    merchant_pk: int,
    part: Part,
    *,
    project_id: str | None = None,
    status: Status | None = None,
    period: Period = ALWAYS,
) -> Listed[WithdrawalView]:
    """Return one part of a merchant's withdrawals, live and simulated."""
    own = {Payout.merchant_pk: merchant_pk}
    filters, show = {Project.project_id: project_id, Payout.status: status}, partial(_view, registry)
    return await read_list(conn, _SELECT, show, _LIST, part, own=own, filters=filters, period=period)


async def get_withdrawal(
    conn: AsyncConnection, registry: Registry, merchant_pk: int, withdrawal_id: str
) -> WithdrawalView:
    missing = NotFoundError("WITHDRAWAL_NOT_FOUND", "There is no such withdrawal.")
    given = {"merchant_pk": merchant_pk, "withdrawal_id": withdrawal_id}
    return _view(registry, await read_one(conn, _GET, missing, given))


def _view(registry: Registry, row: AnyRow) -> WithdrawalView:
    sent = payout_row(row)
    return WithdrawalView(
        withdrawal_id=sent.payout_id,
        project_id=row.project_id,
        mode=sent.mode,
        fee=fee_view(sent, registry),
        **what_every_kind_shows(sent),
    )
