"""What a merchant decides about held money: count it to its order, release it, or send it back. Once.

Whoever is first decides; the same decision again changes nothing, another one is refused. Money is locked from the
chain's cursor on, as a poll locks it (``deposits/rows.py``).
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from msgspec import Struct, structs
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Deposit, Payment, Payout
from cambist.db.structs import AnyRow
from cambist.domain import payments as machine
from cambist.domain.intents import IntentKind
from cambist.domain.money import format_units, same_value
from cambist.domain.payments import Status
from cambist.domain.payouts import GIVEN_BACK
from cambist.plugin import Head, Units
from cambist.services.actor import Actor
from cambist.services.addresses.checks import check_tag, check_to_address
from cambist.services.errors import ConflictError
from cambist.services.idempotency import Made, lead_to, take_key
from cambist.services.identity.projects import require_active
from cambist.services.payouts.create import require_payouts
from cambist.services.payouts.queue import NewPayout, PayoutContext
from cambist.services.pricing.quotes import read_units
from cambist.services.receiving.accounts import events as account_events
from cambist.services.receiving.deposits import crediting, judging
from cambist.services.receiving.deposits.rows import DepositRow, lock_cursor, lock_deposits
from cambist.services.receiving.deposits.store import WatchedChain
from cambist.services.reversals.refunds import parts
from cambist.services.reversals.refunds.create import RefundRequest, asset_of, claim_of_refund, queue_refund
from cambist.services.reversals.refunds.read import RefundView, get_refund

from .read import ResolutionView, get_resolution, not_found, of_project, refundable_units


class Decided(Struct, frozen=True, kw_only=True):
    """A deposit after a decision, and the public ids of payments and accounts that changed by it."""

    resolution: ResolutionView
    changed: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()


class _Case(NamedTuple):
    """A deposit and its payment (None where it came for none, or is not what the payment asks for), both locked."""

    deposit: DepositRow
    row: AnyRow
    payment: AnyRow | None
    head: Head


async def accept(conn: AsyncConnection, context: PayoutContext, actor: Actor, deposit_id: str) -> Decided:
    """Count what is held of a deposit to its order, whole, however late it came; the order is judged again at once.

    What came to an account's address is counted to the account, and told as if it had been right from the start.
    After the commit, publish the hints ``webhooks``, ``payment:<public id>`` and ``account:<public id>``.
    """
    await require_active(conn, actor)
    case = await _lock(conn, actor, deposit_id)
    deposit, payment = case.deposit, case.payment
    if deposit.account_pk is not None:
        return await _accept_for_account(conn, context, actor, case)
    if payment is None or payment.status == Status.FAILED or deposit.sent_before_units:
        raise ConflictError(
            "CANNOT_ACCEPT", "No order can take this deposit. It can be released to the wallet, or sent back."
        )
    if deposit.resolution == "accepted" and (not deposit.held_units or payment.status == Status.EXPIRED):
        return Decided(resolution=await get_resolution(conn, actor, deposit_id))
    _refuse_decided(case)
    order, now = payment.order_units, context.clock.now()
    changed = {
        "order_units": order + deposit.held_units if Status(payment.status) in machine.REFUNDABLE else order,
        "accepted_units": machine.accepted_units(
            Units(payment.expected_units), Units(order), Units(payment.accepted_units), deposit.held_units
        ),
        "updated_at": now,
    }
    await _resolve(conn, deposit, "accepted", now)
    await conn.execute(update(Payment).where(Payment.id == payment.id).values(changed))
    judged = await judging.judge_payment(conn, _chain_scope(context, actor, case), case.head, now, payment.id)
    return Decided(
        resolution=await get_resolution(conn, actor, deposit_id),
        changed=tuple({payment.public_id, *judged.changed}),
    )


async def _accept_for_account(conn: AsyncConnection, context: PayoutContext, actor: Actor, case: _Case) -> Decided:
    deposit, now, told = case.deposit, context.clock.now(), account_events.Told()
    if deposit.resolution != "accepted" or deposit.held_units:
        _refuse_decided(case)
        if deposit.returned_units or deposit.sent_before_units:
            # Its event names the whole amount, for the merchant to credit.
            raise ConflictError(
                "CANNOT_ACCEPT", "A part of this deposit was sent back. What is left of it can be released."
            )
        await _resolve(conn, deposit, "accepted", now)
        counted = Units(deposit.available_units - deposit.released_units + deposit.held_units)
        await crediting.credit_and_allocate(conn, actor.mode, (), [(counted, [deposit])])
        told = await account_events.tell(conn, [deposit.id], account_events.CONFIRMED, context.ids, now)
    return Decided(resolution=await get_resolution(conn, actor, deposit.deposit_id), accounts=tuple(told.accounts))


async def release(conn: AsyncConnection, context: PayoutContext, actor: Actor, deposit_id: str) -> Decided:
    """Move what is held of a deposit to available, and leave its payment as it is."""
    await require_active(conn, actor)
    case = await _lock(conn, actor, deposit_id)
    if case.deposit.resolution != "released" or case.deposit.held_units:
        _refuse_decided(case)
        await crediting.release(conn, actor.mode, case.deposit, context.clock.now())
    return Decided(resolution=await get_resolution(conn, actor, deposit_id))


async def refund(  # noqa: PLR0913, PLR0917  who asks for what
    conn: AsyncConnection,
    context: PayoutContext,
    actor: Actor,
    deposit_id: str,
    request: RefundRequest,
    header_key: str | None,
) -> Made[RefundView]:
    """Queue a refund of what is held of a deposit, from the chain on which it came.

    After the commit, publish the hint ``outbound``.
    """
    await require_active(conn, actor)
    refund_id = context.ids.new("ref")
    claim = claim_of_refund(actor, request, header_key, subject=deposit_id)
    before = await take_key(conn, claim, refund_id, context.clock.now())
    if before is not None:
        return Made(await get_refund(conn, actor.project_pk, before), replayed=True)
    case = await _lock(conn, actor, deposit_id)
    asset = asset_of(context.registry, case.row)
    to_address = check_to_address(context.registry, asset.chain, request.to_address)
    to_tag = check_tag(context.registry, asset.chain, request.to_tag)
    if (same := await _same(conn, actor, case, (to_address, to_tag), request)) is not None:
        await lead_to(conn, claim, same)
        return Made(await get_refund(conn, actor.project_pk, same), replayed=True)
    _refuse_decided(case)
    settings = await require_payouts(conn, actor, asset)
    # In a deposit's first life nothing of it was sent back before.
    is_first = case.deposit.incarnation == 1
    left = case.deposit.unsent_units if is_first else await refundable_units(conn, case.deposit.id)
    if not left:
        raise ConflictError(
            "ALREADY_RESOLVED",
            "What is held of this deposit was sent back before a reorganization of the chain brought it again. It can"
            " be released to the wallet.",
        )
    units = left if request.amount is None else read_units(request.amount, asset.token)
    if units > left:
        most = format_units(left, asset.token.decimals)
        raise ConflictError("REFUND_EXCEEDS_HELD", f"Of this deposit, {most} {asset.token.symbol} can be sent back.")
    if units == case.deposit.held_units:
        await _resolve(conn, case.deposit, "refunded", context.clock.now())
    new = structs.replace(
        NewPayout.of(actor, IntentKind.REFUND, refund_id, asset, to_address, units, to_tag),
        payment_pk=None if case.payment is None else case.payment.id,
        deposit_pk=case.deposit.id,
        reason=request.reason,
    )
    return await queue_refund(conn, context, settings, new, [parts.Part(case.deposit, units)])


async def _resolve(conn: AsyncConnection, deposit: DepositRow, resolution: str, now: datetime) -> None:
    decided = {"resolution": resolution, "resolved_at": now}
    await conn.execute(update(Deposit).where(Deposit.id == deposit.id).values(decided))


async def _lock(conn: AsyncConnection, actor: Actor, deposit_id: str) -> _Case:
    wanted = of_project(select(Deposit).outerjoin(Payment, Payment.id == Deposit.payment_pk), actor)
    row = (await conn.execute(wanted.where(Deposit.deposit_id == deposit_id))).one_or_none()
    head = None if row is None else await lock_cursor(conn, row.chain, row.scope)
    if row is None or head is None:
        raise not_found()
    deposit = (await lock_deposits(conn, [row.id]))[row.id]
    payment = None
    if row.matches and row.payment_pk is not None:
        locked = select(Payment).where(Payment.id == row.payment_pk).with_for_update(key_share=True)
        payment = (await conn.execute(locked)).one()
    return _Case(deposit, row, payment, head)


def _refuse_decided(case: _Case) -> None:
    """Refuse where there is nothing to decide: not yet, or not any more."""
    deposit, payment = case.deposit, case.payment
    if deposit.status != "confirmed":
        raise ConflictError("NOT_RESOLVABLE", "This deposit does not have its confirmations yet, or not any more.")
    if payment is not None and Status(payment.status) in machine.OPEN:
        raise ConflictError("NOT_RESOLVABLE", "Its payment is still open, and may need this deposit.")
    undecided = deposit.resolution is None or payment is None or payment.status != Status.EXPIRED
    if not deposit.held_units or not undecided:
        decision = "nothing of it is held" if deposit.resolution is None else f"it was {deposit.resolution}"
        raise ConflictError("ALREADY_RESOLVED", f"Nothing of this deposit waits for a decision: {decision}.")


async def _same(
    conn: AsyncConnection, actor: Actor, case: _Case, recipient: tuple[str, str | None], request: RefundRequest
) -> str | None:
    """Return the project's refund that already did what is asked for, where it left nothing to decide about."""
    if case.deposit.held_units or case.deposit.resolution != "refunded":
        return None
    sent = (
        Payout.deposit_pk == case.deposit.id,
        Payout.kind == IntentKind.REFUND,
        Payout.status.not_in(GIVEN_BACK),
    )
    refunds = select(Payout.payout_id, Payout.project_pk, Payout.to_address, Payout.to_tag, Payout.units).where(*sent)
    last = (await conn.execute(refunds.order_by(Payout.id.desc()).limit(1))).one_or_none()
    # What came for no order is any project's to decide about.
    if last is None or last.project_pk != actor.project_pk or (last.to_address, last.to_tag) != recipient:
        return None
    if request.amount is not None and format_units(last.units, case.row.decimals) != same_value(request.amount):
        return None
    payout_id: str = last.payout_id
    return payout_id


def _chain_scope(context: PayoutContext, actor: Actor, case: _Case) -> WatchedChain:
    info = asset_of(context.registry, case.row).chain
    return WatchedChain(
        info=info,
        family=context.registry.families[info.family],
        scope=case.row.scope,
        mode=actor.mode,
        ids=context.ids,
    )
