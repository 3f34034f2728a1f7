"""What a merchant is told about a payment: the ``data`` of every ``payment.*`` event."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import func, select

from cambist.db.models import Payment, Project
from cambist.db.structs import AnyRow
from cambist.domain.money import format_units
from cambist.plugin import Units
from cambist.services.webhooks.outbox import NewEvent

PAYMENTS = select(
    Payment,
    Project.project_id.label("project_public_id"),
    func.coalesce(Payment.webhook_url, Project.payment_webhook_url).label("event_url"),
).join(Project, Project.id == Payment.project_pk)
"""Payments with what ``payment_event`` reads of their projects."""


def payment_event(  # noqa: PLR0913  what happened, each by name
    payment: AnyRow, *, event: str, status: str, received: Units, tx_id: str | None, at: datetime
) -> NewEvent:
    """Describe what happened to a payment, a row of ``PAYMENTS``.

    ``orderId`` is there exactly where the merchant gave one.
    """
    data = {
        "resource": "payment",
        "paymentId": payment.payment_id,
        "publicId": payment.public_id,
        "chain": payment.chain,
        "token": payment.token,
        "status": str(status),
        "expectedAmount": format_units(int(payment.expected_units), payment.decimals),
        "receivedAmount": format_units(received, payment.decimals),
        "txHash": tx_id,
        "timestamp": at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    if payment.order_id is not None:
        data["orderId"] = payment.order_id
    return NewEvent(
        project_pk=payment.project_pk,
        project_id=payment.project_public_id,
        event=event,
        resource_id=payment.payment_id,
        url=payment.event_url,
        data=data,
    )
