"""The ways back to the shop: successUrl and cancelUrl with what became of the payment in their query."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit, urlunsplit

from cambist.domain.money import format_units
from cambist.domain.payments import Status
from cambist.services.receiving.checkout import CheckoutPayment
from cambist.services.receiving.payments.requests import ascii_url

from .view import Way

AUTO_RETURN_S = {Status.PAID: 8, Status.OVERPAID: 25}
"""Long enough to read that it worked, and to decide to stay; an excess takes longer to read about."""

REASONS = {
    Status.PENDING: "cancelled_by_customer",
    Status.PAID: "completed",
    Status.OVERPAID: "excess_held",
    Status.UNDERPAID: "part_received",
    Status.EXPIRED: "expired",
    Status.FAILED: "reversed",
    Status.REFUNDED: "refunded",
}
"""Why the customer comes back in that state; the shop must not take any of it for proof of payment."""


def forward(payment: CheckoutPayment) -> Way | None:
    """Return the way on to successUrl once the order is paid, taken by itself; None otherwise."""
    if payment.status not in (Status.PAID, Status.OVERPAID):
        return None
    url = _return_url(payment.success_url, payment)
    if url is None:
        return None
    return Way(url=url, label=f"Return to {payment.shop_name}", auto_s=AUTO_RETURN_S[payment.status])


def back(payment: CheckoutPayment) -> Way | None:
    """Return the way back to cancelUrl, also where an order ended badly.

    None while money is under way: a shop that is told of a cancel then would be misled.
    """
    if payment.status in (Status.DETECTED, Status.CONFIRMING, Status.PAID, Status.OVERPAID):
        return None
    url = _return_url(payment.cancel_url, payment)
    cancels = payment.status is Status.PENDING and not payment.received
    return Way(url=url, label="Cancel and return" if cancels else f"Return to {payment.shop_name}") if url else None


def _return_url(url: str | None, payment: CheckoutPayment) -> str | None:
    if url is None:
        return None
    try:
        parts = urlsplit(ascii_url(url))
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return None
    told = urlencode(
        {
            "paymentId": payment.payment_id,
            "orderId": payment.order_id or "",
            "amount": format_units(payment.expected, payment.decimals),
            "status": str(payment.status),
            "reason": _reason(payment),
        }
    )
    return urlunsplit(parts._replace(query=f"{parts.query}&{told}" if parts.query else told))


def _reason(payment: CheckoutPayment) -> str:
    part_paid = payment.status is Status.PENDING and payment.received
    return REASONS[Status.UNDERPAID if part_paid else payment.status]
