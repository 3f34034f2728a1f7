"""What refunds mean for payments: refunded once the first is on its way, and back again when none ever arrives.

A refund from the resolution list is of one deposit that its order does not need: it counts to what was sent back, and
leaves the payment's status alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Payment
from cambist.db.structs import AnyRow, one_of
from cambist.domain import payments as machine
from cambist.domain.payments import Status
from cambist.plugin import Units
from cambist.ports import Ids
from cambist.services.payouts.read import PayoutRow
from cambist.services.receiving.deposits.rows import lock_cursor
from cambist.services.receiving.payments.events import PAYMENTS, refunded_event
from cambist.services.receiving.payments.refunds import sent_refunds
from cambist.services.webhooks.outbox import enqueue

from . import parts
from .events import enqueue_events


class PaymentRefundHandler:
    """Serves payouts of the kind refund. The money in pending is the caller's to move."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    async def on_broadcast(self, conn: AsyncConnection, payouts: Sequence[PayoutRow], now: datetime) -> None:
        """Tell of what is sent for the first time, and have its payment be refunded."""
        fresh = [payout for payout in payouts if payout.broadcast_at is None]
        await _tell(conn, [payout for payout in fresh if payout.deposit_pk is None], self._ids, now)
        await enqueue_events(conn, fresh, "sent", self._ids, now)

    async def on_final(self, conn: AsyncConnection, payouts: Sequence[PayoutRow], now: datetime) -> None:
        """Tell of refunds that have arrived."""
        await enqueue_events(conn, payouts, "completed", self._ids, now)

    async def on_failed(
        self, conn: AsyncConnection, payouts: Sequence[PayoutRow], now: datetime
    ) -> Mapping[int, Units]:
        """Have it be as if they had never been; return by payout what deposits hold again."""
        for chain, scope in sorted({(payout.chain, payout.scope) for payout in payouts}):
            await lock_cursor(conn, chain, scope)
        back = await parts.give_back(conn, [payout.pk for payout in payouts])
        payments = await _lock(conn, payouts)
        sent = await sent_refunds(conn, list(payments))
        for payment in payments.values():
            own = [payout for payout in payouts if payout.payment_pk == payment.id]
            before = None if payment.status_before_refund is None else Status(payment.status_before_refund)
            status = Status(payment.status)
            if any(payout.deposit_pk is None for payout in own):
                status = machine.after_failed_refund(status, before, others=payment.id in sent)
            await _save(conn, payment, status, -sum(payout.units for payout in own), now)
        await enqueue_events(conn, payouts, "failed", self._ids, now)
        return back

    async def on_revived(
        self, conn: AsyncConnection, payouts: Sequence[PayoutRow], now: datetime
    ) -> Mapping[int, Units]:
        """Count again what had failed and was mined all the same; return by payout what deposits hold no more."""
        for chain, scope in sorted({(payout.chain, payout.scope) for payout in payouts}):
            await lock_cursor(conn, chain, scope)
        taken = await parts.take_again(conn, payouts, now)
        for payment in (await _lock(conn, payouts)).values():
            own = [payout for payout in payouts if payout.payment_pk == payment.id]
            is_less_left = any(taken[payout.pk] for payout in own)
            units = sum(payout.units for payout in own)
            await _save(conn, payment, Status(payment.status), units, now, judge=is_less_left)
        await _tell(conn, [payout for payout in payouts if payout.deposit_pk is None], self._ids, now)
        return taken


async def _lock(conn: AsyncConnection, payouts: Sequence[PayoutRow]) -> dict[int, AnyRow]:
    wanted = sorted({payout.payment_pk for payout in payouts if payout.payment_pk is not None})
    if not wanted:
        return {}
    locked = PAYMENTS.where(one_of(Payment.id, wanted)).order_by(Payment.id).with_for_update(key_share=True, of=Payment)
    return {row.id: row for row in await conn.execute(locked)}


async def _tell(conn: AsyncConnection, payouts: Sequence[PayoutRow], ids: Ids, now: datetime) -> None:
    """Have payments be refunded, and tell of each that was not before: receivers keep one such event of a payment."""
    events = []
    for payment in (await _lock(conn, payouts)).values():
        status = machine.after_refund(Status(payment.status))
        await _save(conn, payment, status, 0, now)
        if status is not Status(payment.status):
            first = next(payout for payout in payouts if payout.payment_pk == payment.id)
            events.append(refunded_event(payment, first, received=Units(payment.received_units), at=now))
    await enqueue(conn, events, ids=ids, now=now)


async def _save(  # noqa: PLR0913  what of which payment
    conn: AsyncConnection, payment: AnyRow, status: Status, units: int, now: datetime, *, judge: bool = False
) -> None:
    """Write a payment back, and have it judged again where it leaves refunded: deposits may have gone meanwhile."""
    was = Status(payment.status)
    changed = {"status": status, "refunded_units": Payment.refunded_units + units, "updated_at": now}
    if status is not was:
        changed["status_before_refund"] = was if status is Status.REFUNDED else None
    if judge or status is not was is Status.REFUNDED:
        changed["dirty"] = True
    await conn.execute(update(Payment).where(Payment.id == payment.id).values(changed))
