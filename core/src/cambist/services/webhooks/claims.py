"""Takes what is due from the outbox for a while, fairly between those who hear of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from .lanes import Room
from .outbox import TELLS_OF
from .secrets import ENDPOINT_FIELD, FIELD, TRACKER_FIELD
from .stopping import STOPPED, SUSPENDED

CANDIDATES_PER_CLAIM = 4
"""How many due events are looked at for one that is taken, since receivers' lanes may be full."""
NEAREST_MAX = 200
"""Where no more is due, all of it is looked at."""
TARGETS_MAX = 500
"""Queues of projects, and of trackers, that one claim looks for."""
PROJECTS_FROM, TRACKERS_FROM, TRACKERS_UNTIL = 2**61, 2**62, 2**63 - 1
"""The ranges of ``target_key``: endpoints come before."""


class Claim(Struct, frozen=True, kw_only=True):
    """A delivery that is this process's until its lease ends. ``attempts`` were made before, in this set.

    ``webhook_id`` is what the receiver knows it by. ``signed_by`` is the public id of whose secret signs it, and
    ``secret_field`` the column that the secret is bound to.
    """

    id: int
    delivery_id: str
    webhook_id: str
    event: str
    url: str
    origin: str
    body: bytes
    attempts: int
    signed_by: str
    secret_field: str
    secret_encrypted: bytes | None
    previous_secret_encrypted: bytes | None


# Where more is due than the nearest rows, whoever hears of something has a queue of its own, and an equal share of the
# claim: nobody's backlog is in anybody's way, however long it is. Queues are found by a loose scan, which reads one row
# of each; after ``TARGETS_MAX`` it stops, and the next claim goes on there. Projects are told before trackers. Where
# there are fewer places than queues, the queues' ranks decide, which are others in each claim: if their ages did, the
# oldest backlog would have every place that becomes free.
#
# The order within one target and resource: a delivery waits while an earlier one has attempts left. Rows that another
# process took meanwhile are locked, or no longer due when they are looked at again. An endpoint's and a tracker's URL
# is what it is now, and none while an endpoint is paused: what was queued before is put aside by
# ``endpoint_states.py``. What a tracker is not told any more is cancelled instead.
#
# Whatever is looked up for a row is a subquery that no plan can turn into a join with the whole table: plans are made
# once, for queues of any length. The CASE hides from the planner how few rows it may leave, so that a queue is read in
# its order and no further than needed; its key is named as a range and in the order, so that no other index will do.
# Another one hides that what was chosen is due: with statistics of an emptier table, all that is due would be read.
_CLAIM = f"""
WITH RECURSIVE nearest AS MATERIALIZED (
    SELECT target_key, url FROM webhook_deliveries WHERE status = 'pending' AND due_at <= $1
    ORDER BY due_at, id LIMIT {NEAREST_MAX + 1}
), are_all AS MATERIALIZED (
    SELECT count(*) <= {NEAREST_MAX} AS yes FROM nearest
), queue AS (
    (
        SELECT start.until, first.target_key, first.due_at, first.url, 1 AS number
        FROM (VALUES ($8::bigint, {TRACKERS_FROM}), ($9::bigint, {TRACKERS_UNTIL})) AS start (key, until)
        CROSS JOIN LATERAL (
            SELECT target_key, due_at, url FROM webhook_deliveries
            WHERE status = 'pending' AND target_key > start.key AND target_key < start.until
            ORDER BY target_key, due_at LIMIT 1
        ) AS first
        WHERE NOT (SELECT yes FROM are_all)
    )
    UNION ALL
    SELECT queue.until, next.target_key, next.due_at, next.url, queue.number + 1
    FROM queue CROSS JOIN LATERAL (
        SELECT target_key, due_at, url FROM webhook_deliveries
        WHERE status = 'pending' AND target_key > queue.target_key AND target_key < queue.until
        ORDER BY target_key, due_at LIMIT 1
    ) AS next
    WHERE queue.number < {TARGETS_MAX}
), place AS MATERIALIZED (
    SELECT due.*, lower(substring(due.url FROM '^[^/]*//[^/?#]*')) AS origin,
        hashint8extended(due.target_key, $10::bigint) AS rank
    FROM (
        SELECT target_key, share, CASE
            WHEN target_key < {PROJECTS_FROM} THEN (
                SELECT e.url FROM webhook_endpoints e
                WHERE e.id = target_key AND NOT e.paused AND e.deleted_at IS NULL)
            WHEN target_key < {TRACKERS_FROM} THEN first_url
            ELSE (SELECT t.url FROM trackers t WHERE t.id = target_key - {TRACKERS_FROM})
        END AS url
        FROM (
            SELECT target_key, min(url) AS first_url, $3::bigint AS share
            FROM nearest WHERE (SELECT yes FROM are_all) GROUP BY target_key
            UNION ALL
            SELECT target_key, url, 1 + {CANDIDATES_PER_CLAIM} * $3::bigint / count(*) OVER (PARTITION BY until)
            FROM queue WHERE due_at <= $1
        ) AS those
    ) AS due
), candidate AS MATERIALIZED (
    SELECT due.id, due.turn, due.url, place.origin, place.target_key, place.rank, coalesce(lane.room, $7) AS room,
        row_number() OVER (
            PARTITION BY place.origin ORDER BY place.target_key >= {TRACKERS_FROM}, due.turn, place.rank, due.id
        ) AS number
    FROM place
    LEFT JOIN unnest($5::text[], $6::int[]) AS lane (origin, room) ON lane.origin = place.origin
    CROSS JOIN LATERAL (
        SELECT one.id, one.url, row_number() OVER (ORDER BY one.due_at, one.id) AS turn
        FROM (
            SELECT d.id, d.due_at, CASE
                WHEN place.target_key >= {PROJECTS_FROM} AND place.target_key < {TRACKERS_FROM} THEN d.url
                ELSE place.url END AS url
            FROM webhook_deliveries d
            WHERE d.target_key >= place.target_key AND d.target_key <= place.target_key
                AND d.status = 'pending' AND d.due_at <= $1
                AND CASE WHEN d.tracker_pk IS NULL THEN (
                    SELECT earlier.id FROM webhook_deliveries earlier
                    WHERE earlier.resource_id = d.resource_id AND earlier.status IN ('pending', 'paused')
                        AND earlier.tracker_pk IS NULL
                        AND earlier.endpoint_pk IS NOT DISTINCT FROM d.endpoint_pk
                        AND earlier.project_pk = d.project_pk
                        AND coalesce(earlier.event_pk, earlier.id) < coalesce(d.event_pk, d.id)
                    LIMIT 1
                ) ELSE (
                    SELECT earlier.id FROM webhook_deliveries earlier
                    WHERE {TELLS_OF.format(told="earlier", transaction="d.resource_id")}
                        AND CASE WHEN earlier.status = 'pending' THEN earlier.resource_id = d.resource_id
                            AND earlier.tracker_pk = d.tracker_pk AND earlier.id < d.id END
                    ORDER BY earlier.delivery_id LIMIT 1
                ) END IS NULL
            ORDER BY d.target_key, d.due_at, d.id
            LIMIT least(place.share, coalesce(lane.room, $7))
        ) AS one
    ) AS due
    WHERE place.origin IS NOT NULL AND place.origin <> ALL ($4::text[])
), chosen AS MATERIALIZED (
    SELECT id, url, origin, row_number() OVER (ORDER BY target_key >= {TRACKERS_FROM}, turn, rank, id) AS place
    FROM candidate WHERE number <= room
), taken AS MATERIALIZED (
    SELECT d.id, d.project_pk, d.event_pk, d.endpoint_pk, d.tracker_pk, chosen.url, chosen.origin
    FROM chosen JOIN webhook_deliveries d ON d.id = chosen.id
    WHERE d.id = ANY (ARRAY(SELECT id FROM chosen)) AND CASE WHEN d.status = 'pending' THEN d.due_at <= $1 END
    ORDER BY chosen.place
    LIMIT $3
    FOR UPDATE OF d SKIP LOCKED
), leased AS (
    UPDATE webhook_deliveries d SET due_at = $2, url = taken.url,
        status = CASE WHEN {STOPPED} THEN 'cancelled' WHEN {SUSPENDED} THEN 'dropped' ELSE d.status END
    FROM taken
    JOIN projects p ON p.id = taken.project_pk
    LEFT JOIN LATERAL (SELECT event_id, body FROM webhook_events WHERE id = taken.event_pk LIMIT 1) AS told ON true
    LEFT JOIN LATERAL (
        SELECT endpoint_id, secret_encrypted, previous_secret_encrypted, previous_secret_until
        FROM webhook_endpoints WHERE id = taken.endpoint_pk LIMIT 1
    ) AS endpoint ON true
    LEFT JOIN LATERAL (
        SELECT webhook_id, secret_encrypted FROM trackers WHERE id = taken.tracker_pk LIMIT 1
    ) AS tracker ON true
    WHERE d.id = taken.id
    RETURNING d.id, d.delivery_id, coalesce(told.event_id, d.delivery_id) AS webhook_id, p.project_id,
        endpoint.endpoint_id, tracker.webhook_id AS tracker_id, d.tracker_pk, d.status, d.event, d.url, taken.origin,
        coalesce(d.body, told.body) AS body, d.attempts,
        CASE WHEN taken.tracker_pk IS NOT NULL THEN tracker.secret_encrypted
            WHEN taken.endpoint_pk IS NOT NULL THEN endpoint.secret_encrypted
            ELSE p.webhook_secret_encrypted END AS secret_encrypted,
        CASE WHEN taken.tracker_pk IS NOT NULL THEN NULL
            WHEN taken.endpoint_pk IS NULL AND p.previous_secret_until > $1 THEN p.previous_secret_encrypted
            WHEN endpoint.previous_secret_until > $1 THEN endpoint.previous_secret_encrypted
        END AS previous_secret_encrypted
)
SELECT walked.*, leased.*
FROM (
    SELECT max(target_key) FILTER (WHERE number = {TARGETS_MAX} AND until = {TRACKERS_FROM}) AS next_project,
        max(target_key) FILTER (WHERE number = {TARGETS_MAX} AND until > {TRACKERS_FROM}) AS next_tracker
    FROM queue
) AS walked LEFT JOIN leased ON true
"""  # noqa: S608  a constant

_DUE = """
SELECT EXISTS (SELECT FROM webhook_deliveries WHERE status = 'pending' AND due_at <= $1) AS already,
    (SELECT min(due_at) FROM webhook_deliveries WHERE status = 'pending' AND due_at > $1) AS next
"""


class From(Struct, frozen=True, kw_only=True):
    """Behind which targets the next claim looks: none, unless the claim before came to more than it could look at."""

    project: int = 0
    tracker: int = TRACKERS_FROM - 1


class Claimed(Struct, frozen=True, kw_only=True):
    """What a claim took, and whose deliveries it cancelled or dropped: more of theirs may wait.

    ``go_on`` is None at the end.
    """

    claims: Sequence[Claim]
    stopped: Collection[int]
    go_on: From | None


async def claim(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    *,
    now: datetime,
    leased_until: datetime,
    events_max: int,
    room: Room,
    number: int,
    begin: From | None = None,
) -> Claimed:
    """Take due deliveries, as far as there is room for them: fairly between those who hear of them, each in its order.

    ``number`` is which claim it is: in each, others come first. Who crashes gives them back by doing nothing: they are
    due again when the lease ends.
    """
    begin = begin or From()
    open_lanes = {origin: attempts for origin, attempts in room.by_origin.items() if attempts > 0}
    found = await conn.exec_driver_sql(
        _CLAIM,
        (
            now,
            leased_until,
            min(events_max, room.attempts),
            room.full,
            list(open_lanes),
            list(open_lanes.values()),
            room.unknown,
            begin.project,
            begin.tracker,
            number,
        ),
    )
    rows = found.all()
    following = From(project=rows[0].next_project or 0, tracker=rows[0].next_tracker or TRACKERS_FROM - 1)
    # No types are checked: all are leased by now, and one wrong row would keep the others from going.
    claims = [
        Claim(
            id=row.id,
            delivery_id=row.delivery_id,
            webhook_id=row.webhook_id,
            event=row.event,
            url=row.url,
            origin=row.origin,
            body=row.body,
            attempts=row.attempts,
            signed_by=row.tracker_id or row.endpoint_id or row.project_id,
            secret_field=TRACKER_FIELD if row.tracker_id else ENDPOINT_FIELD if row.endpoint_id else FIELD,
            secret_encrypted=row.secret_encrypted,
            previous_secret_encrypted=row.previous_secret_encrypted,
        )
        for row in rows
        if row.status == "pending"
    ]
    return Claimed(
        claims=sorted(claims, key=lambda claim: claim.id),
        stopped={row.tracker_pk for row in rows if row.status in {"cancelled", "dropped"}},
        go_on=None if following == From() else following,
    )


async def release(conn: AsyncConnection, delivery_pks: Sequence[int], *, now: datetime) -> None:
    """Give claimed events back before their lease ends."""
    await conn.exec_driver_sql(
        "UPDATE webhook_deliveries SET due_at = $2 WHERE id = ANY($1::bigint[]) AND status = 'pending'",
        (list(delivery_pks), now),
    )


class Due(Struct, frozen=True, kw_only=True):
    """Whether anything is due ``already``, and when the ``next`` event is that is not, a lease's end included."""

    already: bool
    next: datetime | None


async def find_due(conn: AsyncConnection, *, now: datetime) -> Due:
    """Return what is due when: a short question, where a claim is a long one."""
    row = (await conn.exec_driver_sql(_DUE, (now,))).one()
    return Due(already=row.already, next=row.next)
