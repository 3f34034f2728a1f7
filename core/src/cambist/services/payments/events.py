"""What a merchant is told about a payment: the ``data`` of every ``payment.*`` event."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from cambist.domain.money import format_units
from cambist.plugin import Units
from cambist.services.webhooks.outbox import NewEvent


class PaymentFacts(Struct, frozen=True, kw_only=True):
    """The part of a payment that its events carry. ``webhook_url`` is the payment's, else its project's."""

    project_row: int
    project_public_id: str
    payment_id: str
    public_id: str
    chain: str
    token: str
    decimals: int
    expected: Units
    order_id: str | None
    webhook_url: str | None


def payment_event(  # noqa: PLR0913  what happened, each by name
    payment: PaymentFacts, *, event: str, status: str, received: Units, tx_id: str | None, at: datetime
) -> NewEvent:
    """Describe what happened to the payment. ``orderId`` is there exactly where the merchant gave one."""
    data = {
        "resource": "payment",
        "paymentId": payment.payment_id,
        "publicId": payment.public_id,
        "chain": payment.chain,
        "token": payment.token,
        "status": str(status),
        "expectedAmount": format_units(payment.expected, payment.decimals),
        "receivedAmount": format_units(received, payment.decimals),
        "txHash": tx_id,
        "timestamp": at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    if payment.order_id is not None:
        data["orderId"] = payment.order_id
    return NewEvent(
        project_row=payment.project_row,
        project_id=payment.project_public_id,
        event=event,
        resource_id=payment.payment_id,
        url=payment.webhook_url,
        data=data,
    )
