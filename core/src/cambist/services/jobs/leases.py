"""Working jobs off: who holds a job's lease may write, and whoever lost it finds its writes refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, and_, case, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import columns_of, to_struct
from cambist.domain.troubles import Said

from .requests import COLUMNS, Job

ERROR_CHARS_MAX = 500


class LeaseLostError(Exception):
    """The job was cancelled, or another worker took it over. Nothing of the slice may be committed."""


class Due(Struct, frozen=True):
    """A job that can be claimed now."""

    pk: int
    job_id: str
    lease_token: int


async def find_due(conn: AsyncConnection, now: datetime, limit: int) -> Sequence[Due]:
    due = select(*columns_of(Due, models.Job)).where(_is_due(now)).order_by(models.Job.due_at, models.Job.id)
    return [to_struct(Due, row) for row in await conn.execute(due.limit(limit))]


def _is_due(now: datetime) -> ColumnElement[bool]:
    job = models.Job
    return or_(and_(job.state == "queued", job.due_at <= now), and_(job.state == "running", job.leased_until <= now))


async def claim(conn: AsyncConnection, pk: int, *, worker: str, now: datetime, leased_until: datetime) -> Job | None:
    """Take the job's lease; None where it is not due or another worker holds it."""
    job = models.Job
    claimed = await conn.execute(
        update(job)
        .where(job.id == pk, _is_due(now))
        .values(
            state="running",
            lease_token=job.lease_token + 1,
            leased_until=leased_until,
            worker=worker,
            # A lease that ran out is an attempt that failed: its worker may have died of the job.
            attempts=job.attempts + case((job.state == "running", 1), else_=0),
            started_at=func.coalesce(job.started_at, now),
        )
        .returning(*COLUMNS)
    )
    row = claimed.one_or_none()
    return None if row is None else to_struct(Job, row)


async def save(conn: AsyncConnection, job: Job, progress: Mapping[str, Any], leased_until: datetime) -> None:
    """Keep the progress and prolong the lease. The row stays locked until the transaction ends.

    So what else the transaction writes is committed under the lease, or not at all. Raises LeaseLostError.
    """
    await _change(conn, job, progress=progress, leased_until=leased_until, attempts=0)


async def release(conn: AsyncConnection, job: Job, due_at: datetime, error: Said | None = None) -> None:
    """Give the lease up before the job has ended: it can be claimed from ``due_at`` on. Raises LeaseLostError."""
    later = {"state": "queued", "leased_until": None, "due_at": due_at}
    await _change(conn, job, **later, **_told(error))


async def succeed(conn: AsyncConnection, job: Job, result: Mapping[str, Any], now: datetime) -> None:
    """End the job with its result. Raises LeaseLostError."""
    ended = {"state": "succeeded", "leased_until": None, "finished_at": now}
    await _change(conn, job, **ended, result=result, **_told(None))


async def fail(conn: AsyncConnection, job: Job, error: Said, now: datetime) -> None:
    """End the job without a result. Raises LeaseLostError."""
    ended = {"state": "failed", "leased_until": None, "finished_at": now}
    await _change(conn, job, **ended, **_told(error))


async def retry_later(conn: AsyncConnection, job: Job, error: Said, due_at: datetime) -> None:
    """Count a failed attempt, and give the lease up until ``due_at``. Raises LeaseLostError."""
    later = {"state": "queued", "leased_until": None, "due_at": due_at}
    await _change(conn, job, **later, **_told(error), attempts=models.Job.attempts + 1)


def _told(error: Said | None) -> Mapping[str, str | None]:
    if error is None:
        return {"error": None, "error_code": None}
    return {"error": error.words[:ERROR_CHARS_MAX], "error_code": error.code}


async def _change(conn: AsyncConnection, job: Job, **columns: object) -> None:
    held = models.Job.id == job.pk, models.Job.lease_token == job.lease_token, models.Job.state == "running"
    changed = await conn.execute(update(models.Job).where(*held).values(columns))
    if not changed.rowcount:
        raise LeaseLostError(job.job_id)
