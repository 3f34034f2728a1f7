"""What a job is, and reading jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
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


COLUMNS = ", ".join("id AS pk" if name == "pk" else name for name in Job.__struct_fields__)


def job_of(row: Row[Any]) -> Job:
    """Return the job in a row of ``COLUMNS``."""
    return Job(**row._mapping)  # noqa: SLF001  SQLAlchemy's public name for it


async def get(conn: AsyncConnection, job_id: str) -> Job:
    """Return a job. Raises NotFoundError."""
    row = (await conn.exec_driver_sql(f"SELECT {COLUMNS} FROM jobs WHERE job_id = $1", (job_id,))).one_or_none()  # noqa: S608  constants
    if row is None:
        raise NotFoundError("JOB_NOT_FOUND", f"There is no job {job_id}.")
    return job_of(row)


async def list_jobs(conn: AsyncConnection, *, state: str | None = None, limit: int = 50) -> Sequence[Job]:
    """Return the newest jobs, newest first."""
    statement = f"SELECT {COLUMNS} FROM jobs WHERE $1::text IS NULL OR state = $1 ORDER BY id DESC LIMIT $2"  # noqa: S608  constants
    return [job_of(row) for row in await conn.exec_driver_sql(statement, (state, limit))]


async def counts(conn: AsyncConnection) -> Mapping[tuple[str, str], int]:
    """Return how many jobs there are by kind and state."""
    rows = await conn.exec_driver_sql("SELECT kind, state, count(*) AS jobs FROM jobs GROUP BY kind, state")
    return {(row.kind, row.state): row.jobs for row in rows}


async def output(db: Database, job: Job) -> AsyncIterator[bytes]:
    """Yield the file that a job made, piece by piece."""
    number = 0
    while True:
        async with db.autocommit() as conn:
            found = await conn.exec_driver_sql(
                "SELECT content FROM job_outputs WHERE job_pk = $1 AND number = $2", (job.pk, number)
            )
            content: bytes | None = found.scalar_one_or_none()
        if content is None:
            return
        yield content
        number += 1
