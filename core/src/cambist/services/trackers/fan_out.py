"""Tells trackers of movements, stage by stage, behind a cursor of its own: no tracker can slow or stop a credit.

Any number of processes may do so at once. Who locks the cursor's row tells, and moves the cursor on in the same
transaction; the others pass by. Where telling fails, fewer stages are told at once, down to the one that cannot be
told, which is put aside (``deferred.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import BusyError, Database
from cambist.db.structs import AnyRow
from cambist.hints import Hints
from cambist.ports import Clock
from cambist.services.platform import PlatformSettings, PlatformSettingsCache

from . import deferred
from .bodies import Stage
from .telling import Findings, Told, look_up, queue, tell

log = structlog.get_logger(__name__)

STAGES_MAX = 1_250
"""Stages that are looked at in one transaction."""
STAGES_FIRST = 625
"""Where more wait, the first of them: nothing can be written before they are looked up."""

# What a statement takes and sorts stays in memory: some 5 MB, which would go to the disk and back with the usual room.
_LOCK = """
SELECT stage_pk, version, set_config('work_mem', '32MB', true),
    EXISTS (SELECT FROM deferred_stages WHERE chain = $1 AND scope = $2) AS any_deferred
FROM tracker_cursors WHERE chain = $1 AND scope = $2 FOR NO KEY UPDATE SKIP LOCKED
"""
_LOCK_ALWAYS = "UPDATE tracker_cursors SET version = version + 1 WHERE chain = $1 AND scope = $2"
_HEAD = "SELECT head FROM chain_cursors WHERE chain = $1 AND scope = $2"
_BEGIN = "INSERT INTO tracker_cursors (chain, scope) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_STAGES = """
SELECT id, movement_pk, stage, head, at FROM movement_stages
WHERE chain = $1 AND scope = $2 AND id > $3 ORDER BY id LIMIT $4
"""
_MOVE = """
UPDATE tracker_cursors SET stage_pk = $4, version = version + 1 WHERE chain = $1 AND scope = $2 AND stage_pk = $3
"""
_WAITING = f"""
SELECT EXISTS (
    SELECT FROM movement_stages WHERE chain = $1 AND scope = $2 AND id > coalesce(
        (SELECT stage_pk FROM tracker_cursors WHERE chain = $1 AND scope = $2), 0
    )
) AS is_waiting, {deferred.DUE.format(chain="$1", scope="$2", now="$3")} AS is_due
"""  # noqa: S608  a constant

UNTOLD = f"""(EXISTS (
    SELECT FROM movement_stages m WHERE m.chain = c.chain AND m.scope = j.id AND m.id > coalesce(
        (SELECT t.stage_pk FROM tracker_cursors t WHERE t.chain = c.chain AND t.scope = j.id), 0
    )
) OR {deferred.DUE.format(chain="c.chain", scope="j.id", now="$2")})"""  # noqa: S608  constants
"""The condition on a project ``j`` and a chain ``c``, at $2, that something on its simulated chain is not told yet."""


async def lock_cursor(conn: AsyncConnection, chain: str, scope: int) -> int:
    """Keep everybody else from telling of a chain until the transaction ends; return its newest block.

    Who tells of the past locks it, so that an end that is told of right afterwards finds what was told here. It gets
    another version: what somebody looked up before for the next one is looked up again.
    """
    if not (await conn.exec_driver_sql(_LOCK_ALWAYS, (chain, scope))).rowcount:
        await conn.exec_driver_sql(_BEGIN, (chain, scope))
        await conn.exec_driver_sql(_LOCK_ALWAYS, (chain, scope))
    return (await conn.exec_driver_sql(_HEAD, (chain, scope))).scalar_one()  # type: ignore[no-any-return]


class _Found(NamedTuple):
    """The stages that come next, and who hears of them."""

    rows: Sequence[AnyRow]
    findings: Findings


class Ahead:
    """Looks up what comes next while what was looked up before is written, so that both take the time of one.

    The lists are looked at after the stages were stored: whoever watched an address by then hears of it. It is taken at
    the version that follows. Where somebody has locked the cursor in between, as who begins to read the past does, the
    lists may have been others by then: it is given up.
    """

    def __init__(self, db: Database, chain: str, scope: int) -> None:
        self._db = db
        self._chain = chain
        self._scope = scope
        self._due: tuple[int, int] | None = None
        self._task: asyncio.Task[_Found] | None = None

    def begin(self, after: int, stages_max: int, version: int) -> None:
        """Look up the stages behind this one, for that version. Whoever calls this calls ``close`` in the end."""
        self._due, self._task = (after, version), asyncio.create_task(self._look_up(after, stages_max))

    async def take(self, after: int, version: int) -> _Found | None:
        """Return what was looked up for this version, if anything was. Raises what looking up raised."""
        if self._task is None or self._due != (after, version):
            await self.close()
            return None
        task, self._task = self._task, None
        try:
            return await task
        except BusyError:  # the connection that locked the cursor looks it up itself
            return None

    async def close(self) -> None:
        """Give up what nobody took."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _look_up(self, after: int, stages_max: int) -> _Found:
        async with self._db.autocommit() as conn:
            rows = await _stage_rows(conn, self._chain, self._scope, after, stages_max)
            return _Found(rows, await look_up(conn, self._chain, self._scope, _stages(rows)))


async def fan_out(  # noqa: PLR0913  each by name, but whose stages and who looks ahead
    conn: AsyncConnection,
    chain: str,
    scope: int,
    ahead: Ahead,
    *,
    settings: PlatformSettings,
    now: datetime,
    stages_max: int = STAGES_MAX,
) -> Told | None:
    """Tell trackers of the next stages of a chain, and move the cursor past them. None while somebody else does.

    Where more follow, ``ahead`` looks them up meanwhile. One stage alone that cannot be told is put aside, and the
    cursor moves past it.
    """
    locked: AnyRow | None = (await conn.exec_driver_sql(_LOCK, (chain, scope))).one_or_none()
    if locked is None:
        begun = await conn.exec_driver_sql(_BEGIN, (chain, scope))
        if not begun.rowcount:
            return None
    stage_pk, version = (0, 0) if locked is None else (locked.stage_pk, locked.version)
    found = await ahead.take(stage_pk, version)
    rows = found.rows if found else await _stage_rows(conn, chain, scope, stage_pk, stages_max)
    late = (
        await deferred.behind(conn, chain, scope, [row.id for row in rows])
        if locked is not None and locked.any_deferred
        else set()
    )
    tellable = [row for row in rows if row.id not in late]
    if len(rows) == 1 and tellable:
        told = await _tell_one(conn, chain, scope, rows[0], settings=settings, now=now, is_new=True)
        if told is None:
            late, told = {rows[0].id}, Told(stages=1, deliveries=0)
    else:
        findings = found.findings if found and not late else await look_up(conn, chain, scope, _stages(tellable))
        if tellable and (findings.done < len(tellable) or len(rows) == stages_max):
            last = _passed(rows, tellable, findings.done)[-1].id
            ahead.begin(last, _following(findings.done), version + 1)
        told = await queue(conn, chain, findings, settings=settings, now=now)
    passed = _passed(rows, tellable, told.stages)
    if late := late & {row.id for row in passed}:
        await deferred.defer(conn, sorted(late), now)
    if passed:
        moved = await conn.exec_driver_sql(_MOVE, (chain, scope, stage_pk, passed[-1].id))
        if moved.rowcount != 1:
            raise AssertionError("the cursor moved although it was locked")
    return Told(stages=len(passed), deliveries=told.deliveries)


def _passed(rows: Sequence[AnyRow], tellable: Sequence[AnyRow], told: int) -> Sequence[AnyRow]:
    """Return the rows that are dealt with: those that wait behind one that was put aside, too, as far as this comes."""
    return rows if told == len(tellable) else rows[: rows.index(tellable[told])]


def _following(told: int) -> int:
    """Return how many stages to look at after so many. Of addresses that many trackers watch, more would be in vain."""
    return min(STAGES_MAX, max(1, 2 * told))


async def _stage_rows(conn: AsyncConnection, chain: str, scope: int, after: int, stages_max: int) -> Sequence[AnyRow]:
    return (await conn.exec_driver_sql(_STAGES, (chain, scope, after, stages_max))).all()


async def tell_deferred(
    conn: AsyncConnection, chain: str, scope: int, *, settings: PlatformSettings, now: datetime
) -> Told | None:
    """Tell of the first stage that was put aside and is due again. None where none is, or somebody else tells."""
    if (await conn.exec_driver_sql(_LOCK, (chain, scope))).one_or_none() is None:
        return None
    row = await deferred.next_due(conn, chain, scope, now)
    if row is None:
        return None
    told = await _tell_one(conn, chain, scope, row, settings=settings, now=now)
    if told is None:
        await deferred.postpone(conn, row.id, row.attempts + 1, now)
        return Told(stages=1, deliveries=0)
    await deferred.done(conn, row.id)
    return told


def _stages(rows: Sequence[AnyRow]) -> Sequence[Stage]:
    return [Stage(row.movement_pk, row.stage, row.head, row.at) for row in rows]


async def _tell_one(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    chain: str,
    scope: int,
    row: AnyRow,
    *,
    settings: PlatformSettings,
    now: datetime,
    is_new: bool = False,
) -> Told | None:
    """Tell of one stage. None where it cannot be told; then nothing is written. Raises where a new one has no place."""
    try:
        async with conn.begin_nested():
            return await tell(conn, chain, scope, _stages([row]), settings=settings, now=now)
    except Exception as error:
        if is_gone(error) or (is_new and await deferred.is_full(conn, chain, scope)):
            raise
        log.exception("tracker_stage_deferred", chain=chain, scope=scope, stage=row.id, movement=row.movement_pk)
        return None


def is_gone(error: Exception) -> bool:
    """Whether the database is what failed, and not what was asked of it."""
    return isinstance(error, BusyError | OSError) or (isinstance(error, DBAPIError) and error.connection_invalidated)


class FanOut:
    """Tells trackers of what is stored, a transaction at a time, and has it delivered."""

    def __init__(self, db: Database, clock: Clock, hints: Hints) -> None:
        self._db = db
        self._clock = clock
        self._hints = hints
        self._platform = PlatformSettingsCache(db, clock)

    async def drain(self, chain: str, scope: int) -> int:
        """Tell of everything that is stored by now, and return how many deliveries were queued.

        Ends early where another process is at it. What was put aside is tried also where the stage at the cursor
        fails, so that it makes place: that stage is tried again by whoever calls next.
        """
        ahead = Ahead(self._db, chain, scope)
        try:
            return await self._drain(chain, scope, ahead)
        finally:
            await ahead.close()

    async def _drain(self, chain: str, scope: int, ahead: Ahead) -> int:
        deliveries, stages_max = 0, STAGES_FIRST
        failed: Exception | None = None
        while True:
            async with self._db.autocommit() as conn:
                row = (await conn.exec_driver_sql(_WAITING, (chain, scope, self._clock.now()))).one()
            is_waiting = row.is_waiting and failed is None
            if not is_waiting and not row.is_due:
                break
            settings, now = await self._platform.get(), self._clock.now()
            try:
                async with self._db.transaction() as conn:
                    if is_waiting:
                        told = await fan_out(
                            conn, chain, scope, ahead, settings=settings, now=now, stages_max=stages_max
                        )
                    else:
                        told = await tell_deferred(conn, chain, scope, settings=settings, now=now)
            except Exception as error:
                if not is_waiting or is_gone(error):
                    raise
                if stages_max == 1:
                    failed = error
                    continue
                stages_max //= 2
                log.warning("trackers_not_told", chain=chain, scope=scope, next_stages=stages_max, error=repr(error))
                continue
            if told is None:
                break
            deliveries += told.deliveries
            stages_max = _following(told.stages)
            if told.deliveries:
                await self._hints.publish("webhooks")
        if failed is not None:
            raise failed
        return deliveries
