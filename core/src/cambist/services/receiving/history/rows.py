"""The statements of reading the past: who wants which blocks, how far they are, and what they are told of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import transposed
from cambist.domain.troubles import Said, Trouble
from cambist.services.chain_scope import ChainScope
from cambist.services.trackers import movements
from cambist.services.trackers.bodies import Stage
from cambist.services.trackers.history import DEEP

RETRY_FIRST_S, RETRY_MAX_S = 5, 600
ERROR_CHARS_MAX = 300


class Wanting(NamedTuple):
    """A tracker that wants the blocks after ``read_block``. ``xid`` tells whether it got addresses meanwhile."""

    tracker_pk: int
    read_block: int
    to_block: int
    xid: str
    version: int


class Ground(NamedTuple):
    """The cursor of the live watch, and the newest block that may be read as past."""

    height: int
    head: int
    deep: int


class Failed(NamedTuple):
    """When blocks that could not be read are tried again, and why they could not."""

    due_at: datetime
    error: Said | None


class Anchor(NamedTuple):
    """A block that the live watch has read."""

    height: int
    hash: str


_GROUND = f"""
SELECT c.height, c.head, {DEEP.format(confirmations="$3::bigint", finality_required="$4::bool")} AS deep
FROM chain_cursors c WHERE c.chain = $1 AND c.scope = $2
"""  # noqa: S608  constants
_NOT_BEGUN = """
SELECT EXISTS (
    SELECT FROM tracker_histories
    WHERE chain = $1 AND scope = $2 AND state = 'reading' AND read_block IS NULL
        AND (begun_at IS NULL OR begun_at <= $3::timestamptz - make_interval(secs => $4))
)
"""
_COUNT_BEGIN = """
UPDATE chain_cursors SET histories_begun = histories_begun + 1 WHERE chain = $1 AND scope = $2 RETURNING height
"""
# Several rows are locked in one order by everybody: a poll, which holds the chain, must never wait in a circle.
# Who still reads what was begun before, perhaps without the newest addresses, moves nothing on: the version is another.
_BEGIN = """
WITH fresh AS (
    SELECT tracker_pk FROM tracker_histories
    WHERE chain = $1 AND scope = $2 AND state = 'reading' AND read_block IS NULL
        AND (begun_at IS NULL OR begun_at <= $5::timestamptz - make_interval(secs => $6))
    ORDER BY tracker_pk FOR NO KEY UPDATE
)
UPDATE tracker_histories h
SET version = h.version + 1, begun_at = $5, untold = 0, to_block = $3,
    from_block = greatest(t.start_block, $3::bigint - $4::bigint, 0),
    read_block = least(greatest(t.start_block, $3::bigint - $4::bigint, 0) - 1, $3::bigint)
FROM fresh JOIN trackers t ON t.id = fresh.tracker_pk WHERE h.tracker_pk = fresh.tracker_pk
"""
# What came too late is begun anew as soon as nothing is left to read of what was begun.
_END_READ = """
WITH read AS (
    SELECT tracker_pk FROM tracker_histories
    WHERE chain = $1 AND scope = $2 AND state = 'reading'
        AND (read_block >= to_block OR (again AND read_block >= $3))
    ORDER BY tracker_pk FOR NO KEY UPDATE
)
UPDATE tracker_histories h SET
    again = false, state = CASE WHEN again THEN 'reading' ELSE 'done' END,
    from_block = CASE WHEN NOT again THEN from_block END, to_block = CASE WHEN NOT again THEN to_block END,
    read_block = CASE WHEN NOT again THEN read_block END
FROM read WHERE h.tracker_pk = read.tracker_pk
"""
_WANTING = """
SELECT h.tracker_pk, h.read_block, h.to_block, h.xid::text, h.version
FROM tracker_histories h JOIN trackers t ON t.id = h.tracker_pk AND t.is_active
WHERE h.chain = $1 AND h.scope = $2 AND h.state = 'reading' AND h.read_block < least(h.to_block, $3)
    AND (h.due_at IS NULL OR h.due_at <= $4)
ORDER BY h.read_block
"""
_FAILED = """
SELECT h.due_at, h.error, h.error_code
FROM tracker_histories h JOIN trackers t ON t.id = h.tracker_pk AND t.is_active
WHERE h.chain = $1 AND h.scope = $2 AND h.state = 'reading' AND h.due_at > $3
ORDER BY h.due_at LIMIT 1
"""
_ANCHOR = """
SELECT height, hash FROM chain_blocks WHERE chain = $1 AND scope = $2 AND height >= $3 ORDER BY height LIMIT 1
"""
# Whose earlier incarnation is still to be told of is left to the fan-out where it has stages of its own: these come
# after those of the earlier one, to everybody who lists the address by then. One without stages is told of at once.
_STANDING = """
WITH untold AS MATERIALIZED (
    SELECT s.movement_pk FROM movement_stages s WHERE s.chain = $1 AND s.scope = $2 AND s.id > coalesce(
        (SELECT c.stage_pk FROM tracker_cursors c WHERE c.chain = $1 AND c.scope = $2), 0
    )
    UNION SELECT d.movement_pk FROM deferred_stages d WHERE d.chain = $1 AND d.scope = $2
), unended AS MATERIALIZED (
    SELECT e.tx_id, e.position FROM untold JOIN movements e ON e.id = untold.movement_pk WHERE e.status = 'orphaned'
)
SELECT m.id, m.height, m.status FROM movements m
WHERE m.chain = $1 AND m.scope = $2 AND m.height BETWEEN $3 AND $4 AND m.status <> 'orphaned'
    AND (m.height, m.id) > ($5, $6) AND EXISTS (
        SELECT FROM tracker_addresses a WHERE a.chain = $1 AND a.scope = $2
            AND a.address IN (m.recipient, m.sender) AND a.tracker_pk = ANY($7::bigint[])
    ) AND NOT (
        (m.tx_id, m.position) IN (SELECT tx_id, position FROM unended) AND m.id IN (SELECT movement_pk FROM untold)
    )
ORDER BY m.height, m.id LIMIT $8
"""
_STILL_STANDING = "SELECT id FROM movements WHERE id = ANY($1::bigint[]) AND status <> 'orphaned'"
_LOCKED = """
WITH served AS (
    SELECT h.tracker_pk FROM tracker_histories h
    JOIN unnest($1::bigint[], $2::bigint[]) AS s (tracker_pk, version) USING (tracker_pk, version)
    WHERE h.state = 'reading' AND h.read_block IS NOT NULL ORDER BY h.tracker_pk FOR NO KEY UPDATE OF h
)
"""
_ADVANCE = f"""{_LOCKED}
UPDATE tracker_histories h
SET read_block = greatest(h.read_block, least($3, h.to_block)),
    failures = 0, error = NULL, error_code = NULL, due_at = NULL
FROM served WHERE h.tracker_pk = served.tracker_pk
"""  # noqa: S608  constants
_UNTOLD = f"""{_LOCKED}, concerned AS (
    SELECT served.tracker_pk, count(*) AS movements FROM served
    JOIN movements m ON m.id = ANY($3::bigint[]) AND EXISTS (
        SELECT FROM tracker_addresses a
        WHERE a.tracker_pk = served.tracker_pk AND a.address IN (m.recipient, m.sender)
    ) GROUP BY served.tracker_pk
)
UPDATE tracker_histories h SET untold = h.untold + concerned.movements
FROM concerned WHERE h.tracker_pk = concerned.tracker_pk
"""  # noqa: S608  constants
_POSTPONE = f"""{_LOCKED}
UPDATE tracker_histories h SET error = $3, error_code = $7, failures = h.failures + 1,
    due_at = $4::timestamptz + make_interval(secs => least($5 * 2 ^ least(h.failures, 20), $6))
FROM served WHERE h.tracker_pk = served.tracker_pk
"""  # noqa: S608  constants


async def end_read(conn: AsyncConnection, chain_scope: ChainScope) -> Ground | None:
    """End what was read to its end, and return where the live watch is; None where it has read nothing yet."""
    depth = movements.confirmations(chain_scope), chain_scope.info.finality_required
    row = (await conn.exec_driver_sql(_GROUND, (*chain_scope.key, *depth))).one_or_none()
    if row is None:
        return None
    await conn.exec_driver_sql(_END_READ, (*chain_scope.key, row.deep))
    return Ground(row.height, row.head, row.deep)


async def any_to_begin(conn: AsyncConnection, chain_scope: ChainScope, now: datetime, pause_s: float) -> bool:
    found: bool = (await conn.exec_driver_sql(_NOT_BEGUN, (*chain_scope.key, now, pause_s))).scalar_one()
    return found


async def begin(conn: AsyncConnection, chain_scope: ChainScope, blocks_max: int, now: datetime, pause_s: float) -> None:
    """Say up to where those who are new want to read: to the cursor, which is held. Not whose last begin is too near.

    Every poll that is committed later knows of them, and moves their ends where it did not know their addresses. It
    learns of them from the cursor's row alone.
    """
    height = (await conn.exec_driver_sql(_COUNT_BEGIN, chain_scope.key)).scalar()
    if height is not None:
        await conn.exec_driver_sql(_BEGIN, (*chain_scope.key, height, blocks_max, now, pause_s))


async def wanting(conn: AsyncConnection, chain_scope: ChainScope, deep: int, now: datetime) -> Sequence[Wanting]:
    """Return who wants blocks that can be read now, from the lowest on."""
    rows = await conn.exec_driver_sql(_WANTING, (*chain_scope.key, deep, now))
    return [Wanting(row.tracker_pk, row.read_block, row.to_block, row.xid, row.version) for row in rows]


async def failed(conn: AsyncConnection, chain_scope: ChainScope, now: datetime) -> Failed | None:
    """Return what is tried again next of what could not be read; None where there is no such."""
    row = (await conn.exec_driver_sql(_FAILED, (*chain_scope.key, now))).one_or_none()
    if row is None:
        return None
    return Failed(row.due_at, None if row.error is None else Said(Trouble(row.error_code), row.error))


async def anchor_of(conn: AsyncConnection, chain_scope: ChainScope, height: int) -> Anchor | None:
    """Return the nearest known block at a height or above it."""
    row = (await conn.exec_driver_sql(_ANCHOR, (*chain_scope.key, height))).one_or_none()
    return None if row is None else Anchor(row.height, row.hash)


async def stages_of(  # noqa: PLR0913, PLR0917  whose, where, and which part
    conn: AsyncConnection,
    chain_scope: ChainScope,
    blocks: tuple[int, int],
    after: tuple[int, int],
    trackers: Sequence[int],
    movements_max: int,
) -> tuple[Sequence[tuple[int, str]], tuple[int, int] | None]:
    """Return what became of the next movements of these trackers in a run of blocks, and after which more follow."""
    wanted = (*chain_scope.key, *blocks, *after, list(trackers), movements_max)
    rows = (await conn.exec_driver_sql(_STANDING, wanted)).all()
    stages = [(row.id, stage) for row in rows for stage in ("detected", "confirmed")[: 1 + (row.status == "confirmed")]]
    return stages, (rows[-1].height, rows[-1].id) if len(rows) == movements_max else None


async def still_standing(conn: AsyncConnection, stages: Sequence[Stage]) -> Sequence[Stage]:
    """Leave out what was orphaned meanwhile."""
    found = await conn.exec_driver_sql(_STILL_STANDING, ([stage.movement_pk for stage in stages],))
    standing = set(found.scalars())
    return [stage for stage in stages if stage.movement_pk in standing]


def _who(served: Sequence[Wanting]) -> Sequence[list[int]]:
    return transposed([(one.tracker_pk, one.version) for one in served])


async def advance(conn: AsyncConnection, served: Sequence[Wanting], height: int) -> None:
    """Say that these have read up to a block, but for those who were switched, cancelled or begun anew meanwhile."""
    await conn.exec_driver_sql(_ADVANCE, (*_who(served), height))


async def count_untold(conn: AsyncConnection, served: Sequence[Wanting], movement_pks: Sequence[int]) -> None:
    """Count, for those of these whom they concern, movements that are passed by since they cannot be told."""
    if movement_pks:
        await conn.exec_driver_sql(_UNTOLD, (*_who(served), list(movement_pks)))


async def postpone(conn: AsyncConnection, served: Sequence[Wanting], error: Said, now: datetime) -> None:
    """Have these tried again later, each time after twice as long."""
    words, again = error.words[:ERROR_CHARS_MAX], (now, RETRY_FIRST_S, RETRY_MAX_S)
    await conn.exec_driver_sql(_POSTPONE, (*_who(served), words, *again, error.code))
