"""Whether what merchants are told is what the API's description says."""

from __future__ import annotations

from typing import Any

import msgspec

from cambist.services.webhooks import outbox
from cambist.services.webhooks.payloads import PAYLOADS


def payment_data(number: int, event: str = "payment.paid", *, order_id: str = "5 € – ünïcode") -> dict[str, Any]:
    """Return the ``data`` of an event of a payment, ``pay_<number>``, as it is described."""
    refund = {"refundId": f"ref_{number}", "amount": "5", "refundedAmount": "5", "toAddress": "0x" + "7" * 40}
    return {
        "resource": "payment",
        "paymentId": f"pay_{number}",
        "publicId": f"pub_{number}",
        "chain": "ethereum",
        "token": "USDC",
        "status": event.rpartition(".")[2],
        "expectedAmount": "5",
        "receivedAmount": "5",
        "txHash": None,
        "orderId": order_id,
        "timestamp": "2026-01-01T12:00:00.000Z",
        **(refund if event == "payment.refunded" else {}),
    }


def as_described(event: str, data: dict[str, Any]) -> None:
    """Raise AssertionError for the ``data`` of an event in which a field is missing, unknown or of another kind."""
    try:
        msgspec.convert(msgspec.json.decode(msgspec.json.encode(data)), PAYLOADS[event])
    except msgspec.ValidationError as error:
        raise AssertionError(f"{event} is not as described: {error}") from None


def compare_all() -> None:
    """Have every event that this process enqueues compared from now on."""
    encode_body = outbox.encode_body

    def compared(event: str, project_id: str, data: dict[str, Any]) -> bytes:
        as_described(event, data)
        return encode_body(event, project_id, data)

    outbox.encode_body = compared
