"""What a merchant is told of a single refund: the ``data`` of the ``refund.*`` events.

They go to projects that have extended events on. All others learn by ``payment.refunded`` that a payment is refunded.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Deposit, Payment, Payout, Project
from cambist.db.structs import AnyRow, one_of
from cambist.domain.failures import code_of
from cambist.domain.moments import moment
from cambist.domain.money import format_units
from cambist.ports import Ids
from cambist.services.payouts.read import PayoutRow
from cambist.services.webhooks.outbox import NewEvent, enqueue

from .read import is_its_payment

_TOLD = (
    select(
        Payout.id,
        Project.project_id,
        Payment.payment_id,
        Payment.order_id,
        Deposit.deposit_id,
        func.coalesce(Payment.webhook_url, Project.payment_webhook_url).label("event_url"),
    )
    .join(Project, Project.id == Payout.project_pk)
    .outerjoin(Deposit, Deposit.id == Payout.deposit_pk)
    .outerjoin(Payment, is_its_payment())
    .where(Project.extended_events)
)


async def enqueue_events(
    conn: AsyncConnection, refunds: Sequence[PayoutRow], outcome: str, ids: Ids, now: datetime
) -> None:
    """Queue ``refund.<outcome>`` for each refund."""
    if not refunds:
        return
    wanted = _TOLD.where(one_of(Payout.id, [refund.pk for refund in refunds]))
    told = {row.id: row for row in await conn.execute(wanted)}
    events = [_event(refund, told[refund.pk], outcome, now) for refund in refunds if refund.pk in told]
    await enqueue(conn, events, ids=ids, now=now)


def _event(refund: PayoutRow, row: AnyRow, outcome: str, now: datetime) -> NewEvent:
    data = {
        "resource": "refund",
        "refundId": refund.payout_id,
        "paymentId": row.payment_id,
        "chain": refund.chain,
        "token": refund.token,
        "amount": format_units(refund.units, refund.decimals),
        "toAddress": refund.to_address,
        "status": str(refund.status),
        "txHash": refund.tx_id,
        "timestamp": moment(now),
    }
    why = {"error": refund.error, "errorCode": code_of(refund.error)}
    optional = {"toTag": refund.to_tag, "depositId": row.deposit_id, "orderId": row.order_id, **why}
    return NewEvent(
        project_pk=refund.project_pk,
        project_id=row.project_id,
        event=f"refund.{outcome}",
        resource_id=refund.payout_id,
        url=row.event_url,
        data=data | {name: value for name, value in optional.items() if value is not None},
    )
