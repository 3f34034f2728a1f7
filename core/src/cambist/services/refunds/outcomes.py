"""What refunds mean for payments: refunded once the first is on its way, and back again when none ever arrives.

A refund from the resolution list is of one deposit that its order does not need: it counts to what was sent back, and
leaves the payment's status alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain import payments as machine
from cambist.domain.money import format_units
from cambist.domain.payments import Status
from cambist.plugin import Units
from cambist.services.deposits.deciding import hold_chain
from cambist.services.outbound.outcomes import Moment
from cambist.services.payments.events import PaymentFacts, payment_event
from cambist.services.payouts.records import PayoutRow
from cambist.services.webhooks.outbox import NewEvent, enqueue

from . import parts


class RefundOutcomes:
    """Serves payouts of the kind refund. The money in pending is the caller's to move."""

    async def on_broadcast(self, conn: AsyncConnection, payouts: Sequence[PayoutRow], moment: Moment) -> None:
        """Tell of what is sent for the first time, and have its payment be refunded."""
        fresh = [payout for payout in payouts if payout.broadcast_at is None and payout.deposit_row is None]
        await _tell(conn, fresh, moment)

    async def on_failed(
        self, conn: AsyncConnection, payouts: Sequence[PayoutRow], moment: Moment
    ) -> Mapping[int, Units]:
        """Have it be as if they had never been; return by payout what deposits hold again."""
        for chain, scope in sorted({(payout.chain, payout.scope) for payout in payouts}):
            await hold_chain(conn, chain, scope)
        back = await parts.give_back(conn, [payout.row for payout in payouts])
        payments = await _lock(conn, payouts)
        sent = await _sent(conn, list(payments))
        for payment in payments.values():
            own = [payout for payout in payouts if payout.payment_row == payment.id]
            before = None if payment.status_before_refund is None else Status(payment.status_before_refund)
            status = Status(payment.status)
            if any(payout.deposit_row is None for payout in own):
                status = machine.after_failed_refund(status, before, others=payment.id in sent)
            await _save(conn, payment, status, -sum(payout.units for payout in own), moment)
        return back

    async def on_revived(self, conn: AsyncConnection, payouts: Sequence[PayoutRow], moment: Moment) -> None:
        """Count again what had failed and was mined all the same."""
        for payment in (await _lock(conn, payouts)).values():
            units = sum(payout.units for payout in payouts if payout.payment_row == payment.id)
            await _save(conn, payment, Status(payment.status), units, moment)
        await _tell(conn, [payout for payout in payouts if payout.deposit_row is None], moment)


_LOCK = """
SELECT p.id, p.payment_id, p.public_id, p.chain, p.token, p.decimals, p.expected_units, p.received_units,
       p.refunded_units, p.status, p.status_before_refund, p.order_id,
       coalesce(p.webhook_url, j.payment_webhook_url) AS target, j.id AS project_row, j.project_id AS project_public_id
FROM payments p JOIN projects j ON j.id = p.project_id
WHERE p.id = ANY($1::bigint[]) ORDER BY p.id FOR NO KEY UPDATE OF p
"""


async def _lock(conn: AsyncConnection, payouts: Sequence[PayoutRow]) -> dict[int, Row[Any]]:
    wanted = sorted({payout.payment_row for payout in payouts if payout.payment_row is not None})
    return {row.id: row for row in await conn.exec_driver_sql(_LOCK, (wanted,))} if wanted else {}


async def _sent(conn: AsyncConnection, payment_rows: Sequence[int]) -> set[int]:
    """Return those payments of which a refund is on its way or has arrived."""
    found = await conn.exec_driver_sql(
        "SELECT DISTINCT payment_id FROM payouts WHERE payment_id = ANY($1::bigint[]) AND kind = 'refund'"
        " AND deposit_id IS NULL AND (status = 'completed' OR status <> 'failed' AND broadcast_at IS NOT NULL)",
        (list(payment_rows),),
    )
    return set(found.scalars())


async def _tell(conn: AsyncConnection, payouts: Sequence[PayoutRow], moment: Moment) -> None:
    payments = await _lock(conn, payouts)
    for payment in payments.values():
        await _save(conn, payment, machine.after_refund(Status(payment.status)), 0, moment)
    events = [_event(payments[payout.payment_row], payout, moment) for payout in payouts if payout.payment_row]
    await enqueue(conn, events, ids=moment.ids, now=moment.now)


async def _save(conn: AsyncConnection, payment: Row[Any], status: Status, units: int, moment: Moment) -> None:
    """Write a payment back, and have it judged again where it leaves refunded: deposits may have gone meanwhile."""
    before, was = payment.status_before_refund, Status(payment.status)
    if status is not was:
        before = str(was) if status is Status.REFUNDED else None
    await conn.exec_driver_sql(
        "UPDATE payments SET status = $2, status_before_refund = $3, refunded_units = refunded_units + $4,"
        " dirty = dirty OR $5, updated_at = $6 WHERE id = $1",
        (payment.id, str(status), before, units, was is Status.REFUNDED and status is not was, moment.now),
    )


def _event(payment: Row[Any], payout: PayoutRow, moment: Moment) -> NewEvent:
    facts = PaymentFacts(
        project_row=payment.project_row,
        project_public_id=payment.project_public_id,
        payment_id=payment.payment_id,
        public_id=payment.public_id,
        chain=payment.chain,
        token=payment.token,
        decimals=payment.decimals,
        expected=Units(int(payment.expected_units)),
        order_id=payment.order_id,
        webhook_url=payment.target,
    )
    event = payment_event(
        facts,
        event=machine.REFUNDED_EVENT,
        status=machine.after_refund(Status(payment.status)),
        received=Units(int(payment.received_units)),
        tx_id=payout.tx_id,
        at=moment.now,
    )
    event.data["refundId"] = payout.payout_id
    event.data["amount"] = format_units(payout.units, payout.decimals)
    event.data["refundedAmount"] = format_units(int(payment.refunded_units), payment.decimals)
    event.data["toAddress"] = payout.target
    return event
