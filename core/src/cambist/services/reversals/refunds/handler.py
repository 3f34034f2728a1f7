"""What refunds mean for payments: refunded once the first is on its way, and back again when none ever arrives.

A refund from the resolution list is of one deposit that its order does not need: it counts to what was sent back, and
leaves the payment's status alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain import payments as machine
from cambist.domain.money import format_units
from cambist.domain.payments import Status
from cambist.plugin import Units
from cambist.ports import Ids
from cambist.services.payouts.rows import PayoutRow
from cambist.services.receiving.deposits.locks import lock_cursor
from cambist.services.receiving.payments.events import payment_event, payment_facts
from cambist.services.webhooks.outbox import NewEvent, enqueue

from . import parts


class RefundUpdates:
    """Serves payouts of the kind refund. The money in pending is the caller's to move."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    async def on_broadcast(self, conn: AsyncConnection, payouts: Sequence[PayoutRow], now: datetime) -> None:
        """Tell of what is sent for the first time, and have its payment be refunded."""
        fresh = [payout for payout in payouts if payout.broadcast_at is None and payout.deposit_pk is None]
        await _tell(conn, fresh, self._ids, now)

    async def on_failed(
        self, conn: AsyncConnection, payouts: Sequence[PayoutRow], now: datetime
    ) -> Mapping[int, Units]:
        """Have it be as if they had never been; return by payout what deposits hold again."""
        for chain, scope in sorted({(payout.chain, payout.scope) for payout in payouts}):
            await lock_cursor(conn, chain, scope)
        back = await parts.give_back(conn, [payout.pk for payout in payouts])
        payments = await _lock(conn, payouts)
        sent = await _sent(conn, list(payments))
        for payment in payments.values():
            own = [payout for payout in payouts if payout.payment_pk == payment.id]
            before = None if payment.status_before_refund is None else Status(payment.status_before_refund)
            status = Status(payment.status)
            if any(payout.deposit_pk is None for payout in own):
                status = machine.after_failed_refund(status, before, others=payment.id in sent)
            await _save(conn, payment, status, -sum(payout.units for payout in own), now)
        return back

    async def on_revived(self, conn: AsyncConnection, payouts: Sequence[PayoutRow], now: datetime) -> None:
        """Count again what had failed and was mined all the same."""
        for payment in (await _lock(conn, payouts)).values():
            units = sum(payout.units for payout in payouts if payout.payment_pk == payment.id)
            await _save(conn, payment, Status(payment.status), units, now)
        await _tell(conn, [payout for payout in payouts if payout.deposit_pk is None], self._ids, now)


_LOCK = """
SELECT p.id, p.payment_id, p.public_id, p.chain, p.token, p.decimals, p.expected_units, p.received_units,
       p.refunded_units, p.status, p.status_before_refund, p.order_id,
       coalesce(p.webhook_url, j.payment_webhook_url) AS webhook_url, j.id AS project_pk,
       j.project_id AS project_public_id
FROM payments p JOIN projects j ON j.id = p.project_pk
WHERE p.id = ANY($1::bigint[]) ORDER BY p.id FOR NO KEY UPDATE OF p
"""


async def _lock(conn: AsyncConnection, payouts: Sequence[PayoutRow]) -> dict[int, Row[Any]]:
    wanted = sorted({payout.payment_pk for payout in payouts if payout.payment_pk is not None})
    return {row.id: row for row in await conn.exec_driver_sql(_LOCK, (wanted,))} if wanted else {}


async def _sent(conn: AsyncConnection, payment_pks: Sequence[int]) -> set[int]:
    """Return those payments of which a refund is on its way or has arrived."""
    found = await conn.exec_driver_sql(
        "SELECT DISTINCT payment_pk FROM payouts WHERE payment_pk = ANY($1::bigint[]) AND kind = 'refund'"
        " AND deposit_pk IS NULL AND (status = 'completed' OR status <> 'failed' AND broadcast_at IS NOT NULL)",
        (list(payment_pks),),
    )
    return set(found.scalars())


async def _tell(conn: AsyncConnection, payouts: Sequence[PayoutRow], ids: Ids, now: datetime) -> None:
    payments = await _lock(conn, payouts)
    for payment in payments.values():
        await _save(conn, payment, machine.after_refund(Status(payment.status)), 0, now)
    events = [_event(payments[payout.payment_pk], payout, now) for payout in payouts if payout.payment_pk]
    await enqueue(conn, events, ids=ids, now=now)


async def _save(conn: AsyncConnection, payment: Row[Any], status: Status, units: int, now: datetime) -> None:
    """Write a payment back, and have it judged again where it leaves refunded: deposits may have gone meanwhile."""
    before, was = payment.status_before_refund, Status(payment.status)
    if status is not was:
        before = str(was) if status is Status.REFUNDED else None
    await conn.exec_driver_sql(
        "UPDATE payments SET status = $2, status_before_refund = $3, refunded_units = refunded_units + $4,"
        " dirty = dirty OR $5, updated_at = $6 WHERE id = $1",
        (payment.id, str(status), before, units, was is Status.REFUNDED and status is not was, now),
    )


def _event(payment: Row[Any], payout: PayoutRow, now: datetime) -> NewEvent:
    event = payment_event(
        payment_facts(payment),
        event=machine.REFUNDED_EVENT,
        status=machine.after_refund(Status(payment.status)),
        received=Units(int(payment.received_units)),
        tx_id=payout.tx_id,
        at=now,
    )
    event.data["refundId"] = payout.payout_id
    event.data["amount"] = format_units(payout.units, payout.decimals)
    event.data["refundedAmount"] = format_units(int(payment.refunded_units), payment.decimals)
    event.data["toAddress"] = payout.to_address
    return event
