"""Whether a receiver checks signatures: it is sent one test that is signed rightly, and one that is not."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, structs
from sqlalchemy import insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import WebhookAttempt, WebhookDelivery
from cambist.domain.moments import moment
from cambist.domain.webhooks import TEST_EVENT, SignatureCheck, judge_signature_check
from cambist.ports import Ids
from cambist.services.actor import Actor
from cambist.services.errors import ConflictError, InvalidError

from . import endpoints
from .outbox import encode_body
from .samples import receiver, signing
from .secrets import ENDPOINT_FIELD, FIELD, SigningSecrets
from .sender import AttemptResult, Message

_MESSAGES = {
    "genuine": "This is a test, signed rightly. It tells of nothing. Answer it with a 2xx status.",
    "forged": "This is a test, signed wrongly on purpose. It tells of nothing. Refuse it with 4xx, such as 401.",
}


class Tried(Struct, frozen=True, kw_only=True):
    """A receiver, and the two messages that it is sent. ``secret_sealed`` is what signed the genuine one, as stored."""

    endpoint_pk: int | None
    subject: str
    url: str
    secret_sealed: bytes
    genuine: Message
    forged: Message


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of it. ``kept`` is False where URL or secret became others meanwhile: it says nothing about those."""

    result: SignatureCheck
    checked_at: datetime
    kept: bool
    genuine_id: str
    forged_id: str


async def prepare(  # noqa: PLR0913  each by name
    conn: AsyncConnection, project: Actor, *, endpoint_id: str | None, secrets: SigningSecrets, ids: Ids, now: datetime
) -> Tried:
    """Make both messages up, for an endpoint or for the project's own URL.

    Raises NotFoundError for an endpoint that is not there, InvalidError where the project has no URL, and ConflictError
    where it signs nothing.
    """
    endpoint = None if endpoint_id is None else await endpoints.find(conn, project.project_pk, endpoint_id)
    row = (await conn.execute(signing(project.project_pk, None if endpoint is None else endpoint.pk))).one()
    if row.url is None:
        raise InvalidError("NO_WEBHOOK_TARGET", "Set the project's paymentWebhookUrl first.")
    if row.secret is None:
        raise ConflictError("WEBHOOKS_NOT_SIGNED", "This project signs nothing. Switch webhookSigning on first.")
    subject, field = (project.project_id, FIELD) if endpoint_id is None else (endpoint_id, ENDPOINT_FIELD)
    genuine = Message(
        id=ids.new("evt_test"),
        event=TEST_EVENT,
        body=encode_body(TEST_EVENT, project.project_id, sample("genuine", now)),
        secret=secrets.reveal(subject, row.secret, field=field),
        # Also while a rotation overlaps: who knows nothing but the old secret refuses all once that is over.
        previous_secret=None,
        is_test=True,
    )
    # By secrets that nobody has: in all that can be seen without the secret, it is like the genuine one.
    forged = structs.replace(
        genuine,
        id=ids.new("evt_test"),
        body=encode_body(TEST_EVENT, project.project_id, sample("forged", now)),
        secret=ids.hex_secret(),
    )
    return Tried(
        endpoint_pk=None if endpoint is None else endpoint.pk,
        subject=subject,
        url=row.url,
        secret_sealed=row.secret,
        genuine=genuine,
        forged=forged,
    )


def sample(signature: Literal["genuine", "forged"], now: datetime) -> dict[str, Any]:
    """Return the ``data`` of one of the two."""
    return {
        "resource": "webhook",
        "signature": signature,
        "message": _MESSAGES[signature],
        "timestamp": moment(now),
        "isTest": True,
    }


async def record(  # noqa: PLR0913  each by name
    conn: AsyncConnection, project: Actor, tried: Tried, genuine: AttemptResult, forged: AttemptResult, *, now: datetime
) -> Outcome:
    """Log both deliveries, judge what they show, and keep it with the receiver while URL and secret are the same."""
    result = judge_signature_check(genuine.status_code, forged.status_code)
    genuine_id = await _log(conn, project, tried, tried.genuine, genuine)
    forged_id = await _log(conn, project, tried, tried.forged, forged)
    is_kept = await _keep(conn, project, tried, {"signature_check": result, "signature_checked_at": now})
    return Outcome(result=result, checked_at=now, kept=is_kept, genuine_id=genuine_id, forged_id=forged_id)


async def _keep(conn: AsyncConnection, project: Actor, tried: Tried, values: dict[str, Any]) -> bool:
    one = receiver(project.project_pk, tried.endpoint_pk)
    same = one.own, one.url == tried.url, one.secret == tried.secret_sealed
    changed = await conn.execute(update(one.table).where(*same).values(values))
    return changed.rowcount > 0


async def _log(conn: AsyncConnection, project: Actor, tried: Tried, message: Message, result: AttemptResult) -> str:
    """Write down one delivery with its only attempt; return its id. It is never sent again, and costs nothing."""
    delivery_id = f"dlv_{message.id.removeprefix('evt_')}"
    delivered_at = result.attempted_at if result.delivered else None
    made = await conn.execute(
        insert(WebhookDelivery)
        .values(
            delivery_id=delivery_id,
            project_pk=project.project_pk,
            endpoint_pk=tried.endpoint_pk,
            event=message.event,
            resource_id=tried.subject,
            url=tried.url,
            body=message.body,
            status="tested",
            attempts=1,
            attempts_total=1,
            due_at=result.attempted_at,
            created_at=result.attempted_at,
            delivered_at=delivered_at,
        )
        .returning(WebhookDelivery.id)
    )
    await conn.execute(
        insert(WebhookAttempt).values(
            delivery_pk=made.scalar_one(),
            number=1,
            attempted_at=result.attempted_at,
            duration_ms=result.duration_ms,
            status_code=result.status_code,
            error=result.error,
            response=result.response_preview,
        )
    )
    return delivery_id
