"""Asking for a job, cancelling one, and trying one again. After the commit, publish the hint ``jobs``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.ports import Ids
from cambist.services.errors import ConflictError

from .records import COLUMNS, Job, Kind, get, job_of


class NewJob(Struct, frozen=True, kw_only=True):
    """What is asked for. ``unique_key`` names the work: while one is unfinished, asking again returns that one."""

    kind: Kind
    arguments: Mapping[str, Any]
    requested_by: str
    unique_key: str | None = None
    merchant_pk: int | None = None
    mode: str | None = None


_INSERT = f"""
INSERT INTO jobs (job_id, kind, arguments, requested_by, unique_key, merchant_pk, mode, due_at, created_at)
VALUES ($1, $2, $3::jsonb, $4, $5, $6, $7, $8, $8)
ON CONFLICT (kind, unique_key) WHERE state IN ('queued', 'running') DO NOTHING
RETURNING {COLUMNS}
"""  # noqa: S608  constants
_UNFINISHED = f"""
SELECT {COLUMNS} FROM jobs WHERE kind = $1 AND unique_key = $2 AND state IN ('queued', 'running')
"""  # noqa: S608  constants
_CANCEL = (
    "UPDATE jobs SET state = 'cancelled', leased_until = NULL, finished_at = $2"
    " WHERE job_id = $1 AND state IN ('queued', 'running')"
)
# A reconcile begins anew: what it compared before says nothing about now.
_RETRY = """
UPDATE jobs SET state = 'queued', attempts = 0, error = NULL, finished_at = NULL, due_at = $2,
    progress = CASE WHEN kind = 'reconcile' THEN '{}' ELSE progress END
WHERE job_id = $1 AND state IN ('failed', 'cancelled')
"""


async def request(conn: AsyncConnection, ids: Ids, new: NewJob, now: datetime) -> Job:
    """Queue a job, or return the unfinished one of the same ``unique_key``."""
    values = (
        ids.new("job"),
        new.kind,
        msgspec.json.encode(new.arguments).decode(),
        new.requested_by,
        new.unique_key,
        new.merchant_pk,
        new.mode,
        now,
    )
    while True:
        row = (await conn.exec_driver_sql(_INSERT, values)).one_or_none()
        if row is None:
            # It may end between the two statements; then there is room for a new one.
            row = (await conn.exec_driver_sql(_UNFINISHED, (new.kind, new.unique_key))).one_or_none()
        if row is not None:
            return job_of(row)


async def cancel(conn: AsyncConnection, job_id: str, now: datetime) -> Job:
    """Cancel a job that has not ended; a slice that runs loses its lease. Raises NotFoundError and ConflictError."""
    changed = await conn.exec_driver_sql(_CANCEL, (job_id, now))
    job = await get(conn, job_id)
    if not changed.rowcount and job.state != "cancelled":
        raise ConflictError("JOB_ENDED", f"The job has {job.state} already.")
    return job


async def retry(conn: AsyncConnection, job_id: str, now: datetime) -> Job:
    """Queue a failed or cancelled job again; it goes on from where it was, but a reconcile begins anew.

    Raises NotFoundError and ConflictError.
    """
    try:
        async with conn.begin_nested():
            changed = await conn.exec_driver_sql(_RETRY, (job_id, now))
    except IntegrityError:
        raise ConflictError("JOB_REPEATED", "The same work was asked for again meanwhile.") from None
    job = await get(conn, job_id)
    if not changed.rowcount:
        raise ConflictError("JOB_NOT_FAILED", f"The job is {job.state}; only failed and cancelled ones are retried.")
    return job
