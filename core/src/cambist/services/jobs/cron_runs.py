"""The moments at which recurring jobs run: each is claimed once, whoever starts it and how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.troubles import Said

log = structlog.get_logger(__name__)

ERROR_CHARS_MAX = 500


class CronRun(Struct, frozen=True, kw_only=True):
    """A claimed moment. ``attempts`` tells this claim from the earlier one of a worker that died."""

    name: str
    due_at: datetime
    attempts: int


# Moments come from workers' clocks and through Redis. By PostgreSQL's own clock none is more than a minute ahead:
# such a moment would make all others void until its time has come.
_AHEAD = "SELECT $1::timestamptz > now() + interval '1 minute'"
# A moment is void once a later one was claimed: what was missed while nobody ran is done once, not once per moment.
_CLAIM = """
INSERT INTO cron_runs AS run (name, due_at, worker, claimed_at, leased_until)
SELECT $1, $2, $3, $4, $5 WHERE $2 <= now() + interval '1 minute' AND NOT EXISTS (
    SELECT FROM cron_runs WHERE name = $1 AND due_at > $2 AND due_at <= now() + interval '1 minute'
)
ON CONFLICT (name, due_at) DO UPDATE
    SET worker = $3, claimed_at = $4, leased_until = $5, attempts = run.attempts + 1
    WHERE run.finished_at IS NULL AND run.leased_until <= $4
RETURNING attempts
"""
# Unless another worker took it over. Written down, as every recurring job asks for it each time.
_FINISH = """
UPDATE cron_runs SET finished_at = $4, error = $5, error_code = $6
WHERE name = $1 AND due_at = $2 AND attempts = $3 AND finished_at IS NULL
"""
_RELEASE = """
UPDATE cron_runs SET leased_until = $4 WHERE name = $1 AND due_at = $2 AND attempts = $3 AND finished_at IS NULL
"""
_SUCCEEDED = """
SELECT wanted.name, latest.finished_at FROM unnest($1::text[]) AS wanted (name) CROSS JOIN LATERAL (
    SELECT finished_at FROM cron_runs r WHERE r.name = wanted.name AND finished_at IS NOT NULL AND error IS NULL
    ORDER BY due_at DESC LIMIT 1
) AS latest
"""


async def claim(  # noqa: PLR0913  each by name
    conn: AsyncConnection, name: str, due_at: datetime, *, worker: str, now: datetime, leased_until: datetime
) -> CronRun | None:
    """Claim a moment; None where another worker has it or had it, a later one was claimed, or it lies ahead."""
    found = (await conn.exec_driver_sql(_CLAIM, (name, due_at, worker, now, leased_until))).one_or_none()
    if found is None and (await conn.exec_driver_sql(_AHEAD, (due_at,))).scalar_one():
        log.warning("cron_moment_ahead", cron=name, due_at=due_at.isoformat(), worker=worker)
    return None if found is None else CronRun(name=name, due_at=due_at, attempts=found.attempts)


async def finish(conn: AsyncConnection, run: CronRun, now: datetime, error: Said | None = None) -> None:
    """Record the end of a run, unless another worker took it over."""
    told = (None, None) if error is None else (error.words[:ERROR_CHARS_MAX], error.code)
    await conn.exec_driver_sql(_FINISH, (run.name, run.due_at, run.attempts, now, *told))


async def release(conn: AsyncConnection, run: CronRun, now: datetime) -> None:
    """Let another worker take over a run that did not come to its end."""
    await conn.exec_driver_sql(_RELEASE, (run.name, run.due_at, run.attempts, now))


async def last_successes(conn: AsyncConnection, names: Sequence[str]) -> Mapping[str, datetime]:
    """Return when each recurring job last ended well, in any worker."""
    return {row.name: row.finished_at for row in await conn.exec_driver_sql(_SUCCEEDED, (list(names),))}
