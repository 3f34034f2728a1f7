"""Long work that somebody asked for, and what recurs, as operators see and steer it."""

from __future__ import annotations

import gzip
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.response import Stream
from msgspec import Meta, Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.troubles import Trouble
from cambist.services.audit.entries import Action
from cambist.services.errors import ConflictError
from cambist.services.identity.merchants import find_pk
from cambist.services.jobs import recurring, requests
from cambist.services.jobs.recurring import RecurringJob
from cambist.services.jobs.requests import Job, Kind, NewJob
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.paging import check_period, parse_moment
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.once import Once
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body, CursorPageAnswer

State = Literal["queued", "running", "succeeded", "failed", "cancelled"]
StateFilter = Annotated[State | None, QueryParameter(name="state")]
KindFilter = Annotated[Kind | None, QueryParameter()]
Moment = Annotated[str, Meta(min_length=1, max_length=40)]
Facts = Annotated[Mapping[str, Any], Meta(description="As the job keeps it: each kind has its own.")]


class JobView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A requested job. `progress` is what it goes on from, `result` is there once it has succeeded.

    `error` says why it failed, or what is in its way, `errorCode` the same for programs. `durationMs` counts from its
    first start, waits included.
    """

    job_id: str
    kind: Kind
    state: State
    requested_by: str
    arguments: Facts
    progress: Facts
    result: Facts | None
    error: str | None
    error_code: Trouble | None
    attempts: int
    worker: str | None
    mode: str | None
    due_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    duration_ms: int | None


class JobAnswer(Answer, frozen=True, kw_only=True):
    """One job."""

    job: JobView


class JobList(CursorPageAnswer, frozen=True, kw_only=True):
    """A page of jobs."""

    jobs: Sequence[JobView]


class RecurringList(Answer, frozen=True, kw_only=True):
    """Every recurring job, by name."""

    recurring: Sequence[RecurringJob]


class AskStatement(Body, frozen=True, kw_only=True):
    """Which statement to make as a file: of a merchant, in a mode, from `since`, included, to `until`, not included."""

    kind: Literal["statement_export"]
    merchant_id: Annotated[str, Meta(min_length=1, max_length=64)]
    mode: Literal["live", "sandbox"] = "live"
    since: Moment | None = None
    until: Moment | None = None


def job_view(job: Job, now: datetime) -> JobView:
    ran = None if job.started_at is None else (job.finished_at or now) - job.started_at
    return JobView(
        job_id=job.job_id,
        kind=Kind(job.kind),
        state=msgspec.convert(job.state, State),
        requested_by=job.requested_by,
        arguments=job.arguments,
        progress=job.progress,
        result=job.result,
        error=job.error,
        error_code=msgspec.convert(job.error_code, Trouble | None),
        attempts=job.attempts,
        worker=job.worker,
        mode=job.mode,
        due_at=job.due_at,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        duration_ms=None if ran is None else max(0, int(ran.total_seconds() * 1000)),
    )


async def ask_for(conn: AsyncConnection, web: Web, audit: Audit, new: NewJob) -> Job:
    """Queue a job, or find the unfinished one that does the same. After the commit, publish the hint ``jobs``."""
    job = await requests.request(conn, web.ids, new, web.clock.now())
    await audit.record(conn, Action.JOB_ASKED, subject=job.job_id, kind=job.kind, state=job.state)
    return job


def asked_by(audit: Audit) -> str:
    """Return who asks for a job: the operator in person, or the admin key."""
    return audit.origin.actor or "operator"


class Jobs(Controller):
    tags = ("Operator",)

    @get("/", summary="List jobs", opt=permits("jobs.read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        in_state: StateFilter = None,
        kind: KindFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[JobList]:
        """Return the jobs that somebody asked for, with progress, result or error."""

        async def found(conn: AsyncConnection, part: Part) -> Listed[JobView]:
            jobs = await requests.list_jobs(conn, part, state=in_state, kind=kind, period=period)
            return jobs.shown_as(partial(job_view, now=web.clock.now()))

        query = asked.of(web, "jobs", "operator", sort=sort, filters=(in_state, kind, period))
        return await query.answer(JobList, found)

    @get("/recurring", summary="List recurring jobs", opt=permits("jobs.read"))
    async def recurring(self, web: NamedDependency[Web]) -> RecurringList:
        """Return what recurs, each with its latest run, and when one last ended well."""
        async with web.db.autocommit() as conn:
            return RecurringList(recurring=await recurring.list_recurring(conn))

    @post("/", status_code=201, summary="Ask for a statement as a file", opt=permits("jobs.change"))
    async def ask(
        self,
        data: JSONBody[AskStatement],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> JobAnswer:
        """Have a worker make a merchant's statement. While the same is being made, the answer is that job."""
        since, until = parse_moment("since", data.since), parse_moment("until", data.until)
        check_period(since, until, ("since", "until"))
        moments = {"since": since, "until": until}
        arguments = {name: moment.isoformat() for name, moment in moments.items() if moment is not None}
        unique_key = requests.statement_key(data.merchant_id, data.mode, arguments)
        async with web.db.transaction() as conn:
            await once.take(conn)
            new = NewJob(
                kind=Kind.STATEMENT_EXPORT,
                arguments=arguments | {"merchant_id": data.merchant_id},
                requested_by=asked_by(audit),
                unique_key=unique_key,
                merchant_pk=await find_pk(conn, data.merchant_id),
                mode=data.mode,
            )
            job = await ask_for(conn, web, audit, new)
            answer = await once.keep(conn, JobAnswer(job=job_view(job, web.clock.now())))
        await web.gateway.hints.publish(requests.TOPIC)
        return answer

    @get("/{job_id:str}", summary="Read a job", opt=permits("jobs.read"))
    async def read(self, job_id: FromPath[str], web: NamedDependency[Web]) -> JobAnswer:
        """Return one job."""
        async with web.db.autocommit() as conn:
            return JobAnswer(job=job_view(await requests.get(conn, job_id), web.clock.now()))

    @get("/{job_id:str}/output", summary="Fetch a job's file", media_type="text/csv", opt=permits("jobs.read"))
    async def output(self, job_id: FromPath[str], web: NamedDependency[Web]) -> Stream:
        """Return the file that a statement's job has made. 409 before it has succeeded, and for other kinds."""
        async with web.db.autocommit() as conn:
            job = await requests.get(conn, job_id)
        if job.kind != Kind.STATEMENT_EXPORT or job.state != "succeeded":
            raise ConflictError("JOB_WITHOUT_FILE", f"This job is a {job.kind} that is {job.state}: there is no file.")
        return Stream(
            _pieces(web, job),
            media_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{job.job_id}.csv"'},
        )

    @post("/{job_id:str}/retry", status_code=200, summary="Retry a job", opt=permits("jobs.change"))
    async def retry(self, job_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]) -> JobAnswer:
        """Queue a job again that failed or was cancelled. It goes on from where it was; a comparison begins anew."""
        async with web.db.transaction() as conn:
            job = await requests.retry(conn, job_id, web.clock.now())
            await audit.record(conn, Action.JOB_CHANGED, subject=job.job_id, kind=job.kind, state=job.state)
        await web.gateway.hints.publish(requests.TOPIC)
        return JobAnswer(job=job_view(job, web.clock.now()))

    @post("/{job_id:str}/cancel", status_code=200, summary="Cancel a job", opt=permits("jobs.change"))
    async def cancel(
        self, job_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> JobAnswer:
        """Cancel a job that has not ended. What its worker does now is not kept."""
        async with web.db.transaction() as conn:
            job = await requests.cancel(conn, job_id, web.clock.now())
            await audit.record(conn, Action.JOB_CHANGED, subject=job.job_id, kind=job.kind, state=job.state)
        return JobAnswer(job=job_view(job, web.clock.now()))


async def _pieces(web: Web, job: Job) -> AsyncGenerator[bytes, None]:
    async for piece in requests.output(web.db, job):
        yield gzip.decompress(piece)


controllers = [admin_routes("/api/admin/jobs", Jobs)]
