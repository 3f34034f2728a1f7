"""Working jobs off: who holds a job's lease may write, and whoever lost it finds its writes refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from .records import COLUMNS, Job, job_of

ERROR_CHARS_MAX = 500

_IS_DUE = "(state = 'queued' AND due_at <= $1 OR state = 'running' AND leased_until <= $1)"
_DUE = f"SELECT id, job_id, lease_token FROM jobs WHERE {_IS_DUE} ORDER BY due_at, id LIMIT $2"  # noqa: S608  constants
# A lease that ran out is an attempt that failed: its worker may have died of the job.
_CLAIM = f"""
UPDATE jobs SET state = 'running', lease_token = lease_token + 1, leased_until = $3, worker = $4,
    attempts = attempts + (state = 'running')::int, started_at = coalesce(started_at, $1)
WHERE id = $2 AND {_IS_DUE} RETURNING {COLUMNS}
"""  # noqa: S608  constants
_HELD = "WHERE id = $1 AND lease_token = $2 AND state = 'running'"
_SAVE = f"UPDATE jobs SET progress = $3::jsonb, leased_until = $4, attempts = 0 {_HELD}"  # noqa: S608  constants
_YIELD = f"UPDATE jobs SET state = 'queued', leased_until = NULL, due_at = $3 {_HELD}"  # noqa: S608  constants
_RETRY_LATER = f"""
UPDATE jobs SET state = 'queued', leased_until = NULL, due_at = $3, error = $4, attempts = attempts + 1 {_HELD}
"""  # noqa: S608  constants
_SUCCEED = f"""
UPDATE jobs SET state = 'succeeded', leased_until = NULL, finished_at = $3, result = $4::jsonb, error = NULL {_HELD}
"""  # noqa: S608  constants
_FAIL = f"UPDATE jobs SET state = 'failed', leased_until = NULL, finished_at = $3, error = $4 {_HELD}"  # noqa: S608  constants


class LeaseLostError(Exception):
    """The job was cancelled, or another worker took it over. Nothing of the slice may be committed."""


class Due(Struct, frozen=True):
    """A job that can be claimed now."""

    id: int
    job_id: str
    lease_token: int


async def find_due(conn: AsyncConnection, now: datetime, limit: int) -> Sequence[Due]:
    """Return jobs that can be claimed."""
    rows = await conn.exec_driver_sql(_DUE, (now, limit))
    return [Due(id=row.id, job_id=row.job_id, lease_token=row.lease_token) for row in rows]


async def claim(conn: AsyncConnection, pk: int, *, worker: str, now: datetime, leased_until: datetime) -> Job | None:
    """Take the job's lease; None where it is not due or another worker holds it."""
    row = (await conn.exec_driver_sql(_CLAIM, (now, pk, leased_until, worker))).one_or_none()
    return None if row is None else job_of(row)


async def save(conn: AsyncConnection, job: Job, progress: Mapping[str, Any], leased_until: datetime) -> None:
    """Keep the progress and prolong the lease. The row stays locked until the transaction ends.

    So what else the transaction writes is committed under the lease, or not at all. Raises LeaseLostError.
    """
    await _held(conn, _SAVE, job, _json(progress), leased_until)


async def release(conn: AsyncConnection, job: Job, now: datetime) -> None:
    """Give the lease up before the job has ended: it can be claimed at once. Raises LeaseLostError."""
    await _held(conn, _YIELD, job, now)


async def succeed(conn: AsyncConnection, job: Job, result: Mapping[str, Any], now: datetime) -> None:
    """End the job with its result. Raises LeaseLostError."""
    await _held(conn, _SUCCEED, job, now, _json(result))


async def fail(conn: AsyncConnection, job: Job, error: str, now: datetime) -> None:
    """End the job without a result. Raises LeaseLostError."""
    await _held(conn, _FAIL, job, now, error[:ERROR_CHARS_MAX])


async def retry_later(conn: AsyncConnection, job: Job, error: str, due_at: datetime) -> None:
    """Count a failed attempt, and give the lease up until ``due_at``. Raises LeaseLostError."""
    await _held(conn, _RETRY_LATER, job, due_at, error[:ERROR_CHARS_MAX])


async def _held(conn: AsyncConnection, statement: str, job: Job, *values: object) -> None:
    changed = await conn.exec_driver_sql(statement, (job.pk, job.lease_token, *values))
    if not changed.rowcount:
        raise LeaseLostError(job.job_id)


def _json(value: Mapping[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
