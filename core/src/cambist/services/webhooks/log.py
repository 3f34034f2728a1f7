"""What merchants see of their deliveries, each with its attempts, and how one is sent again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Select, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Project, WebhookAttempt, WebhookDelivery
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.paging import LIMIT, Page

ATTEMPTS_SHOWN_MAX = 50


class AttemptView(Struct, frozen=True, kw_only=True):
    """One attempt, as it is shown."""

    number: int
    attempted_at: datetime
    duration_ms: int
    status_code: int | None
    error: str | None
    response: str | None


class DeliveryView(Struct, frozen=True, kw_only=True):
    """One event and what became of it. ``next_attempt_at`` is set while it is pending."""

    delivery_id: str
    event: str
    resource_id: str
    url: str | None
    status: str
    created_at: datetime
    delivered_at: datetime | None
    next_attempt_at: datetime | None
    payload: msgspec.Raw
    attempts: Sequence[AttemptView]


async def list_deliveries(  # noqa: PLR0913  filters and paging, each by name
    conn: AsyncConnection,
    project_pk: int,
    *,
    status: str | None = None,
    event: str | None = None,
    resource_id: str | None = None,
    page: int = 1,
    limit: int = LIMIT,
) -> Page[DeliveryView]:
    """Return one page of a project's deliveries."""
    chosen = [WebhookDelivery.project_pk == project_pk]
    if status is not None:
        chosen.append(WebhookDelivery.status == status)
    if event is not None:
        chosen.append(WebhookDelivery.event == event)
    if resource_id is not None:
        chosen.append(WebhookDelivery.resource_id == resource_id)
    total = (await conn.execute(select(func.count()).select_from(WebhookDelivery).where(*chosen))).scalar_one()
    statement = (
        select(WebhookDelivery.__table__)
        .where(*chosen)
        .order_by(WebhookDelivery.id.desc())
        .limit(limit)
        .offset((page - 1) * limit)
    )
    return Page(items=await _views(conn, statement), total=total)


async def get_delivery(conn: AsyncConnection, project_pk: int, delivery_id: str) -> DeliveryView:
    """Return one delivery of the project, or raise NotFoundError."""
    found = await _views(
        conn,
        select(WebhookDelivery.__table__).where(
            WebhookDelivery.project_pk == project_pk, WebhookDelivery.delivery_id == delivery_id
        ),
    )
    if not found:
        raise _not_found()
    return found[0]


async def redeliver(conn: AsyncConnection, project_pk: int, delivery_id: str, *, now: datetime) -> DeliveryView:
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


async def _views(conn: AsyncConnection, statement: Select[Any]) -> list[DeliveryView]:
    rows = (await conn.execute(statement)).all()
    attempts = await _attempts(conn, [row.id for row in rows])
    return [
        DeliveryView(
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


async def _attempts(conn: AsyncConnection, delivery_pks: Sequence[int]) -> dict[int, list[AttemptView]]:
    """Return the newest attempts of each delivery, oldest of them first."""
    number = func.row_number().over(partition_by=WebhookAttempt.delivery_pk, order_by=WebhookAttempt.number.desc())
    newest = (
        select(WebhookAttempt.__table__, number.label("newest_first"))
        .where(WebhookAttempt.delivery_pk.in_(delivery_pks))
        .subquery()
    )
    found = await conn.execute(
        select(newest)
        .where(newest.c.newest_first <= ATTEMPTS_SHOWN_MAX)
        .order_by(newest.c.delivery_pk, newest.c.number)
    )
    by_delivery: dict[int, list[AttemptView]] = {}
    for row in found:
        by_delivery.setdefault(row.delivery_pk, []).append(
            AttemptView(
                number=row.number,
                attempted_at=row.attempted_at,
                duration_ms=row.duration_ms,
                status_code=row.status_code,
                error=row.error,
                response=row.response,
            )
        )
    return by_delivery
