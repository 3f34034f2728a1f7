"""The resolution list: confirmed deposits that are held, and belong to no order that still waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import ColumnElement, and_, case, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import aliased

from cambist.db.models import Account, Address, Deposit, Payment, Payout
from cambist.db.structs import AnyRow, AnySelect, columns_of, literally
from cambist.domain.intents import IntentKind
from cambist.domain.money import format_units
from cambist.domain.payments import OPEN, HeldReason, Status
from cambist.domain.payouts import GIVEN_BACK
from cambist.plugin import Units
from cambist.services.actor import Actor
from cambist.services.errors import NotFoundError
from cambist.services.listing import ALWAYS, Listed, ListOf, Owner, Part, Period, read_list
from cambist.services.paging import read_one
from cambist.services.receiving.deposits.rows import SENT_BEFORE, SENT_BEFORE_UNITS


class ResolutionView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A deposit somebody has to decide about, or has.

    ``amount`` is all that came, ``held_amount`` what there is to decide about, and ``refundable_amount`` what of that
    was not sent back before a reorg brought the deposit again. ``resolution`` is what was decided. ``can_accept`` says
    whether its payment or account could take it.
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
    refundable_amount: str
    address: str
    from_address: str | None
    tx_hash: str
    mined_at: datetime
    confirmed_at: datetime | None
    resolved_at: datetime | None
    payment_id: str | None
    payment_status: str | None
    order_id: str | None
    account_id: str | None
    external_id: str | None


_reason = case(
    (Deposit.held_reason.is_not(None), Deposit.held_reason),
    (Payment.id.is_(None), HeldReason.UNEXPECTED),
    (Payment.chain != Deposit.chain, HeldReason.WRONG_CHAIN),
    (~Deposit.matches, HeldReason.WRONG_TOKEN),
    (Payment.status == Status.FAILED, HeldReason.FAILED),
    (Payment.status.in_((Status.EXPIRED, Status.UNDERPAID)), HeldReason.LATE),
    else_=HeldReason.SURPLUS,
)
_held = Deposit.units - Deposit.available_units - Deposit.returned_units


def _refunds_since(deposit: type[Deposit]) -> AnySelect:
    """Return what of a payment was sent back out of available by refunds that were asked for since it had a deposit."""
    taken = func.sum(_Refund.units - _Refund.held_units)
    of_payment = (
        _Refund.payment_pk == deposit.payment_pk,
        _Refund.deposit_pk.is_(None),
        _Refund.kind == IntentKind.REFUND,
    )
    since = _Refund.status.not_in(GIVEN_BACK), _Refund.created_at >= deposit.first_seen_at
    return select(taken).where(*of_payment, *since).correlate(deposit)


_Refund, _Old = aliased(Payout), aliased(Deposit)
_of_payment = _Old.payment_pk == Deposit.payment_pk, _Old.matches, _Old.status == "confirmed"
_old_units = select(func.sum(_Old.units - _Old.returned_units)).where(
    *_of_payment, _refunds_since(_Old).scalar_subquery() > 0
)
_sent_out = _refunds_since(Deposit).scalar_subquery()
_old_left = func.greatest(_old_units.correlate(Deposit).scalar_subquery() - _sent_out, 0)
_unsent = func.greatest(_held - SENT_BEFORE_UNITS, 0)
_came_again = Deposit.incarnation > 1, Deposit.matches, Deposit.payment_pk.is_not(None)
REFUNDABLE_UNITS = case((and_(*_came_again, _sent_out > 0), func.least(_unsent, _old_left)), else_=_unsent)
"""What of a deposit can be sent back. A refund of its payment that went out of available names no deposits: it has sent
back what was there when it was asked for, and comes again after a reorg; what was first seen later, it has not."""
SELECT = (
    select(
        *columns_of(
            ResolutionView,
            Deposit,
            reason=_reason,
            can_accept=and_(
                _held > 0,
                ~SENT_BEFORE,
                _reason.in_((HeldReason.SURPLUS, HeldReason.LATE))
                | (Deposit.account_pk.is_not(None) & (Deposit.returned_units == 0)),
            ),
            contract_address=Deposit.contract,
            amount=Deposit.units,
            held_amount=_held,
            refundable_amount=REFUNDABLE_UNITS,
            address=Address.address,
            from_address=Deposit.sender,
            tx_hash=Deposit.tx_id,
            payment_id=Payment.payment_id,
            payment_status=Payment.status,
            order_id=Payment.order_id,
            account_id=Account.account_id,
            external_id=Account.external_id,
        )
    )
    .join(Address, Address.id == Deposit.address_pk)
    .outerjoin(Payment, Payment.id == Deposit.payment_pk)
    .outerjoin(Account, Account.id == Deposit.account_pk)
)


def of_project(deposits: AnySelect, actor: Actor) -> AnySelect:
    """Return those of deposits, joined with their payments, that the actor's project may decide about."""
    own = Deposit.merchant_pk == actor.merchant_pk, Deposit.mode == actor.mode
    return deposits.where(*own, _of_project(actor))


def _of_project(actor: Actor) -> ColumnElement[bool]:
    of_account = Account.id == Deposit.account_pk, Account.project_pk == actor.project_pk
    own_accounts = select(Account.id).where(*of_account).correlate(Deposit).exists()
    of_none = (
        Payment.id.is_(None) & Deposit.scope.in_((0, actor.project_pk)) & (Deposit.account_pk.is_(None) | own_accounts)
    )
    return (Payment.project_pk == actor.project_pk) | of_none


LIST = ListOf(Deposit.id, Deposit.first_seen_at, window=1_000)
"""A window is small: the payment of each deposit in it is looked up, and for many PostgreSQL reads all payments."""
HELD = literally(Deposit.status, "confirmed"), Deposit.available_units + Deposit.returned_units < Deposit.units


def waiting(reason: HeldReason | None) -> Sequence[ColumnElement[bool]]:
    """Return what holds of deposits, joined with their payments, that wait for a decision; for one reason if named."""
    # What was accepted while another deposit of its payment was not confirmed yet is decided, though still held.
    found: list[ColumnElement[bool]] = [
        Payment.id.is_(None) | ~Deposit.matches | Payment.status.not_in(OPEN),
        or_(Deposit.resolution.is_(None), Deposit.resolution != "accepted", Payment.status != Status.EXPIRED),
    ]
    return found if reason is None else [*found, _reason == reason]


async def list_resolutions(  # noqa: PLR0913  filters, each by name
    conn: AsyncConnection,
    actor: Actor,
    part: Part,
    *,
    reason: HeldReason | None = None,
    chain: str | None = None,
    payment_id: str | None = None,
    period: Period = ALWAYS,
) -> Listed[ResolutionView]:
    """Return one part of what waits for a decision: of the project's payments or of one, and what came for none."""
    own: Owner = {Deposit.merchant_pk: actor.merchant_pk, Deposit.mode: actor.mode}
    where = [*HELD]
    if payment_id is not None:
        # A payment has few deposits, found by an index of their own.
        wanted = Payment.payment_id == payment_id, Payment.project_pk == actor.project_pk
        own, where = {}, [*HELD, Deposit.payment_pk == select(Payment.id).where(*wanted).scalar_subquery()]
    return await read_list(
        conn,
        SELECT,
        resolution_view,
        LIST,
        part,
        own=own,
        where=where,
        filters={Deposit.chain: chain},
        also=[_of_project(actor), *waiting(reason)],
        period=period,
    )


async def get_resolution(conn: AsyncConnection, actor: Actor, deposit_id: str) -> ResolutionView:
    """Return one deposit as the list shows it, also when it is decided about."""
    return resolution_view(
        await read_one(conn, of_project(SELECT, actor).where(Deposit.deposit_id == deposit_id), not_found())
    )


async def refundable_units(conn: AsyncConnection, deposit_pk: int) -> Units:
    """Return how much of a deposit can be sent back; it is locked."""
    return Units(int((await conn.execute(select(REFUNDABLE_UNITS).where(Deposit.id == deposit_pk))).scalar_one()))


def not_found() -> NotFoundError:
    """Return the refusal for a deposit that is not there, or not this project's."""
    return NotFoundError("DEPOSIT_NOT_FOUND", "There is no such deposit.")


def resolution_view(row: AnyRow) -> ResolutionView:
    shown = {name: getattr(row, name) for name in ResolutionView.__struct_fields__}
    amounts = {
        name: format_units(int(shown[name]), row.decimals) for name in ("amount", "held_amount", "refundable_amount")
    }
    return ResolutionView(**shown | amounts)
