"""What merchants see of their events: each as it was sent, and where it went."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import Struct
from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import WebhookDelivery, WebhookEndpoint, WebhookEvent
from cambist.db.structs import AnyRow, one_of, to_struct
from cambist.services.errors import NotFoundError
from cambist.services.listing import Listed, ListOf, Owner, Part, Period, read_list
from cambist.services.paging import read_one

from .delivery_log import Json


class EventDelivery(Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of an event at one target. Without `endpointId` it is the default one."""

    delivery_id: str
    endpoint_id: str | None
    url: str | None
    status: str
    attempts: int
    delivered_at: datetime | None
    next_attempt_at: datetime | None


class EventAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """One event. `eventId` is its `X-Webhook-Id` wherever it went, and `payload` the body, byte for byte."""

    event_id: str
    event: str
    resource: str
    resource_id: str
    created_at: datetime
    payload: Json
    deliveries: Sequence[EventDelivery]


class EventFilters(Struct, frozen=True, kw_only=True):
    """Which events are meant: of these names, about this, and from ``since`` to before ``until``."""

    names: Sequence[str] = ()
    resource_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


_LIST = ListOf(WebhookEvent.id, WebhookEvent.created_at, indexed=[WebhookEvent.event])


async def list_events(conn: AsyncConnection, project_pk: int, wanted: EventFilters, part: Part) -> Listed[EventAnswer]:
    """Return one part of a project's events, whether they were delivered or not."""
    event, where = WebhookEvent, []
    own: Owner = {event.project_pk: project_pk}
    if wanted.resource_id is not None:
        # A few, found by an index of their own.
        own, where = {event.resource_id: wanted.resource_id}, [event.project_pk == project_pk]
    filters = {event.event: tuple(sorted(set(wanted.names))) or None}
    times, listed = Period(wanted.since, wanted.until), select(event)
    found = await read_list(
        conn, listed, lambda row: row, _LIST, part, own=own, where=where, filters=filters, period=times
    )
    return Listed(items=await _views(conn, found.items), total=found.total, exact=found.exact, last=found.last)


async def get_event(conn: AsyncConnection, project_pk: int, event_id: str) -> EventAnswer:
    """Return one event of the project, or raise NotFoundError."""
    wanted = WebhookEvent.project_pk == project_pk, WebhookEvent.event_id == event_id
    row = await read_one(conn, select(WebhookEvent).where(*wanted), event_not_found())
    return (await _views(conn, [row]))[0]


def event_not_found() -> NotFoundError:
    return NotFoundError("EVENT_NOT_FOUND", "This project has no such event, or it is older than events are kept.")


async def _views(conn: AsyncConnection, rows: Sequence[AnyRow]) -> Sequence[EventAnswer]:
    deliveries = await _deliveries(conn, [row.id for row in rows])
    return [
        EventAnswer(
            event_id=row.event_id,
            event=row.event,
            resource=row.resource,
            resource_id=row.resource_id,
            created_at=row.created_at,
            payload=msgspec.Raw(row.body),
            deliveries=deliveries.get(row.id, []),
        )
        for row in rows
    ]


async def _deliveries(conn: AsyncConnection, event_pks: Sequence[int]) -> dict[int, list[EventDelivery]]:
    delivery = WebhookDelivery
    shown = (
        select(
            delivery.event_pk,
            delivery.delivery_id,
            WebhookEndpoint.endpoint_id,
            func.coalesce(delivery.url, WebhookEndpoint.url).label("url"),
            delivery.status,
            delivery.attempts_total.label("attempts"),
            delivery.delivered_at,
            case((delivery.status == "pending", delivery.due_at)).label("next_attempt_at"),
        )
        .outerjoin(WebhookEndpoint, WebhookEndpoint.id == delivery.endpoint_pk)
        .where(one_of(delivery.event_pk, event_pks))
        .order_by(delivery.id)
    )
    by_event: dict[int, list[EventDelivery]] = {}
    for row in await conn.execute(shown):
        by_event.setdefault(row.event_pk, []).append(to_struct(EventDelivery, row))
    return by_event
