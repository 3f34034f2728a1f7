"""Test webhooks: made-up events, signed with the real secret and sent once, so that a receiver can be tried out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import InstrumentedAttribute

from cambist.db.models import Project, WebhookEndpoint
from cambist.db.structs import AnySelect
from cambist.domain.failures import SENTENCES, Failure, code_of
from cambist.domain.moments import moment
from cambist.domain.webhooks import check_event, resource_of
from cambist.ports import Ids
from cambist.services.actor import Actor
from cambist.services.errors import FieldProblem, InvalidError
from cambist.settings import WebhookTargets

from . import endpoints
from .outbox import encode_body
from .secrets import ENDPOINT_FIELD, FIELD, SigningSecrets
from .sender import Message
from .urls import check_webhook_url

_STATUSES = {
    "payment.rate_recalculated": "pending",
    "payment.partial": "pending",
    "payment.held": "overpaid",
    "refund.sent": "broadcast",
}
"""Where the event's last word is not the status."""

_ID_FIELDS = {
    "payment": ("paymentId", "pay_test"),
    "payout": ("payoutId", "po_test"),
    "withdrawal": ("withdrawalId", "wd_test"),
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
    endpoint_id: str | None = None,
    secrets: SigningSecrets,
    ids: Ids,
    now: datetime,
    targets: WebhookTargets,
) -> tuple[str, Message]:
    """Make up the event, and say where it goes: to ``url``, else to the endpoint, else to the project's URL.

    Raises NotFoundError for an endpoint that is not there, InvalidError for an unknown event, for a bad URL, and
    where there is no URL at all.
    """
    try:
        check_event(event)
    except ValueError:
        problem = FieldProblem("event", "is no webhook event")
        raise InvalidError("INVALID_EVENT", f"{event!r} is no webhook event.", [problem]) from None
    endpoint = None if endpoint_id is None else await endpoints.find(conn, project.project_pk, endpoint_id)
    row = (await conn.execute(signing(project.project_pk, None if endpoint is None else endpoint.pk))).one()
    webhook_url = url or row.url
    if webhook_url is None:
        raise InvalidError("NO_WEBHOOK_TARGET", "Send a url, or set the project's paymentWebhookUrl.")
    check_webhook_url(webhook_url, targets, field="url")
    field = FIELD if endpoint is None else ENDPOINT_FIELD
    previous = row.previous if row.until is not None and row.until > now else None
    message = Message(
        id=ids.new("evt_test"),
        event=event,
        body=encode_body(event, project.project_id, sample(event, ids, now)),
        secret=secrets.reveal(endpoint_id or project.project_id, row.secret, field=field),
        previous_secret=secrets.reveal(endpoint_id or project.project_id, previous, field=field),
        is_test=True,
    )
    return webhook_url, message


class Receiver(NamedTuple):
    """Where it is kept where the default target or an endpoint is, and what signs there; ``own`` finds its row."""

    table: type[Project | WebhookEndpoint]
    url: InstrumentedAttribute[Any]
    secret: InstrumentedAttribute[Any]
    own: ColumnElement[bool]


def receiver(project_pk: int, endpoint_pk: int | None) -> Receiver:
    if endpoint_pk is None:
        return Receiver(
            Project, Project.payment_webhook_url, Project.webhook_secret_encrypted, Project.id == project_pk
        )
    return Receiver(
        WebhookEndpoint, WebhookEndpoint.url, WebhookEndpoint.secret_encrypted, WebhookEndpoint.id == endpoint_pk
    )


def signing(project_pk: int, endpoint_pk: int | None) -> AnySelect:
    """Select where the default target or an endpoint is, and what signs there."""
    one = receiver(project_pk, endpoint_pk)
    columns = (
        one.url.label("url"),
        one.secret.label("secret"),
        one.table.previous_secret_encrypted.label("previous"),
        one.table.previous_secret_until.label("until"),
    )
    return select(*columns).where(one.own)


def _exchange(event: str, ids: Ids, now: datetime) -> dict[str, Any]:
    """Make up what the event of a swap would carry (``exchanges/events.py``)."""
    has_come = event == "exchange.succeeded"
    data: dict[str, Any] = {
        "resource": resource_of(event),
        "txnId": ids.new("xch_test"),
        "kind": "swap",
        "mode": "manual",
        "status": event.rpartition(".")[2],
        "sourceChain": "ethereum",
        "sourceToken": "USDT",
        "sourceAmount": "25",
        "destChain": "ethereum",
        "destToken": "USDC",
        "destAmount": "24.97" if has_come else None,
        "txHash": _TX_HASH if has_come else None,
        "destTxHash": _TX_HASH if has_come else None,
        "timestamp": moment(now),
        "isTest": True,
    }
    return data if has_come else data | _failed("The chain would refuse it: its time is over.")


def _account_deposit(event: str, ids: Ids, now: datetime) -> dict[str, Any]:
    """Make up what the event of a deposit to an account would carry (``receiving/accounts/events.py``)."""
    name = event.rpartition(".")[2]
    usd = {"currency": "usd", "amount": "25.00", "rate": "1", "source": "prices", "observedAt": moment(now)}
    data: dict[str, Any] = {
        "resource": resource_of(event),
        "accountId": ids.new("acc_test"),
        "externalId": "user-test",
        "depositId": ids.new("dep_test"),
        "chain": "ethereum",
        "token": "USDT",
        "amount": "25",
        "address": _ADDRESS,
        "txHash": _TX_HASH,
        "status": {"received": "detected", "held": "confirmed"}.get(name, name),
        "confirmations": 12 if name in {"confirmed", "held"} else 0,
        "requiredConfirmations": 12,
        "incarnation": 1,
        "fiat": [usd],
        "fiatReason": None,
        "timestamp": moment(now),
        "isTest": True,
    }
    return data | {"heldAmount": "25", "reason": "wrong_chain"} if name == "held" else data


_MADE_UP = {"exchange": _exchange, "account_deposit": _account_deposit}
"""Resources of whose fields the others have next to none."""


def sample(event: str, ids: Ids, now: datetime) -> dict[str, Any]:
    """Make up what the event would carry: the same fields as the real one (``payloads.py``)."""
    resource = resource_of(event)
    if (made_up := _MADE_UP.get(resource)) is not None:
        return made_up(event, ids, now)
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
        data |= _failed(SENTENCES[Failure.NOT_SENT])
    return data


def _failed(sentence: str) -> dict[str, Any]:
    return {"error": sentence, "errorCode": code_of(sentence)}
