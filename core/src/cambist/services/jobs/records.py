"""What a job is, and reading jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.engine import Database
from cambist.db.structs import columns_of, to_struct
from cambist.services.errors import NotFoundError

TOPIC = "jobs"
"""Hint: a job was queued."""
STATES = ("queued", "running", "succeeded", "failed", "cancelled")


class Kind(StrEnum):
    """What can be asked for. Which function does it is in ``cambist_tasks.requested``."""

    RECONCILE = "reconcile"
    STATEMENT_EXPORT = "statement_export"


class Job(Struct, frozen=True, kw_only=True):
    """A job as its row says. ``progress`` is what the next slice goes on from; ``lease_token`` fences its writes."""

    pk: int
    job_id: str
    kind: str
    arguments: Mapping[str, Any]
    requested_by: str
    merchant_pk: int | None
    mode: str | None
    state: str
    attempts: int
    due_at: datetime
    worker: str | None
    lease_token: int
    progress: Mapping[str, Any]
    result: Mapping[str, Any] | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


COLUMNS = columns_of(Job, models.Job)


async def get(conn: AsyncConnection, job_id: str) -> Job:
    """Return a job. Raises NotFoundError."""
    row = (await conn.execute(select(*COLUMNS).where(models.Job.job_id == job_id))).one_or_none()
    if row is None:
        raise NotFoundError("JOB_NOT_FOUND", f"There is no job {job_id}.")
    return to_struct(Job, row)


async def list_jobs(conn: AsyncConnection, *, state: str | None = None, limit: int = 50) -> Sequence[Job]:
    """Return the newest jobs, newest first."""
    newest = select(*COLUMNS).order_by(models.Job.id.desc()).limit(limit)
    rows = await conn.execute(newest if state is None else newest.where(models.Job.state == state))
    return [to_struct(Job, row) for row in rows]


async def counts(conn: AsyncConnection) -> Mapping[tuple[str, str], int]:
    """Return how many jobs there are by kind and state."""
    kind, state = models.Job.kind, models.Job.state
    rows = await conn.execute(select(kind, state, func.count().label("jobs")).group_by(kind, state))
    return {(row.kind, row.state): row.jobs for row in rows}


async def output(db: Database, job: Job) -> AsyncIterator[bytes]:
    """Yield the file that a job made, piece by piece."""
    number = 0
    while True:
        async with db.autocommit() as conn:
            piece = models.JobOutput.job_pk == job.pk, models.JobOutput.number == number
            content = await conn.scalar(select(models.JobOutput.content).where(*piece))
        if content is None:
            return
        yield content
        number += 1
