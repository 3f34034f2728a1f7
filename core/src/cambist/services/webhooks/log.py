"""What merchants see of their deliveries, each with its attempts, and how one is sent again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Project, WebhookAttempt, WebhookDelivery
from cambist.db.structs import AnyRow, columns_of, to_struct
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.paging import LIMIT, Page, read_newest

ATTEMPTS_SHOWN_MAX = 50


Json = Annotated[Any, Meta(description="The body as it was sent, byte for byte.")]


class AttemptAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """One attempt to deliver an event."""

    number: int
    attempted_at: datetime
    duration_ms: int
    status_code: int | None
    error: str | None
    response_body: str | None


class DeliveryAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """One event, what became of it, and every attempt to deliver it."""

    delivery_id: str
    event: str
    resource_id: str
    url: str | None
    status: str
    created_at: datetime
    delivered_at: datetime | None
    next_attempt_at: datetime | None
    payload: Json
    attempts: Sequence[AttemptAnswer]


async def list_deliveries(  # noqa: PLR0913  filters and paging, each by name
    conn: AsyncConnection,
    project_pk: int,
    *,
    status: str | None = None,
    event: str | None = None,
    resource_id: str | None = None,
    page: int = 1,
    limit: int = LIMIT,
    after: int | None = None,
) -> Page[DeliveryAnswer]:
    delivery = WebhookDelivery
    filters = {delivery.status: status, delivery.event: event, delivery.resource_id: resource_id}
    listed = select(delivery).where(delivery.project_pk == project_pk)
    found = await read_newest(
        conn, listed, lambda row: row, newest=delivery.id, filters=filters, page=page, limit=limit, after=after
    )
    return Page(items=await _views(conn, found.items), total=found.total, last=found.last)


async def get_delivery(conn: AsyncConnection, project_pk: int, delivery_id: str) -> DeliveryAnswer:
    """Return one delivery of the project, or raise NotFoundError."""
    wanted = WebhookDelivery.project_pk == project_pk, WebhookDelivery.delivery_id == delivery_id
    found = (await conn.execute(select(WebhookDelivery).where(*wanted))).all()
    if not found:
        raise _not_found()
    return (await _views(conn, found))[0]


async def redeliver(conn: AsyncConnection, project_pk: int, delivery_id: str, *, now: datetime) -> DeliveryAnswer:
    """Make an event due again, with a fresh set of attempts; the numbers in its log go on.

    One that had no target goes to the project's present one. After the commit, publish the hint ``webhooks``.
    Raises NotFoundError, and ConflictError for an event that is still being delivered or has nowhere to go.
    """
    found = await conn.execute(
        select(WebhookDelivery.id, WebhookDelivery.status, WebhookDelivery.url, Project.payment_webhook_url)
        .join(Project, Project.id == WebhookDelivery.project_pk)
        .where(WebhookDelivery.project_pk == project_pk, WebhookDelivery.delivery_id == delivery_id)
        .with_for_update(of=WebhookDelivery)
    )
    row = found.one_or_none()
    if row is None:
        raise _not_found()
    if row.status == "pending":
        raise ConflictError("DELIVERY_PENDING", "This event is still being delivered; it needs no second start.")
    url = row.url or row.payment_webhook_url
    if url is None:
        raise ConflictError("NO_WEBHOOK_TARGET", "This event has no target, and the project has no webhook URL.")
    await conn.execute(
        update(WebhookDelivery)
        .where(WebhookDelivery.id == row.id)
        .values(status="pending", attempts=0, due_at=now, delivered_at=None, url=url)
    )
    return await get_delivery(conn, project_pk, delivery_id)


def _not_found() -> NotFoundError:
    return NotFoundError("DELIVERY_NOT_FOUND", "This project has no such delivery.")


async def _views(conn: AsyncConnection, rows: Sequence[AnyRow]) -> Sequence[DeliveryAnswer]:
    attempts = await _attempts(conn, [row.id for row in rows])
    return [
        DeliveryAnswer(
            delivery_id=row.delivery_id,
            event=row.event,
            resource_id=row.resource_id,
            url=row.url,
            status=row.status,
            created_at=row.created_at,
            delivered_at=row.delivered_at,
            next_attempt_at=row.due_at if row.status == "pending" else None,
            payload=msgspec.Raw(row.body),
            attempts=attempts.get(row.id, []),
        )
        for row in rows
    ]


async def _attempts(conn: AsyncConnection, delivery_pks: Sequence[int]) -> dict[int, list[AttemptAnswer]]:
    """Return the newest attempts of each delivery, oldest of them first."""
    number = func.row_number().over(partition_by=WebhookAttempt.delivery_pk, order_by=WebhookAttempt.number.desc())
    columns = columns_of(AttemptAnswer, WebhookAttempt, response_body=WebhookAttempt.response)
    numbered = select(*columns, WebhookAttempt.delivery_pk, number.label("newest_first"))
    newest = numbered.where(WebhookAttempt.delivery_pk.in_(delivery_pks)).subquery()
    shown = select(newest).where(newest.c.newest_first <= ATTEMPTS_SHOWN_MAX)
    found = await conn.execute(shown.order_by(newest.c.delivery_pk, newest.c.number))
    by_delivery: dict[int, list[AttemptAnswer]] = {}
    for row in found:
        by_delivery.setdefault(row.delivery_pk, []).append(to_struct(AttemptAnswer, row))
    return by_delivery
