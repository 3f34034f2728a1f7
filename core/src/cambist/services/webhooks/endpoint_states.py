"""Gives deliveries the state that their endpoints have, a bounded part at a time: paused, resumed or deleted.

Whoever changes an endpoint does the first of them. The worker's job does those that are left, and those that were
enqueued by transactions that had seen the endpoint as it was before.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Project, WebhookEndpoint

from .secrets import NO_PREVIOUS

DELIVERIES_MAX = 5_000
"""Deliveries of one step."""

# Also of what is in flight: its attempt is recorded, and a success counts.
_APPLY = """
WITH over AS (
    SELECT d.id, CASE WHEN e.deleted_at IS NOT NULL THEN 'dropped' WHEN e.paused THEN 'paused'
        ELSE 'pending' END AS status
    FROM webhook_endpoints e
    CROSS JOIN LATERAL (
        SELECT id FROM webhook_deliveries
        WHERE endpoint_pk = e.id AND status IN ('pending', 'paused') AND status = ANY (
            CASE WHEN e.deleted_at IS NOT NULL THEN ARRAY['pending', 'paused']
                WHEN e.paused THEN ARRAY['pending'] ELSE ARRAY['paused'] END)
        ORDER BY id LIMIT $2
    ) AS differing
    JOIN webhook_deliveries d ON d.id = differing.id
    WHERE $3::bigint IS NULL OR e.id = $3
    ORDER BY d.id
    LIMIT $2
    FOR UPDATE OF d SKIP LOCKED
)
UPDATE webhook_deliveries d SET status = over.status, due_at = CASE WHEN over.status = 'pending' THEN $1 ELSE due_at END
FROM over WHERE d.id = over.id
"""


async def apply_endpoint_states(conn: AsyncConnection, *, now: datetime, endpoint_pk: int | None = None) -> int:
    """Put aside what waits for paused endpoints, make due what waits for resumed ones, drop what deleted ones left.

    Returns how many deliveries that were, ``DELIVERIES_MAX`` at most. After the commit, publish the hint ``webhooks``.
    """
    return (await conn.exec_driver_sql(_APPLY, (now, DELIVERIES_MAX, endpoint_pk))).rowcount


async def forget_previous_secrets(conn: AsyncConnection, *, now: datetime) -> None:
    """Delete secrets whose overlap is over."""
    for table in (Project, WebhookEndpoint):
        await conn.execute(update(table).where(table.previous_secret_until <= now).values(NO_PREVIOUS))
