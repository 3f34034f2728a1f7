"""Finds the trackers that hear of a movement, and queues what they are told: the same id for the same news, always."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.copying import copy_new, moment_field
from cambist.db.structs import AnyRow, transposed
from cambist.domain.usage import Operation
from cambist.services.accounting.usage import Metered, meter_sums
from cambist.services.platform import PlatformSettings
from cambist.services.webhooks.outbox import enqueue_for_trackers

from .bodies import TRANSACTION_COLUMNS, Matches, Movement, News, Stage, delivery_id, written

MATCHES_MAX = 5_000
"""What trackers are told in one transaction, unless one movement alone is told to more."""


class Told(Struct, frozen=True, kw_only=True):
    """How many of the given stages were dealt with, from the first on, and how many deliveries were queued."""

    stages: int
    deliveries: int


_MOVEMENTS = f"SELECT {', '.join(Movement._fields)} FROM movements WHERE id = ANY($1::bigint[])"  # noqa: S608  constants
_ORPHANED = "SELECT id FROM movements WHERE id = ANY($1::bigint[]) AND status = 'orphaned'"

# Each address is looked up by itself: no plan can begin at the other end. Then each tracker once, however many of its
# addresses were found. Lists of trackers that are switched off are passed by there: a merchant has few of them. It is
# one row of columns: thousands of rows take the driver longer to read than what they say.
_MATCH = """
WITH listed AS MATERIALIZED (
    SELECT 2 * (m.nth - 1) + e.is_out AS number, m.height, a.tracker_pk, a.label
    FROM unnest($1::bigint[], $2::text[], $3::text[]) WITH ORDINALITY AS m (height, recipient, sender, nth)
    CROSS JOIN LATERAL (VALUES (0, m.recipient), (1, m.sender)) AS e (is_out, address)
    CROSS JOIN LATERAL (
        SELECT tracker_pk, label FROM tracker_addresses
        WHERE chain = $4 AND scope = $5 AND address = e.address AND ($6::bigint[] IS NULL OR tracker_pk = ANY($6))
        OFFSET 0
    ) AS a
), told AS MATERIALIZED (
    SELECT t.id, t.start_block
    FROM (SELECT DISTINCT tracker_pk FROM listed OFFSET 0) AS one
    CROSS JOIN LATERAL (
        SELECT id, start_block FROM trackers WHERE id = one.tracker_pk AND is_active OFFSET 0
    ) AS t
)
SELECT coalesce(array_agg(number ORDER BY number, tracker_pk), '{}') AS ends,
    coalesce(array_agg(tracker_pk ORDER BY number, tracker_pk), '{}') AS tracker_pks,
    coalesce(array_agg(label ORDER BY number, tracker_pk), '{}') AS labels
FROM (
    SELECT listed.number, listed.tracker_pk, listed.label
    FROM listed JOIN told ON told.id = listed.tracker_pk AND told.start_block <= listed.height
    ORDER BY listed.number, listed.tracker_pk
    LIMIT $7
) AS heard
"""

_TRACKERS = """
SELECT t.id, t.webhook_id, t.url, t.project_pk, p.merchant_pk, p.mode
FROM trackers t JOIN projects p ON p.id = t.project_pk WHERE t.id = ANY($1::bigint[])
"""

_HEARD = "SELECT transaction_id, movement_pk FROM tracker_transactions WHERE transaction_id = ANY($1::text[])"

# What was cancelled is told again in the order in which it was queued.
_OVERTAKEN = """
SELECT one.first FROM unnest($1::text[], $2::text[]) AS one (first, confirmed)
JOIN webhook_deliveries c ON c.delivery_id = one.confirmed
WHERE c.status <> 'cancelled' OR NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.delivery_id = one.first)
"""

# A transfer that was mined again is the same transaction to a tracker, whose newest incarnation is shown.
_REMEMBER = """
WITH stored AS (
    INSERT INTO tracker_transactions AS t (transaction_id, tracker_pk, movement_pk, direction, address, created_at)
    SELECT new.*, $6 FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[]) AS new
    ON CONFLICT (transaction_id) DO UPDATE SET movement_pk = excluded.movement_pk
    WHERE t.movement_pk < excluded.movement_pk
    RETURNING id, transaction_id, tracker_pk, xmax = 0 AS is_new
)
SELECT tracker_pk, count(*) AS number, (array_agg(transaction_id ORDER BY id))[1] AS first
FROM stored WHERE is_new GROUP BY tracker_pk ORDER BY min(id)
"""


class Findings(NamedTuple):
    """Who hears of stages, and what: as the lists were when it was looked up. Nothing of it is written yet.

    ``done`` stages were dealt with, from the first on. Where ``at_first``, each stage is the first thing that became of
    a transfer.
    """

    stages: Sequence[Stage]
    done: int
    at_first: bool = False
    news: Sequence[News] = ()
    trackers: Mapping[int, AnyRow] = {}


async def tell(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    chain: str,
    scope: int,
    stages: Sequence[Stage],
    *,
    settings: PlatformSettings,
    now: datetime,
    only_trackers: Sequence[int] | None = None,
) -> Told:
    """Queue what trackers hear of these stages: ``look_up`` and ``queue`` in one transaction."""
    findings = await look_up(conn, chain, scope, stages, only_trackers=only_trackers)
    return await queue(conn, chain, findings, settings=settings, now=now)


async def look_up(
    conn: AsyncConnection,
    chain: str,
    scope: int,
    stages: Sequence[Stage],
    *,
    only_trackers: Sequence[int] | None = None,
) -> Findings:
    """Find who hears of these stages, in their order, and write what they are told.

    Heard by every tracker that is active, watches sender or recipient, and begins no later than that block; or by
    ``only_trackers`` (primary keys) where their history is read. Deals with as many stages as trackers can be told
    of in one transaction: with one at least, so that whoever calls again with the others comes to an end.
    """
    if not stages:
        return Findings(stages, 0)
    found = await conn.exec_driver_sql(_MOVEMENTS, (list({stage.movement_pk for stage in stages}),))
    by_pk = {row.id: row for row in map(Movement._make, found)}
    movements = [by_pk[stage.movement_pk] for stage in stages]
    done = len(stages)
    matched = await _match(conn, chain, scope, movements, only_trackers, MATCHES_MAX + 1)
    if len(matched.ends) > MATCHES_MAX:
        # Of the last stage there may be more.
        done = matched.ends[-1] // 2
        matched = matched.before(2 * done)
    if not done:
        done, matched = 1, await _match(conn, chain, scope, movements[:1], only_trackers, None)
    if not matched.ends:
        return Findings(stages, done)
    rows = await conn.exec_driver_sql(_TRACKERS, (list(set(matched.tracker_pks)),))
    trackers = {row.id: row for row in rows}
    at_first = all(stage.stage == "detected" for stage in stages) and all(row.incarnation == 1 for row in movements)
    # So much of it keeps a process busy for dozens of milliseconds: beside the database, and the process's others.
    news = await asyncio.to_thread(written, chain, stages, movements, matched, trackers)
    if only_trackers is not None:
        news = await _not_overtaken(conn, stages, movements, news)
    return Findings(stages, done, at_first, news, trackers)


async def queue(
    conn: AsyncConnection, chain: str, findings: Findings, *, settings: PlatformSettings, now: datetime
) -> Told:
    """Queue what was looked up. What was queued before is not queued again.

    Whoever calls this keeps everybody else from telling of this chain (``fan_out.lock_cursor``), and knows that
    nobody was told of these stages since they were looked up.
    """
    news = await _newsworthy(conn, findings)
    if not news:
        return Told(stages=findings.done, deliveries=0)
    await _remember(conn, chain, news, findings, settings, now)
    queued = await enqueue_for_trackers(conn, [one.delivery_row for one in news], map(News.delivery, news), now)
    return Told(stages=findings.done, deliveries=queued)


async def _match(  # noqa: PLR0913, PLR0917  what is matched, and for whom
    conn: AsyncConnection,
    chain: str,
    scope: int,
    movements: Sequence[Movement],
    only_trackers: Sequence[int] | None,
    matches_max: int | None,
) -> Matches:
    """Return who watches the ends of these movements, in their order."""
    ends = transposed([(movement.height, movement.recipient, movement.sender) for movement in movements])
    heard = (await conn.exec_driver_sql(_MATCH, (*ends, chain, scope, only_trackers, matches_max))).one()
    return Matches(heard.ends, heard.tracker_pks, heard.labels)


async def _not_overtaken(
    conn: AsyncConnection, stages: Sequence[Stage], movements: Sequence[Movement], news: Sequence[News]
) -> Sequence[News]:
    """Leave out that something was seen where it was told before that it is confirmed.

    An address that comes on a list between the two hears of the second from who tells what happens now, and of the
    first only from its history: too late, as whoever goes by what came last would take it back.
    """
    pairs = [
        (one.delivery_id, delivery_id(one.transaction_id, "confirmed", movements[one.end.number].incarnation))
        for one in news
        if stages[one.end.number].stage == "detected"
    ]
    if not pairs:
        return news
    overtaken = set((await conn.exec_driver_sql(_OVERTAKEN, (*transposed(pairs),))).scalars())
    return [one for one in news if one.delivery_id not in overtaken]


async def _newsworthy(conn: AsyncConnection, findings: Findings) -> Sequence[News]:
    """Leave out the end of what a tracker never heard of, and what became of it before what was told of last.

    Who had its past read meanwhile may have heard of a transfer that was mined again.
    """
    news = findings.news
    if not news:
        return news
    movement_pks = list({stage.movement_pk for stage in findings.stages[: findings.done]})
    orphaned = set((await conn.exec_driver_sql(_ORPHANED, (movement_pks,))).scalars())
    if not orphaned:
        return news
    gone = [one.transaction_id for one in news if findings.stages[one.end.number].movement_pk in orphaned]
    heard = {row.transaction_id: row.movement_pk for row in await conn.exec_driver_sql(_HEARD, (gone,))}
    told = []
    for one in news:
        stage, transaction_id = findings.stages[one.end.number], one.transaction_id
        last = heard.get(transaction_id, 0)
        if last == stage.movement_pk or (last < stage.movement_pk and stage.stage != "orphaned"):
            heard[transaction_id] = stage.movement_pk
            told.append(one)
    return told


async def _remember(  # noqa: PLR0913, PLR0917  what is told to whom
    conn: AsyncConnection,
    chain: str,
    news: Sequence[News],
    findings: Findings,
    settings: PlatformSettings,
    now: datetime,
) -> None:
    """Store the trackers' transactions, and meter those that are new: one record for each tracker."""
    new: Sequence[tuple[int, int, str]]
    rows, alike = [one.transaction_row for one in news], {"created_at": moment_field(now)}
    if findings.at_first and await copy_new(conn, "tracker_transactions", TRANSACTION_COLUMNS, rows, alike):
        new = _counted(news)
    else:
        newest = {one.named: _row(one, findings.stages) for one in news}
        stored = await conn.exec_driver_sql(_REMEMBER, (*transposed(list(newest.values())), now))
        new = [(row.tracker_pk, row.number, row.first) for row in stored]
    metered = []
    for tracker_pk, number, first in new:
        tracker = findings.trackers[tracker_pk]
        metered.append((Metered(tracker.merchant_pk, tracker.mode, Operation.TRACKER, chain, first), number))
    await meter_sums(conn, metered, settings, now)


def _row(one: News, stages: Sequence[Stage]) -> tuple[str, int, int, str, str]:
    end = one.end
    return one.transaction_id, one.target.pk, stages[end.number].movement_pk, end.direction, end.address


def _counted(news: Sequence[News]) -> Sequence[tuple[int, int, str]]:
    """Return how many new transactions each tracker has, and its first one."""
    tracker_pks = [one.target.pk for one in news]
    first = dict(zip(reversed(tracker_pks), reversed(news), strict=True))
    return [
        (tracker_pk, number, first[tracker_pk].transaction_id) for tracker_pk, number in Counter(tracker_pks).items()
    ]
