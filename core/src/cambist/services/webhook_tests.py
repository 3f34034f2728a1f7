"""Test webhooks: made-up events, signed with the real secret and sent once, so that a receiver can be tried out."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.webhooks import check_event, resource_of
from cambist.ports import Ids

from .api_keys import Actor
from .errors import FieldProblem, InvalidError
from .webhooks.outbox import encode_body
from .webhooks.secrets import SigningSecrets
from .webhooks.sender import AttemptResult, Message, Sender
from .webhooks.targets import check_target_url

_STATUSES = {
    "payment.rate_recalculated": "pending",
    "account.deposit.received": "detected",
    "account.deposit.confirmed": "confirmed",
}
"""Where the event's last word is not the status."""

_ID_FIELDS = {
    "payment": ("paymentId", "pay_test"),
    "payout": ("payoutId", "po_test"),
    "withdrawal": ("withdrawalId", "wd_test"),
    "account_deposit": ("depositId", "dep_test"),
}


class TestDelivery(Struct, frozen=True, kw_only=True):
    """A made-up event that is ready to be sent, and where to."""

    __test__ = False  # no test case, whatever its name

    url: str
    message: Message


async def prepare(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    project: Actor,
    *,
    event: str,
    url: str | None,
    secrets: SigningSecrets,
    ids: Ids,
    now: datetime,
    allow_private_targets: bool,
) -> TestDelivery:
    """Make up the event. Raises InvalidError for an unknown one, for a bad URL, and where there is no URL at all."""
    try:
        check_event(event)
    except ValueError:
        problem = FieldProblem("event", "is no webhook event")
        raise InvalidError("INVALID_EVENT", f"{event!r} is no webhook event.", [problem]) from None
    result = await conn.exec_driver_sql(
        "SELECT payment_webhook_url, webhook_secret_encrypted FROM projects WHERE id = $1", (project.project_row,)
    )
    row = result.one()
    target = url or row.payment_webhook_url
    if target is None:
        raise InvalidError("NO_WEBHOOK_TARGET", "Send a url, or set the project's paymentWebhookUrl.")
    check_target_url(target, allow_private=allow_private_targets, field="url")
    message = Message(
        id=ids.new("evt_test"),
        event=event,
        body=encode_body(event, project.project_id, _sample(event, ids, now)),
        secret=secrets.reveal(project.project_id, row.webhook_secret_encrypted),
        is_test=True,
    )
    return TestDelivery(url=target, message=message)


async def send(sender: Sender, test: TestDelivery) -> AttemptResult:
    """Send it, outside of any transaction. Whatever the receiver does, there is a result."""
    return await sender.send_once(test.url, test.message)


def _sample(event: str, ids: Ids, now: datetime) -> dict[str, Any]:
    resource = resource_of(event)
    id_field, prefix = _ID_FIELDS[resource]
    data: dict[str, Any] = {"resource": resource, id_field: ids.new(prefix)}
    status = _STATUSES.get(event, event.rpartition(".")[2])
    if resource == "payment":
        received = "0" if status in {"pending", "expired"} else "25"
        data |= {"publicId": ids.new("pub_test"), "expectedAmount": "25", "receivedAmount": received}
    else:
        data["amount"] = "25"
    return data | {
        "chain": "ethereum",
        "token": "USDT",
        "status": status,
        "txHash": "0x" + "00" * 32,
        "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "isTest": True,
    }
