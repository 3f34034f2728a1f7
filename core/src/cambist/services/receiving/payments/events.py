"""What a merchant is told about a payment: the ``data`` of every ``payment.*`` event."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import func, select

from cambist.db.models import Payment, Project
from cambist.db.structs import AnyRow
from cambist.domain.moments import moment
from cambist.domain.money import format_units
from cambist.domain.payments import REFUNDED_EVENT, Status
from cambist.plugin import Units
from cambist.services.webhooks.outbox import NewEvent

from .views import expected_amount

PAYMENTS = select(
    Payment,
    Project.project_id.label("project_public_id"),
    Project.extended_events,
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
        "expectedAmount": expected_amount(
            payment.pricing_mode, payment.amount, payment.expected_units, payment.decimals
        ),
        "receivedAmount": format_units(received, payment.decimals),
        "txHash": tx_id,
        "timestamp": moment(at),
    }
    return _event_of(payment, event, payment.payment_id, data)


class SentRefund(Protocol):
    """What of a refund that is on its way is told with its payment; any payout's row will do."""

    @property
    def payout_id(self) -> str: ...
    @property
    def units(self) -> Units: ...
    @property
    def decimals(self) -> int: ...
    @property
    def to_address(self) -> str: ...
    @property
    def to_tag(self) -> str | None: ...
    @property
    def tx_id(self) -> str | None: ...


def refunded_event(payment: AnyRow, refund: SentRefund, *, received: Units, at: datetime) -> NewEvent:
    """Describe that a payment, a row of ``PAYMENTS``, is refunded by this refund."""
    event = payment_event(
        payment, event=REFUNDED_EVENT, status=Status.REFUNDED, received=received, tx_id=refund.tx_id, at=at
    )
    event.data["refundId"] = refund.payout_id
    event.data["amount"] = format_units(refund.units, refund.decimals)
    event.data["refundedAmount"] = format_units(int(payment.refunded_units), payment.decimals)
    event.data["toAddress"] = refund.to_address
    if refund.to_tag is not None:
        event.data["toTag"] = refund.to_tag
    return event


def deposit_event(  # noqa: PLR0913  what happened, each by name
    payment: AnyRow, *, event: str, deposit_id: str, status: str, tx_id: str, at: datetime, more: dict[str, Any]
) -> NewEvent:
    """Describe what one deposit means to a payment, a row of ``PAYMENTS``; ``more`` are the event's own fields."""
    data = {
        "resource": "deposit",
        "depositId": deposit_id,
        "paymentId": payment.payment_id,
        "publicId": payment.public_id,
        "status": str(status),
        **more,
        "txHash": tx_id,
        "timestamp": moment(at),
    }
    return _event_of(payment, event, deposit_id, data)


def _event_of(payment: AnyRow, event: str, resource_id: str, data: dict[str, Any]) -> NewEvent:
    if payment.order_id is not None:
        data["orderId"] = payment.order_id
    return NewEvent(
        project_pk=payment.project_pk,
        project_id=payment.project_public_id,
        event=event,
        resource_id=resource_id,
        url=payment.event_url,
        data=data,
    )
