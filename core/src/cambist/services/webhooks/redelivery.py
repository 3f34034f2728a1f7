"""Sending again: one delivery, one event, or everything that failed in a time, of a project or of a tracker.

What is sent again keeps its id and its bytes. Nothing that is still being delivered is started twice, whoever asks and
how often: a target has one delivery of an event, and one that is pending is left alone.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Tracker, WebhookDelivery, WebhookEvent
from cambist.services.errors import ConflictError
from cambist.services.paging import read_one

from . import endpoints
from .delivery_log import DeliveryAnswer, delivery_not_found, get_delivery
from .events import EventAnswer, event_not_found, get_event

REDELIVERED_MAX = 10_000
"""Deliveries that one request can start."""

UNDELIVERED = ("pending", "paused")

_DEFAULT_URL = """coalesce((
        SELECT payment.webhook_url FROM webhook_events told
        JOIN payments payment ON payment.payment_id = convert_from(told.body, 'UTF8')::jsonb -> 'data' ->> 'paymentId'
        WHERE told.id = d.event_pk
    ), p.payment_webhook_url)"""
"""The default target of a delivery ``d`` of the project ``p``: the payment's own URL, or the project's as it is now.

Not the one that it was sent to: that may be the mistake that was mended since, or somebody else's by now.
"""
# What can be sent: the default target's where there is a URL by now, an endpoint's while there is the endpoint, a
# tracker's always. One for a paused endpoint waits with the others there.
HAS_TARGET = f"""CASE WHEN d.endpoint_pk IS NOT NULL THEN e.deleted_at IS NULL
    ELSE d.tracker_pk IS NOT NULL OR p.payment_webhook_url IS NOT NULL OR {_DEFAULT_URL} IS NOT NULL END"""
"""That there is somebody to send a delivery ``d`` to: of the project ``p``, for the endpoint ``e`` where it has one."""
_URL = f"CASE WHEN d.tracker_pk IS NULL AND d.endpoint_pk IS NULL THEN {_DEFAULT_URL} ELSE d.url END"
RESTART = f"""
WITH again AS (
    SELECT d.id, {_URL} AS url, coalesce(e.paused, false) AS paused
    FROM webhook_deliveries d
    JOIN projects p ON p.id = d.project_pk
    LEFT JOIN webhook_endpoints e ON e.id = d.endpoint_pk
    WHERE {{chosen}} AND {HAS_TARGET}
    ORDER BY d.id
    LIMIT $3
    FOR UPDATE OF d
)
UPDATE webhook_deliveries d SET
    status = CASE WHEN again.paused THEN 'paused' ELSE 'pending' END,
    attempts = 0, due_at = $2, delivered_at = NULL,
    url = again.url
FROM again WHERE d.id = again.id
"""  # noqa: S608  a constant
"""Makes up to ``$3`` of the deliveries ``d`` that are ``chosen`` due at ``$2``, each with a fresh set of attempts."""
_RESTART_ONE = RESTART.format(chosen="d.id = $1 AND d.status NOT IN ('pending', 'paused')")
_RESTART_EVENT = RESTART.format(
    chosen="d.event_pk = $1 AND d.status NOT IN ('pending', 'paused') AND ($4::bigint IS NULL OR d.endpoint_pk = $4)"
)
_RESTART_FAILED = RESTART.format(
    chosen="d.project_pk = $1 AND d.event_pk IS NOT NULL AND d.status IN ('dropped', 'no_target')"
    " AND d.created_at >= $4 AND d.created_at < $5 AND ($6::bigint IS NULL OR d.endpoint_pk = $6)"
)
_RESTART_OF_TRACKER = RESTART.format(
    chosen="d.project_pk = $1 AND d.tracker_pk = $6 AND d.status = 'dropped'"
    " AND d.created_at >= $4 AND d.created_at < $5"
)

# For targets that an event has no delivery to yet.
_ADD = """
INSERT INTO webhook_deliveries (
    delivery_id, project_pk, event_pk, endpoint_pk, event, resource_id, status, due_at, created_at
)
SELECT 'dlv_' || substr(told.event_id, 5) || '_' || substr(e.endpoint_id, 5), told.project_pk, told.id, e.id,
    told.event, told.resource_id, CASE WHEN e.paused THEN 'paused' ELSE 'pending' END, $2, told.created_at
FROM {told}
JOIN webhook_endpoints e ON e.project_pk = told.project_pk AND e.deleted_at IS NULL
WHERE {chosen}
ORDER BY told.id, e.id
LIMIT $3
ON CONFLICT (delivery_id) DO NOTHING
"""
_WANTED = "(e.events = '{}' OR told.event = ANY (e.events)) AND ($4::bigint IS NULL OR e.id = $4)"
_ADD_EVENT = _ADD.format(
    told="webhook_events told",
    chosen="told.id = $1 AND CASE WHEN $4::bigint IS NULL THEN (e.events = '{}' OR told.event = ANY (e.events))"
    " AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.event_pk = told.id AND d.status <> 'no_target')"
    " ELSE e.id = $4 END",
)
_ADD_FAILED = _ADD.format(
    told="webhook_deliveries untold JOIN webhook_events told ON told.id = untold.event_pk",
    chosen="untold.project_pk = $1 AND untold.status = 'no_target'"
    " AND untold.created_at >= $5 AND untold.created_at < $6"
    f" AND {_WANTED}"
    " AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.event_pk = told.id AND d.endpoint_pk = e.id)",
)


class Redelivered(Struct, frozen=True, kw_only=True):
    """How many deliveries were started, and whether there are more that another request would start."""

    queued: int
    more: bool


async def redeliver(
    conn: AsyncConnection, project_pk: int | None, delivery_id: str, *, now: datetime
) -> DeliveryAnswer:
    """Make a delivery of the project, or of any for None, due again, with a fresh set of attempts.

    The numbers in its log go on. It goes where the project has it sent by now. After the commit, publish the hint
    ``webhooks``. Raises NotFoundError, and ConflictError for one that is still being delivered, has nowhere to
    go, or was a test.
    """
    delivery = WebhookDelivery
    found = select(delivery.id, delivery.status).where(delivery.delivery_id == delivery_id).with_for_update()
    if project_pk is not None:
        found = found.where(delivery.project_pk == project_pk)
    row = await read_one(conn, found, delivery_not_found())
    if row.status in UNDELIVERED:
        raise _pending()
    if row.status == "tested":
        raise ConflictError("DELIVERY_WAS_TEST", "This was sent as a test, once. Test again instead.")
    if not (await conn.exec_driver_sql(_RESTART_ONE, (row.id, now, 1))).rowcount:
        raise _no_target()
    return await get_delivery(conn, project_pk, delivery_id)


async def redeliver_event(
    conn: AsyncConnection, project_pk: int, event_id: str, *, endpoint_id: str | None, now: datetime
) -> EventAnswer:
    """Send an event again to every target that it had, or to one endpoint, whether it had heard of it or not.

    One that had no target goes to those that there are now. After the commit, publish the hint ``webhooks``. Raises
    NotFoundError, and ConflictError where it is still being delivered everywhere or has nowhere to go.
    """
    wanted = WebhookEvent.project_pk == project_pk, WebhookEvent.event_id == event_id
    # The lock lets one request at a time decide about an event.
    found = select(WebhookEvent.id).where(*wanted).with_for_update(key_share=True)
    event_pk = (await read_one(conn, found, event_not_found())).id
    endpoint_pk = None if endpoint_id is None else (await endpoints.find(conn, project_pk, endpoint_id)).pk
    delivery = WebhookDelivery
    at_target = () if endpoint_pk is None else (delivery.endpoint_pk == endpoint_pk,)
    statuses = select(delivery.status).where(delivery.event_pk == event_pk, *at_target)
    open_ones = [status for status in (await conn.execute(statuses)).scalars() if status in UNDELIVERED]
    values = (event_pk, now, REDELIVERED_MAX, endpoint_pk)
    started = (await conn.exec_driver_sql(_ADD_EVENT, values)).rowcount
    started += (await conn.exec_driver_sql(_RESTART_EVENT, values)).rowcount
    if not started:
        raise _pending() if open_ones else _no_target()
    return await get_event(conn, project_pk, event_id)


async def redeliver_failed(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    project_pk: int,
    *,
    since: datetime,
    until: datetime,
    endpoint_id: str | None,
    now: datetime,
) -> Redelivered:
    """Send again what happened in a time and reached nobody: what was dropped, and what had no target then.

    At most ``REDELIVERED_MAX`` at once, the oldest first. Asking again starts nothing that is under way. After the
    commit, publish the hint ``webhooks``. Raises NotFoundError for an endpoint that the project does not have.
    """
    endpoint_pk = None if endpoint_id is None else (await endpoints.find(conn, project_pk, endpoint_id)).pk
    added = await conn.exec_driver_sql(_ADD_FAILED, (project_pk, now, REDELIVERED_MAX, endpoint_pk, since, until))
    room = REDELIVERED_MAX - added.rowcount
    restarted = await conn.exec_driver_sql(_RESTART_FAILED, (project_pk, now, room, since, until, endpoint_pk))
    queued = added.rowcount + restarted.rowcount
    return Redelivered(queued=queued, more=queued == REDELIVERED_MAX)


async def redeliver_of_tracker(  # noqa: PLR0913  each by name
    conn: AsyncConnection, project_pk: int, tracker_pk: int, *, since: datetime, until: datetime, now: datetime
) -> Redelivered:
    """Send a tracker again what was queued for it in a time and dropped, to the URL that it has now.

    At most ``REDELIVERED_MAX`` at once, the oldest first. Asking again starts nothing that is under way. After the
    commit, publish the hint ``webhooks``. Raises ConflictError for a tracker that is switched off, whose deliveries
    would be cancelled.
    """
    tracker = select(Tracker.is_active).where(Tracker.id == tracker_pk)
    if not (await conn.execute(tracker)).scalar_one():
        raise ConflictError("TRACKER_INACTIVE", "This tracker is switched off. Switch it on first.")
    values = (project_pk, now, REDELIVERED_MAX, since, until, tracker_pk)
    queued = (await conn.exec_driver_sql(_RESTART_OF_TRACKER, values)).rowcount
    return Redelivered(queued=queued, more=queued == REDELIVERED_MAX)


def _pending() -> ConflictError:
    return ConflictError("DELIVERY_PENDING", "This event is still being delivered; it needs no second start.")


def _no_target() -> ConflictError:
    return ConflictError("NO_WEBHOOK_TARGET", "This event has no target: there is no webhook URL and no endpoint.")
