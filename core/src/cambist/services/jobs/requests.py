"""Jobs that somebody asked for: what they are, asking for one, cancelling it, trying it again, and reading them.

After the commit, publish the hint ``jobs``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import case, func, literal, select, text, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.engine import Database
from cambist.db.structs import columns_of, to_struct
from cambist.ports import Ids
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.listing import ALWAYS, Listed, ListOf, Part, Period, read_list

TOPIC = "jobs"
"""Hint: a job was queued."""
STATES = ("queued", "running", "succeeded", "failed", "cancelled")


class Kind(StrEnum):
    """What can be asked for. Which function does it is in ``cambist_tasks.requested``."""

    AUDIT_VERIFICATION = "audit_verification"
    RECONCILE = "reconcile"
    RESCAN = "rescan"
    STATEMENT_EXPORT = "statement_export"
    TRACKER_HISTORY = "tracker_history"
    WEBHOOK_REDELIVERY = "webhook_redelivery"


COMPARISONS = (Kind.RECONCILE, Kind.AUDIT_VERIFICATION)
"""What compares things as they are now: what was compared long ago says nothing about them."""


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
    error_code: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


COLUMNS = columns_of(Job, models.Job)


class NewJob(Struct, frozen=True, kw_only=True):
    """What is asked for. ``unique_key`` names the work: while one is unfinished, asking again returns that one."""

    kind: Kind
    arguments: Mapping[str, Any]
    requested_by: str
    unique_key: str | None = None
    merchant_pk: int | None = None
    mode: str | None = None


def statement_key(merchant_id: str, mode: str, arguments: Mapping[str, Any]) -> str:
    """Return the ``unique_key`` of a statement as a file."""
    return " ".join([merchant_id, mode, *(f"{name}={value}" for name, value in arguments.items())])


# As text: the index is for unfinished jobs, which PostgreSQL must see before it knows any values.
_IS_UNFINISHED = text("state IN ('queued', 'running')")


async def request(conn: AsyncConnection, ids: Ids, new: NewJob, now: datetime) -> Job:
    """Queue a job, or return the unfinished one of the same ``unique_key``."""
    same_work = [models.Job.kind, models.Job.unique_key]
    row = insert(models.Job).values(**asdict(new), job_id=ids.new("job"), due_at=now, created_at=now)
    queue = row.on_conflict_do_nothing(index_elements=same_work, index_where=_IS_UNFINISHED).returning(*COLUMNS)
    unfinished = select(*COLUMNS).where(
        models.Job.kind == new.kind, models.Job.unique_key == new.unique_key, _IS_UNFINISHED
    )
    while True:
        # It may end between the two statements; then there is room for a new one.
        for statement in (queue, unfinished):
            found = (await conn.execute(statement)).one_or_none()
            if found is not None:
                return to_struct(Job, found)


# Over a job that was cancelled the operator decides, with 'retry'; one that failed gets some time.
_AGAIN = """
WITH last AS (
    SELECT id, state, finished_at FROM jobs WHERE kind = $1 AND unique_key = $2 ORDER BY id DESC LIMIT 1
), hurried AS (
    UPDATE jobs SET due_at = $3 FROM last WHERE jobs.id = last.id AND jobs.state = 'queued' AND jobs.due_at > $3
)
SELECT coalesce(
    (SELECT state = 'succeeded' OR (state = 'failed' AND finished_at < $3 - interval '10 minutes') FROM last), true
)
"""


async def request_again(conn: AsyncConnection, ids: Ids, new: NewJob, now: datetime) -> None:
    """Queue work that goes on and on, unless it is queued: then it is due at once. Not if it was cancelled last."""
    if (await conn.exec_driver_sql(_AGAIN, (new.kind, new.unique_key, now))).scalar_one():
        await request(conn, ids, new, now)


async def cancel(conn: AsyncConnection, job_id: str, now: datetime) -> Job:
    """Cancel a job that has not ended; a slice that runs loses its lease. Raises NotFoundError and ConflictError."""
    cancelled = update(models.Job).where(models.Job.job_id == job_id, _IS_UNFINISHED)
    changed = await conn.execute(cancelled.values(state="cancelled", leased_until=None, finished_at=now))
    job = await get(conn, job_id)
    if not changed.rowcount and job.state != "cancelled":
        raise ConflictError("JOB_ENDED", f"The job has {job.state} already.")
    return job


async def retry(conn: AsyncConnection, job_id: str, now: datetime) -> Job:
    """Queue a failed or cancelled job again; it goes on from where it was, but a comparison begins anew.

    Raises NotFoundError and ConflictError.
    """
    again = {"state": "queued", "attempts": 0, "error": None, "error_code": None, "finished_at": None, "due_at": now}
    progress = case(
        (models.Job.kind.in_([str(kind) for kind in COMPARISONS]), literal({}, JSONB)), else_=models.Job.progress
    )
    ended = models.Job.job_id == job_id, models.Job.state.in_(("failed", "cancelled"))
    try:
        async with conn.begin_nested():
            changed = await conn.execute(update(models.Job).where(*ended).values(again | {"progress": progress}))
    except IntegrityError:
        raise ConflictError("JOB_REPEATED", "The same work was asked for again meanwhile.") from None
    job = await get(conn, job_id)
    if not changed.rowcount:
        raise ConflictError("JOB_NOT_FAILED", f"The job is {job.state}; only failed and cancelled ones are retried.")
    return job


async def get(conn: AsyncConnection, job_id: str) -> Job:
    """Return a job. Raises NotFoundError."""
    row = (await conn.execute(select(*COLUMNS).where(models.Job.job_id == job_id))).one_or_none()
    if row is None:
        raise NotFoundError("JOB_NOT_FOUND", f"There is no job {job_id}.")
    return to_struct(Job, row)


_LIST = ListOf(models.Job.id, models.Job.created_at)
_NEWEST = Part(limit=50)


async def list_jobs(
    conn: AsyncConnection,
    part: Part = _NEWEST,
    *,
    state: str | None = None,
    kind: str | None = None,
    period: Period = ALWAYS,
) -> Listed[Job]:
    """Return one part of the jobs."""
    filters = {models.Job.state: state, models.Job.kind: kind}
    listed, show = select(*COLUMNS), partial(to_struct, Job)
    return await read_list(conn, listed, show, _LIST, part, filters=filters, period=period)


# As text, like what is unfinished.
_HAS_SUCCEEDED = text("state = 'succeeded'")


async def last_succeeded(conn: AsyncConnection, kind: Kind) -> Job | None:
    """Return the job of a kind that succeeded last, however long ago it was asked for, or None where none is kept."""
    wanted = select(*COLUMNS).where(models.Job.kind == str(kind), _HAS_SUCCEEDED)
    row = (
        await conn.execute(wanted.order_by(models.Job.finished_at.desc(), models.Job.id.desc()).limit(1))
    ).one_or_none()
    return None if row is None else to_struct(Job, row)


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
