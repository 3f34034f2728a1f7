"""What became of recurring jobs, for operators: the latest run of each, and when it last ended well."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.troubles import Trouble


class RecurringJob(Struct, frozen=True, kw_only=True, rename="camel"):
    """A recurring job by its latest run. `lastSuccessAt` is when one last ended well.

    `error` is the latest run's, `errorCode` the same for programs. `durationMs` is null while it runs.
    """

    name: str
    due_at: datetime
    finished_at: datetime | None
    duration_ms: int | None
    attempts: int
    worker: str
    error: str | None
    error_code: Trouble | None
    last_success_at: datetime | None


# Each name once, from the primary key: there are few, with thousands of runs each.
_RECURRING = """
WITH RECURSIVE names AS (
    (SELECT name FROM cron_runs ORDER BY name LIMIT 1)
    UNION ALL
    SELECT (SELECT r.name FROM cron_runs r WHERE r.name > names.name ORDER BY r.name LIMIT 1)
    FROM names WHERE names.name IS NOT NULL
)
SELECT names.name, run.due_at, run.finished_at, run.attempts, run.worker, run.error, run.error_code,
    (extract(epoch FROM run.finished_at - run.claimed_at) * 1000)::bigint AS duration_ms,
    success.finished_at AS last_success_at
FROM names
CROSS JOIN LATERAL (SELECT * FROM cron_runs r WHERE r.name = names.name ORDER BY r.due_at DESC LIMIT 1) AS run
LEFT JOIN LATERAL (
    SELECT finished_at FROM cron_runs r WHERE r.name = names.name AND r.finished_at IS NOT NULL AND r.error IS NULL
    ORDER BY r.due_at DESC LIMIT 1
) AS success ON true
WHERE names.name IS NOT NULL ORDER BY names.name
"""


async def list_recurring(conn: AsyncConnection) -> Sequence[RecurringJob]:
    """Return every recurring job that has run, by name."""
    rows = await conn.exec_driver_sql(_RECURRING)
    return [
        RecurringJob(**row._asdict() | {"error_code": msgspec.convert(row.error_code, Trouble | None)}) for row in rows
    ]
