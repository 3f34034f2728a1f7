"""Records what came of attempts to deliver, and moves their deliveries on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from .claims import Claim
from .outbox import TELLS_OF
from .sender import AttemptResult


class Attempt(Struct, frozen=True, kw_only=True):
    """One attempt to deliver, and what came of it. ``next_due`` is None where no further one follows."""

    claim: Claim
    result: AttemptResult
    next_due: datetime | None


# An attempt that outlived its lease may find that somebody else has tried since (attempts differ). Then it is
# logged, and a success counts, but a failure no longer decides anything. A delivery costs its merchant once, however
# often it is made. What waits behind a failure is due when that is tried again, so that claims need not pass it by.
# Whoever locks several deliveries, and waits for them, does so in the order of their ids.
_RECORD = f"""
WITH result AS (
    SELECT * FROM unnest(
        $2::bigint[], $3::int[], $4::bool[], $5::timestamptz[], $6::timestamptz[], $7::int[], $8::int[], $9::text[],
        $10::text[]
    ) AS r (id, attempts, delivered, next_due, attempted_at, duration_ms, status_code, error, response)
), held AS MATERIALIZED (
    SELECT d.id FROM webhook_deliveries d WHERE d.id = ANY ($2::bigint[]) ORDER BY d.id FOR NO KEY UPDATE
), changed AS (
    UPDATE webhook_deliveries d SET
        attempts_total = d.attempts_total + 1,
        attempts = CASE WHEN d.attempts = r.attempts THEN d.attempts + 1 ELSE d.attempts END,
        status = CASE
            WHEN r.delivered THEN 'delivered'
            WHEN d.status = 'pending' AND d.attempts = r.attempts AND r.next_due IS NULL THEN 'dropped'
            ELSE d.status END,
        due_at = CASE
            WHEN d.status = 'pending' AND d.attempts = r.attempts AND NOT r.delivered
            THEN coalesce(r.next_due, d.due_at) ELSE d.due_at END,
        delivered_at = CASE WHEN r.delivered THEN $1 ELSE d.delivered_at END
    FROM result r JOIN held ON held.id = r.id WHERE d.id = r.id
    RETURNING d.id, d.attempts_total, d.project_pk, d.delivery_id, r.delivered, r.next_due, d.status, d.resource_id,
        d.endpoint_pk, d.tracker_pk, d.event_pk
), behind AS (
    SELECT later.id, failed.next_due
    FROM changed failed CROSS JOIN LATERAL (
        SELECT w.id FROM webhook_deliveries w
        WHERE w.resource_id = failed.resource_id AND w.status IN ('pending', 'paused')
            AND w.status = 'pending' AND w.due_at < failed.next_due AND w.tracker_pk IS NULL
            AND w.endpoint_pk IS NOT DISTINCT FROM failed.endpoint_pk
            AND w.project_pk = failed.project_pk
            AND coalesce(w.event_pk, w.id) > coalesce(failed.event_pk, failed.id)
            AND w.id <> ALL ($2::bigint[])
        ORDER BY w.id
        LIMIT 1000
        FOR UPDATE SKIP LOCKED
    ) AS later
    WHERE failed.status = 'pending' AND failed.next_due IS NOT NULL AND failed.tracker_pk IS NULL
    UNION ALL
    SELECT later.id, failed.next_due
    FROM changed failed CROSS JOIN LATERAL (
        SELECT w.id FROM webhook_deliveries w
        WHERE {TELLS_OF.format(told="w", transaction="failed.resource_id")}
            AND CASE WHEN w.status = 'pending' AND w.due_at < failed.next_due THEN w.resource_id = failed.resource_id
                AND w.tracker_pk = failed.tracker_pk AND w.id > failed.id AND w.id <> ALL ($2::bigint[]) END
        ORDER BY w.delivery_id
        LIMIT 1000
        FOR UPDATE SKIP LOCKED
    ) AS later
    WHERE failed.status = 'pending' AND failed.next_due IS NOT NULL AND failed.tracker_pk IS NOT NULL
), deferred AS (
    UPDATE webhook_deliveries d SET due_at = behind.next_due FROM behind WHERE d.id = behind.id
), metered AS (
    INSERT INTO usage_records (merchant_pk, mode, operation, reference, weight, created_at)
    SELECT p.merchant_pk, p.mode, 'webhook_delivery', changed.delivery_id, $11::bigint, $1
    FROM changed JOIN projects p ON p.id = changed.project_pk
    WHERE changed.delivered AND $11::bigint > 0
    ON CONFLICT (operation, reference) DO NOTHING
)
INSERT INTO webhook_attempts (delivery_pk, number, attempted_at, duration_ms, status_code, error, response)
SELECT r.id, changed.attempts_total, r.attempted_at, r.duration_ms, r.status_code, r.error, r.response
FROM result r JOIN changed ON changed.id = r.id
ORDER BY r.attempted_at
"""  # noqa: S608  a constant


async def record(conn: AsyncConnection, made: Sequence[Attempt], *, now: datetime, weight: int) -> None:
    """Log attempts, move their events on and meter what was delivered, in one statement.

    ``weight`` is what a delivered event costs; 0 costs nothing.
    """
    await conn.exec_driver_sql(
        _RECORD,
        (
            now,
            [one.claim.id for one in made],
            [one.claim.attempts for one in made],
            [one.result.delivered for one in made],
            [one.next_due for one in made],
            [one.result.attempted_at for one in made],
            [one.result.duration_ms for one in made],
            [one.result.status_code for one in made],
            [one.result.error for one in made],
            [one.result.response_preview for one in made],
            weight,
        ),
    )
