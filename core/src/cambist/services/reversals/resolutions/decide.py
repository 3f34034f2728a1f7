"""What a merchant decides about held money: count it to its order, release it, or send it back. Once.

Whoever is first decides; the same decision again changes nothing, another one is refused. Money is locked from the
chain's cursor on, as a poll locks it (``deposits/locks.py``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain import payments as machine
from cambist.domain.money import format_units
from cambist.domain.payments import Status
from cambist.plugin import Head, Units
from cambist.services.actor import Actor
from cambist.services.addresses.checks import check_to_address
from cambist.services.errors import ConflictError
from cambist.services.payouts.create import require_payouts
from cambist.services.payouts.queue import PayoutContext
from cambist.services.pricing.quotes import read_units
from cambist.services.receiving.deposits import crediting, judging
from cambist.services.receiving.deposits.locks import lock_cursor, lock_deposits
from cambist.services.receiving.deposits.rows import DepositRow
from cambist.services.receiving.deposits.store import WatchedChain
from cambist.services.reversals.refunds import parts
from cambist.services.reversals.refunds.create import Made, NewRefund, asset_of, claim, queue_refund
from cambist.services.reversals.refunds.read import get_refund
from cambist.services.reversals.refunds.requests import RefundRequest

from .read import ResolutionView, get_resolution, not_found


class Decided(Struct, frozen=True, kw_only=True):
    """A deposit after a decision, and the public ids of payments that changed by it."""

    resolution: ResolutionView
    changed: tuple[str, ...] = ()


class _Case(NamedTuple):
    """A deposit and its payment (None where it came for none, or is not what the payment asks for), both locked."""

    deposit: DepositRow
    row: Row[Any]
    payment: Row[Any] | None
    head: Head


async def accept(conn: AsyncConnection, context: PayoutContext, actor: Actor, deposit_id: str) -> Decided:
    """Count what is held of a deposit to its order, whole, however late it came; the order is judged again at once.

    After the commit, publish the hints ``webhooks`` and ``payment:<public id>``.
    """
    case = await _lock(conn, actor, deposit_id)
    deposit, payment = case.deposit, case.payment
    if payment is None or payment.status == Status.FAILED:
        raise ConflictError(
            "CANNOT_ACCEPT", "No order can take this deposit. It can be released to the wallet, or sent back."
        )
    if deposit.resolution == "accepted" and (not deposit.held_units or payment.status == Status.EXPIRED):
        return Decided(resolution=await get_resolution(conn, actor, deposit_id))
    _refuse_decided(case)
    status, order = Status(payment.status), Units(int(payment.order_units))
    beyond = machine.accepted_units(
        Units(int(payment.expected_units)), order, Units(int(payment.accepted_units)), deposit.held_units
    )
    now = context.clock.now()
    await conn.exec_driver_sql(
        "UPDATE deposits SET resolution = 'accepted', resolved_at = $2 WHERE id = $1", (deposit.id, now)
    )
    await conn.exec_driver_sql(
        "UPDATE payments SET order_units = $2, accepted_units = $3, updated_at = $4 WHERE id = $1",
        (payment.id, order + deposit.held_units if status in machine.REFUNDABLE else order, beyond, now),
    )
    outcome = await judging.judge_payment(conn, _chain_scope(context, actor, case), case.head, now, payment.id)
    return Decided(
        resolution=await get_resolution(conn, actor, deposit_id),
        changed=tuple({payment.public_id, *outcome.changed}),
    )


async def release(conn: AsyncConnection, context: PayoutContext, actor: Actor, deposit_id: str) -> Decided:
    """Move what is held of a deposit to available, and leave its payment as it is."""
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
) -> Made:
    """Queue a refund of what is held of a deposit, from the chain on which it came.

    After the commit, publish the hint ``outbound``.
    """
    refund_id = context.ids.new("ref")
    before = await claim(conn, context, actor, refund_id, request, header_key, subject=deposit_id)
    if before is not None:
        return Made(before, replayed=True)
    case = await _lock(conn, actor, deposit_id)
    asset = asset_of(context.registry, case.row)
    to_address = check_to_address(context.registry, asset.chain, request.to_address)
    if (same := await _same(conn, case, to_address, request)) is not None:
        return Made(await get_refund(conn, actor.project_pk, same), replayed=True)
    _refuse_decided(case)
    settings = await require_payouts(conn, actor, asset)
    held = case.deposit.held_units
    units = held if request.amount is None else read_units(request.amount, asset.token)
    if units > held:
        most = format_units(held, asset.token.decimals)
        raise ConflictError("REFUND_EXCEEDS_HELD", f"Of this deposit, {most} {asset.token.symbol} are held.")
    if units == held:
        await conn.exec_driver_sql(
            "UPDATE deposits SET resolution = 'refunded', resolved_at = $2 WHERE id = $1",
            (case.deposit.id, context.clock.now()),
        )
    order = NewRefund(
        refund_id=refund_id,
        asset=asset,
        to_address=to_address,
        units=units,
        held=[parts.Part(case.deposit, units)],
        payment_pk=None if case.payment is None else case.payment.id,
        deposit_pk=case.deposit.id,
        reason=request.reason,
    )
    return await queue_refund(conn, context, actor, settings, order)


_FIND = """
SELECT d.id, d.chain, d.scope, d.token, d.contract, d.decimals, d.matches, d.payment_pk
FROM deposits d LEFT JOIN payments p ON p.id = d.payment_pk
WHERE d.deposit_id = $1 AND d.merchant_pk = $2 AND d.mode = $3
    AND (p.project_pk = $4 OR p.id IS NULL AND d.scope IN (0, $4))
"""

_PAYMENT = """
SELECT id, public_id, status, expected_units, order_units, accepted_units FROM payments WHERE id = $1
FOR NO KEY UPDATE
"""


async def _lock(conn: AsyncConnection, actor: Actor, deposit_id: str) -> _Case:
    whose = (deposit_id, actor.merchant_pk, actor.mode, actor.project_pk)
    row = (await conn.exec_driver_sql(_FIND, whose)).one_or_none()
    head = None if row is None else await lock_cursor(conn, row.chain, row.scope)
    if row is None or head is None:
        raise not_found()
    deposit = (await lock_deposits(conn, [row.id]))[row.id]
    payment = None
    if row.matches:
        payment = (await conn.exec_driver_sql(_PAYMENT, (row.payment_pk,))).one()
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


async def _same(conn: AsyncConnection, case: _Case, to_address: str, request: RefundRequest) -> str | None:
    """Return the refund that already did what is asked for, where it left nothing to decide about."""
    if case.deposit.held_units or case.deposit.resolution != "refunded":
        return None
    found = await conn.exec_driver_sql(
        "SELECT payout_id, to_address, units FROM payouts WHERE deposit_pk = $1 AND kind = 'refund'"
        " AND status <> 'failed' ORDER BY id DESC LIMIT 1",
        (case.deposit.id,),
    )
    last = found.one_or_none()
    if last is None or last.to_address != to_address:
        return None
    if request.amount is not None and format_units(int(last.units), case.row.decimals) != request.amount:
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
