"""Test webhooks: made-up events, signed with the real secret and sent once, so that a receiver can be tried out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Project
from cambist.domain.webhooks import check_event, resource_of
from cambist.ports import Ids
from cambist.services.actor import Actor
from cambist.services.errors import FieldProblem, InvalidError
from cambist.settings import WebhookTargets

from .outbox import encode_body, moment
from .secrets import SigningSecrets
from .sender import Message
from .urls import check_webhook_url

_STATUSES = {
    "payment.rate_recalculated": "pending",
    "payment.partial": "pending",
    "payment.held": "overpaid",
    "refund.sent": "broadcast",
    "account.deposit.received": "detected",
    "account.deposit.confirmed": "confirmed",
}
"""Where the event's last word is not the status."""

_ID_FIELDS = {
    "payment": ("paymentId", "pay_test"),
    "payout": ("payoutId", "po_test"),
    "withdrawal": ("withdrawalId", "wd_test"),
    "account_deposit": ("depositId", "dep_test"),
    "deposit": ("depositId", "dep_test"),
    "refund": ("refundId", "ref_test"),
}

_RECEIVED = {
    "payment.expired": "0",
    "payment.failed": "0",
    "payment.rate_recalculated": "0",
    "payment.overpaid": "26",
    "payment.underpaid": "24",
}
"""Of 25, where it is not all of it."""

_MORE = {
    "payment.partial": {"expectedAmount": "50", "receivedAmount": "25"},
    "payment.held": {"heldAmount": "1", "reason": "surplus"},
    "payment.rate_recalculated": {
        "amount": "25.00",
        "fiatCurrency": "usd",
        "exchangeRate": "1",
        "rateSource": "static",
    },
}
"""What single events say beside what all of their resource say."""

_TX_HASH = "0x" + "00" * 32
_ADDRESS = "0x" + "00" * 19 + "01"
"""Nobody's: what is made up must not look like somewhere to send money to."""


async def prepare(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    project: Actor,
    *,
    event: str,
    url: str | None,
    secrets: SigningSecrets,
    ids: Ids,
    now: datetime,
    targets: WebhookTargets,
) -> tuple[str, Message]:
    """Make up the event, and say where it goes.

    Raises InvalidError for an unknown one, for a bad URL, and where there is no URL at all.
    """
    try:
        check_event(event)
    except ValueError:
        problem = FieldProblem("event", "is no webhook event")
        raise InvalidError("INVALID_EVENT", f"{event!r} is no webhook event.", [problem]) from None
    columns = Project.payment_webhook_url, Project.webhook_secret_encrypted
    row = (await conn.execute(select(*columns).where(Project.id == project.project_pk))).one()
    webhook_url = url or row.payment_webhook_url
    if webhook_url is None:
        raise InvalidError("NO_WEBHOOK_TARGET", "Send a url, or set the project's paymentWebhookUrl.")
    check_webhook_url(webhook_url, targets, field="url")
    message = Message(
        id=ids.new("evt_test"),
        event=event,
        body=encode_body(event, project.project_id, _sample(event, ids, now)),
        secret=secrets.reveal(project.project_id, row.webhook_secret_encrypted),
        is_test=True,
    )
    return webhook_url, message


def _sample(event: str, ids: Ids, now: datetime) -> dict[str, Any]:
    """Make up what the event would carry: the same fields as the real one (``payments/events.py`` and others)."""
    resource = resource_of(event)
    id_field, prefix = _ID_FIELDS[resource]
    received = _RECEIVED.get(event, "25")
    data: dict[str, Any] = {
        "resource": resource,
        id_field: ids.new(prefix),
        "chain": "ethereum",
        "token": "USDT",
        "status": _STATUSES.get(event, event.rpartition(".")[2]),
        "txHash": None if received == "0" else _TX_HASH,
        "timestamp": moment(now),
        "isTest": True,
    }
    if resource == "payment":
        data |= {"publicId": ids.new("pub_test"), "expectedAmount": "25", "receivedAmount": received}
    else:
        data["amount"] = "25"
    if resource in {"deposit", "refund"}:
        data["paymentId"] = ids.new("pay_test")
    if resource == "deposit":
        data["publicId"] = ids.new("pub_test")
    if resource in {"payout", "withdrawal"}:
        data["kind"] = resource
    data |= _MORE.get(event, {})
    if event == "payment.refunded":
        data |= {"refundId": ids.new("ref_test"), "amount": "25", "refundedAmount": "25"}
    if resource in {"payout", "withdrawal", "refund"} or event == "payment.refunded":
        data["toAddress"] = _ADDRESS
    if event == "payment.rate_recalculated":
        data["expiresAt"] = moment(now + timedelta(hours=1))
    if event.endswith(".failed") and resource != "payment":
        data["error"] = "It could not be sent."
    return data
