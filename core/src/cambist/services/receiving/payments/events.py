"""What a merchant is told about a payment: the ``data`` of every ``payment.*`` event."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Row

from cambist.domain.money import format_units
from cambist.plugin import Units
from cambist.services.webhooks.outbox import NewEvent


class PaymentFacts(Struct, frozen=True, kw_only=True):
    """The part of a payment that its events carry. ``webhook_url`` is the payment's, else its project's."""

    project_pk: int
    project_public_id: str
    payment_id: str
    public_id: str
    chain: str
    token: str
    decimals: int
    expected: Units
    order_id: str | None
    webhook_url: str | None


def payment_facts(row: Row[Any]) -> PaymentFacts:
    """Read the facts from a payment's row, which carries its project's ids and the URL under the names of the facts."""
    return PaymentFacts(
        project_pk=row.project_pk,
        project_public_id=row.project_public_id,
        payment_id=row.payment_id,
        public_id=row.public_id,
        chain=row.chain,
        token=row.token,
        decimals=row.decimals,
        expected=Units(int(row.expected_units)),
        order_id=row.order_id,
        webhook_url=row.webhook_url,
    )


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
        project_pk=payment.project_pk,
        project_id=payment.project_public_id,
        event=event,
        resource_id=payment.payment_id,
        url=payment.webhook_url,
        data=data,
    )
