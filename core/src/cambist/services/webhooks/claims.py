"""The outbox's two hot statements: take what is due for a while, and record what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from .lanes import Room
from .sender import AttemptResult

CANDIDATES_PER_CLAIM = 4
"""How many due events are looked at for one that is taken, since receivers' lanes may be full."""


class Claim(Struct, frozen=True, kw_only=True):
    """An event that is this process's to send until its lease ends. ``attempts`` were made before, in this set."""

    id: int
    delivery_id: str
    project_id: str
    event: str
    url: str
    origin: str
    body: bytes
    attempts: int
    secret_encrypted: bytes | None


# The order within one resource: an event is not first sent while an earlier one has not been tried. A retry waits
# for nobody. Rows that another process took meanwhile are locked, or no longer due when they are looked at again.
_CLAIM = """
WITH candidate AS MATERIALIZED (
    SELECT id, due_at, origin, row_number() OVER (PARTITION BY origin ORDER BY due_at, id) AS number
    FROM (
        SELECT d.id, d.due_at, lower(substring(d.url FROM '^[^/]*//[^/?#]*')) AS origin
        FROM webhook_deliveries d
        WHERE d.status = 'pending' AND d.due_at <= $1
            AND (d.attempts_total > 0 OR NOT EXISTS (
                SELECT FROM webhook_deliveries earlier
                WHERE earlier.resource_id = d.resource_id AND earlier.status = 'pending'
                    AND earlier.id < d.id AND earlier.attempts_total = 0
            ))
            AND lower(substring(d.url FROM '^[^/]*//[^/?#]*')) <> ALL ($5::text[])
        ORDER BY d.due_at, d.id
        LIMIT $4
    ) AS due
), taken AS MATERIALIZED (
    SELECT d.id, candidate.origin
    FROM candidate
    JOIN webhook_deliveries d ON d.id = candidate.id
    LEFT JOIN unnest($6::text[], $7::int[]) AS lane (origin, room) ON lane.origin = candidate.origin
    WHERE candidate.number <= coalesce(lane.room, $8) AND d.status = 'pending' AND d.due_at <= $1
    ORDER BY candidate.due_at, d.id
    LIMIT $3
    FOR UPDATE OF d SKIP LOCKED
)
UPDATE webhook_deliveries d SET due_at = $2
FROM taken, projects p
WHERE d.id = taken.id AND p.id = d.project_pk
RETURNING d.id, d.delivery_id, p.project_id, d.event, d.url, taken.origin, d.body, d.attempts,
    p.webhook_secret_encrypted AS secret_encrypted
"""


async def claim(
    conn: AsyncConnection, *, now: datetime, leased_until: datetime, events_max: int, room: Room
) -> list[Claim]:
    """Take due events, in order of their ids, as far as there is room for them.

    Who crashes gives them back by doing nothing: they are due again when the lease ends.
    """
    count = min(events_max, room.attempts)
    open_lanes = {origin: attempts for origin, attempts in room.by_origin.items() if attempts > 0}
    rows = await conn.exec_driver_sql(
        _CLAIM,
        (
            now,
            leased_until,
            count,
            count * CANDIDATES_PER_CLAIM,
            room.full,
            list(open_lanes),
            list(open_lanes.values()),
            room.unknown,
        ),
    )
    # No types are checked: all are leased by now, and one wrong row would keep the others from going.
    claims = [
        Claim(
            id=row.id,
            delivery_id=row.delivery_id,
            project_id=row.project_id,
            event=row.event,
            url=row.url,
            origin=row.origin,
            body=row.body,
            attempts=row.attempts,
            secret_encrypted=row.secret_encrypted,
        )
        for row in rows
    ]
    return sorted(claims, key=lambda claim: claim.id)


async def release(conn: AsyncConnection, delivery_pks: Sequence[int], *, now: datetime) -> None:
    """Give claimed events back before their lease ends."""
    await conn.exec_driver_sql(
        "UPDATE webhook_deliveries SET due_at = $2 WHERE id = ANY($1::bigint[]) AND status = 'pending'",
        (list(delivery_pks), now),
    )


async def next_due(conn: AsyncConnection, *, now: datetime) -> datetime | None:
    """Return when the next event is due that is not due yet, a lease's end included."""
    found = await conn.exec_driver_sql(
        "SELECT min(due_at) FROM webhook_deliveries WHERE status = 'pending' AND due_at > $1", (now,)
    )
    due: datetime | None = found.scalar_one()
    return due


class Attempt(Struct, frozen=True, kw_only=True):
    """One attempt to deliver, and what came of it. ``next_due`` is None where no further one follows."""

    claim: Claim
    result: AttemptResult
    next_due: datetime | None


# An attempt that outlived its lease may find that somebody else has tried since (attempts differ). Then it is
# logged, and a success counts, but a failure no longer decides anything. An event costs its merchant once, however
# often it is delivered.
_RECORD = """
WITH result AS (
    SELECT * FROM unnest(
        $2::bigint[], $3::int[], $4::bool[], $5::timestamptz[], $6::timestamptz[], $7::int[], $8::int[], $9::text[],
        $10::text[]
    ) AS r (id, attempts, delivered, next_due, attempted_at, duration_ms, status_code, error, response)
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
    FROM result r WHERE d.id = r.id
    RETURNING d.id, d.attempts_total, d.project_pk, d.delivery_id, r.delivered
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
"""


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
