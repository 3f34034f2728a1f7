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
from cambist.services.paging import LIMIT, TOTAL_MAX, Page, read_newest, read_one

from .log import Json


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


async def list_events(  # noqa: PLR0913  filters and paging, each by name
    conn: AsyncConnection,
    project_pk: int,
    wanted: EventFilters,
    *,
    page: int = 1,
    limit: int = LIMIT,
    after: int | None = None,
) -> Page[EventAnswer]:
    """Return one page of a project's events, newest first, whether they were delivered or not."""
    event = WebhookEvent
    listed = select(event).where(event.project_pk == project_pk)
    if wanted.names:
        first = max(TOTAL_MAX, page * limit) + 1
        listed = listed.where(one_of(event.id, await _named(conn, project_pk, wanted, after=after, first=first)))
    if wanted.since is not None:
        listed = listed.where(event.created_at >= wanted.since)
    if wanted.until is not None:
        listed = listed.where(event.created_at < wanted.until)
    filters = {event.resource_id: wanted.resource_id}
    found = await read_newest(
        conn, listed, lambda row: row, newest=event.id, filters=filters, page=page, limit=limit, after=after
    )
    return Page(items=await _views(conn, found.items), total=found.total, last=found.last)


# The newest of each name, from an index that has them in this order: of a rare one nothing else is read.
# Written as a range and in the order, a name lets the planner take no other index.
_NAMED = """
SELECT told.id FROM unnest($2::text[]) AS name CROSS JOIN LATERAL (
    SELECT id FROM webhook_events
    WHERE project_pk = $1 AND event >= name AND event <= name AND id < $3
        AND ($4::timestamptz IS NULL OR created_at >= $4) AND ($5::timestamptz IS NULL OR created_at < $5)
        AND ($6::text IS NULL OR resource_id = $6)
    ORDER BY event DESC, id DESC LIMIT $7
) AS told
ORDER BY told.id DESC LIMIT $7
"""


async def _named(
    conn: AsyncConnection, project_pk: int, wanted: EventFilters, *, after: int | None, first: int
) -> Sequence[int]:
    names = sorted(set(wanted.names))
    before = 2**62 if after is None else after
    values = (project_pk, names, before, wanted.since, wanted.until, wanted.resource_id, first)
    return list((await conn.exec_driver_sql(_NAMED, values)).scalars())


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
