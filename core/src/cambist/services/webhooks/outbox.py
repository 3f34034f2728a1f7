"""Writes events into the outbox, in the transaction that caused them, with a delivery for each target."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.copying import copy_new, moment_field
from cambist.db.structs import transposed
from cambist.domain.webhooks import resource_of
from cambist.ports import Ids


class NewEvent(Struct, frozen=True, kw_only=True):
    """Something a merchant is told.

    ``project_id`` is the public one, the body's ``webhookId``. ``resource_id`` is the payment, payout or deposit
    that it is about: each target hears of one resource in the order in which its events were enqueued. ``url`` is
    the default target's, None where it has none; the project's endpoints are told besides, and the event is kept
    whether anybody is told or not.
    """

    project_pk: int
    project_id: str
    event: str
    resource_id: str
    url: str | None
    data: dict[str, Any]


class _Body(Struct, frozen=True):
    event: str
    webhookId: str  # noqa: N815  the merchants' spelling
    data: dict[str, Any]


_encoder = msgspec.json.Encoder(decimal_format="string")


def encode_body(event: str, project_id: str, data: dict[str, Any]) -> bytes:
    """Return the bytes that are stored, signed and sent, and never encoded again."""
    return _encoder.encode(_Body(event, project_id, data))


# The event, and a delivery for each target: the default one, where it has a URL, and the endpoints that want it.
_INSERT = """
WITH told AS (
    INSERT INTO webhook_events (event_id, project_pk, event, resource, resource_id, body, created_at)
    SELECT event_id, project_pk, event, resource, resource_id, body, $8
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bytea[])
        WITH ORDINALITY AS new (event_id, project_pk, event, resource, resource_id, body, number)
    ORDER BY number
    RETURNING id, event_id, project_pk, event, resource_id
), target AS (
    SELECT told.*, endpoint.id AS endpoint_pk, endpoint.paused,
        'dlv_' || substr(event_id, 5) || '_' || substr(endpoint.endpoint_id, 5) AS delivery_id, NULL AS url
    FROM told JOIN webhook_endpoints endpoint ON endpoint.project_pk = told.project_pk
        AND endpoint.deleted_at IS NULL AND (endpoint.events = '{}' OR told.event = ANY (endpoint.events))
), every AS (
    SELECT id, project_pk, event, resource_id, endpoint_pk, delivery_id, url,
        CASE WHEN paused THEN 'paused' ELSE 'pending' END AS status
    FROM target
    UNION ALL
    SELECT id, project_pk, event, resource_id, NULL, 'dlv_' || substr(event_id, 5), new.url,
        CASE WHEN new.url IS NULL THEN 'no_target' ELSE 'pending' END
    FROM told JOIN unnest($1::text[], $7::text[]) AS new (event_id, url) USING (event_id)
    WHERE new.url IS NOT NULL OR NOT EXISTS (SELECT FROM target WHERE target.id = told.id)
)
INSERT INTO webhook_deliveries (
    delivery_id, project_pk, event_pk, endpoint_pk, event, resource_id, url, status, due_at, created_at
)
SELECT delivery_id, project_pk, id, endpoint_pk, event, resource_id, url, status, $8, $8
FROM every
ORDER BY id, endpoint_pk NULLS FIRST
"""


async def enqueue(conn: AsyncConnection, events: Sequence[NewEvent], *, ids: Ids, now: datetime) -> None:
    """Write the events and their deliveries, due at once, in one statement. Then publish the hint ``webhooks``."""
    if not events:
        return
    await conn.exec_driver_sql(
        _INSERT,
        (
            [ids.new("evt") for _ in events],
            [event.project_pk for event in events],
            [event.event for event in events],
            [resource_of(event.event) for event in events],
            [event.resource_id for event in events],
            [encode_body(event.event, event.project_id, event.data) for event in events],
            [event.url or None for event in events],
            now,
        ),
    )


class TrackerDelivery(NamedTuple):
    """Something a tracker is told. ``delivery_id`` is derived from what it tells, so that it is told once."""

    delivery_id: str
    project_pk: int
    tracker_pk: int
    event: str
    resource_id: str
    url: str
    body: bytes


TRACKER_COLUMNS = ("resource_id", "delivery_id", "project_pk", "tracker_pk", "url", "event", "body")
"""What a row for ``enqueue_for_trackers`` holds."""
_INSERT_FOR_TRACKERS = """
INSERT INTO webhook_deliveries (
    delivery_id, project_pk, tracker_pk, event, resource_id, url, body, due_at, created_at
)
SELECT delivery_id, project_pk, tracker_pk, event, resource_id, url, body, $8, $8
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bytea[])
    WITH ORDINALITY AS new (delivery_id, project_pk, tracker_pk, event, resource_id, url, body, number)
ORDER BY number
ON CONFLICT (delivery_id) DO NOTHING
"""
TELLS_OF = """({told}.delivery_id COLLATE "C" > 'evt' || substr({transaction}, 4)
    AND {told}.delivery_id COLLATE "C" < 'evt' || substr({transaction}, 4) || '~')"""
"""The condition on a delivery to a tracker that its id begins as a transaction's does, so that one index finds both.

What tells of a tracker's transaction is found by it, and by no index of its own, of which each row would take a tenth
of what it takes to write. Whoever uses it asks for ``resource_id`` besides, in a CASE, and orders by ``delivery_id``:
then no other index will do.
"""
# Who records attempts locks several deliveries, too: both in the order of their ids, and not in that of telling. One
# that is pending is waited for, since a claim that looked before may be about to cancel it: what it is then decides.
_RENEW = """
WITH held AS MATERIALIZED (
    SELECT id, status FROM webhook_deliveries
    WHERE delivery_id = ANY ($1::text[]) AND status IN ('pending', 'cancelled') ORDER BY id FOR NO KEY UPDATE
)
UPDATE webhook_deliveries d SET status = 'pending', attempts = 0, due_at = $2
FROM held WHERE d.id = held.id AND held.status = 'cancelled'
"""


async def enqueue_for_trackers(
    conn: AsyncConnection, rows: Sequence[bytes], deliveries: Iterable[TrackerDelivery], now: datetime
) -> int:
    """Write what trackers are told, due at once and in this order, and return how many are new.

    ``rows`` are what ``copy_new`` takes, of ``TRACKER_COLUMNS``. ``deliveries`` say the same, and are made, in a
    thread, only where one of them was told before. What was told before is not told again, unless it was cancelled
    before it was delivered. After the commit, publish the hint ``webhooks``.
    """
    if not rows:
        return 0
    at = moment_field(now)
    if await copy_new(conn, "webhook_deliveries", TRACKER_COLUMNS, rows, {"due_at": at, "created_at": at}):
        return len(rows)
    told = await asyncio.to_thread(list, deliveries)
    done = await conn.exec_driver_sql(_INSERT_FOR_TRACKERS, (*transposed(told), now))
    if done.rowcount == len(told):
        return len(told)
    renewed = await conn.exec_driver_sql(_RENEW, ([one.delivery_id for one in told], now))
    return done.rowcount + renewed.rowcount
