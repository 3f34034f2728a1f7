"""What merchants see of their deliveries, each with its attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent
from cambist.db.structs import AnyRow, columns_of, one_of, to_struct
from cambist.services.errors import NotFoundError
from cambist.services.listing import ALWAYS, Listed, ListOf, Owner, Part, Period, read_list

ATTEMPTS_SHOWN_MAX = 50

Status: TypeAlias = Literal["pending", "paused", "delivered", "dropped", "no_target", "cancelled", "tested"]
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
    """One event for one target, what became of it, and every attempt to deliver it.

    Without `endpointId` the target is the default one: the payment's `webhookUrl`, else the project's.
    """

    delivery_id: str
    event_id: str | None
    endpoint_id: str | None
    event: str
    resource_id: str
    url: str | None
    status: str
    created_at: datetime
    delivered_at: datetime | None
    next_attempt_at: datetime | None
    payload: Json
    attempts: Sequence[AttemptAnswer]


_ROWS = (
    select(
        WebhookDelivery,
        WebhookEvent.event_id,
        WebhookEndpoint.endpoint_id,
        func.coalesce(WebhookDelivery.url, WebhookEndpoint.url).label("shown_url"),
        func.coalesce(WebhookDelivery.body, WebhookEvent.body).label("payload"),
    )
    .outerjoin(WebhookEvent, WebhookEvent.id == WebhookDelivery.event_pk)
    .outerjoin(WebhookEndpoint, WebhookEndpoint.id == WebhookDelivery.endpoint_pk)
)


_LIST = ListOf(WebhookDelivery.id, WebhookDelivery.created_at)


async def list_deliveries(  # noqa: PLR0913  filters, each by name
    conn: AsyncConnection,
    project_pk: int,
    part: Part,
    *,
    endpoint_pk: int | None = None,
    status: Status | None = None,
    event: str | None = None,
    resource_id: str | None = None,
    delivery_ids: Sequence[str] | None = None,
    period: Period = ALWAYS,
) -> Listed[DeliveryAnswer]:
    """Return one part of a project's deliveries, or of those to one of its endpoints; of these ids alone, if any.

    A delivery is of the time of its event, also where it was made later, for an endpoint that is new.
    """
    delivery = WebhookDelivery
    own: Owner = {delivery.project_pk: project_pk} if endpoint_pk is None else {delivery.endpoint_pk: endpoint_pk}
    where: list[ColumnElement[bool]] = []
    if delivery_ids is not None:
        where = [one_of(delivery.delivery_id, delivery_ids), *(column == value for column, value in own.items())]
        own = {}
    elif resource_id is not None:
        # A few for each event of what they are about, found by an index of its own.
        of_resource = select(WebhookEvent.id).where(WebhookEvent.resource_id == resource_id)
        where = [delivery.event_pk.in_(of_resource), *(column == value for column, value in own.items())]
        own = {}
    filters = {delivery.status: status, delivery.event: event}
    found = await read_list(
        conn, _ROWS, lambda row: row, _LIST, part, own=own, where=where, filters=filters, period=period
    )
    return Listed(items=await _views(conn, found.items), total=found.total, exact=found.exact, last=found.last)


async def get_delivery(conn: AsyncConnection, project_pk: int | None, delivery_id: str) -> DeliveryAnswer:
    """Return one delivery of the project, or of any for None. Raises NotFoundError."""
    wanted = _ROWS.where(WebhookDelivery.delivery_id == delivery_id)
    if project_pk is not None:
        wanted = wanted.where(WebhookDelivery.project_pk == project_pk)
    found = (await conn.execute(wanted)).all()
    if not found:
        raise delivery_not_found()
    return (await _views(conn, found))[0]


def delivery_not_found() -> NotFoundError:
    return NotFoundError("DELIVERY_NOT_FOUND", "This project has no such delivery.")


async def _views(conn: AsyncConnection, rows: Sequence[AnyRow]) -> Sequence[DeliveryAnswer]:
    attempts = await _attempts(conn, [row.id for row in rows])
    return [
        DeliveryAnswer(
            delivery_id=row.delivery_id,
            event_id=row.event_id,
            endpoint_id=row.endpoint_id,
            event=row.event,
            resource_id=row.resource_id,
            url=row.shown_url,
            status=row.status,
            created_at=row.created_at,
            delivered_at=row.delivered_at,
            next_attempt_at=row.due_at if row.status == "pending" else None,
            payload=msgspec.Raw(row.payload),
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
