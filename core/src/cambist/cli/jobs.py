"""``cambist jobs``: long work that was asked for, and how far it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import click
import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.bootstrap import open_redis
from cambist.db.engine import Database
from cambist.hints import Hints
from cambist.ports import SystemClock, system_ids
from cambist.services.audit.entries import Action, record
from cambist.services.errors import ConflictError
from cambist.services.identity.merchants import find_pk
from cambist.services.jobs import requests
from cambist.services.jobs.progress import progress_of
from cambist.services.jobs.requests import STATES, Job, Kind, NewJob
from cambist.services.listing import Part
from cambist.services.paging import parse_moment
from cambist.services.recovery.restore.files import replacing
from cambist.settings import Settings

from .opened import answer, check_live, opened_database, opened_registry, person
from .options import Invocation, settings_options

LISTED_MAX = 50


@click.group(invoke_without_command=True)
@settings_options
@click.option("--state", type=click.Choice(STATES), help="List jobs in this state alone.")
def jobs(invocation: Invocation, state: str | None) -> None:
    """List the newest jobs."""
    if click.get_current_context().invoked_subcommand is None:

        async def listed(database: Database) -> Sequence[str]:
            async with database.autocommit() as conn:
                found = await requests.list_jobs(conn, Part(limit=LISTED_MAX), state=state)
            return [_line(job) for job in found.items] or ["There are no jobs."]

        _answer(invocation, listed)


@jobs.command()
@settings_options
@click.option("--chain", help="Compare this chain alone.")
def reconcile(invocation: Invocation, chain: str | None) -> None:
    """Ask a worker to compare the ledger with the chains. While it is asked for already, show that job."""
    new = NewJob(
        kind=Kind.RECONCILE,
        arguments={} if chain is None else {"chains": [chain]},
        requested_by="operator",
        unique_key=chain or "all",
    )

    async def asked(conn: AsyncConnection) -> Job:
        if chain is not None:
            check_live(opened_registry(invocation.settings()), chain)
        return await _request(conn, new)

    _change(invocation, asked, queues=True)


@jobs.command()
@settings_options
@click.argument("merchant_id", metavar="MERCHANT")
@click.option("--mode", type=click.Choice(["live", "sandbox"]), default="live", show_default=True)
@click.option("--from", "since", help="A date or time; included.")
@click.option("--to", "until", help="A date or time; not included.")
def statement(invocation: Invocation, merchant_id: str, mode: str, since: str | None, until: str | None) -> None:
    """Ask a worker for MERCHANT's statement as a compressed file. 'cambist jobs show ID --output FILE' fetches it."""

    async def asked(conn: AsyncConnection) -> Job:
        moments = {"since": parse_moment("from", since), "until": parse_moment("to", until)}
        arguments = {name: moment.isoformat() for name, moment in moments.items() if moment is not None}
        new = NewJob(
            kind=Kind.STATEMENT_EXPORT,
            arguments=arguments | {"merchant_id": merchant_id},
            requested_by="operator",
            unique_key=requests.statement_key(merchant_id, mode, arguments),
            merchant_pk=await find_pk(conn, merchant_id),
            mode=mode,
        )
        return await _request(conn, new)

    _change(invocation, asked, queues=True)


@jobs.command()
@settings_options
@click.argument("job_id", metavar="ID")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the file that it made here, once it has succeeded.",
)
def show(invocation: Invocation, job_id: str, output: Path | None) -> None:
    """Show all that is known of a job, as JSON."""

    async def shown(database: Database) -> Sequence[str]:
        async with database.autocommit() as conn:
            job = await requests.get(conn, job_id)
        if output is not None:
            if job.state != "succeeded":
                raise ConflictError(
                    "JOB_NOT_SUCCEEDED", f"The job is {job.state}; there is no file before it succeeded."
                )
            await _write_out(output, requests.output(database, job))
        facts = {name: value for name, value in msgspec.to_builtins(job).items() if name not in {"pk", "merchant_pk"}}
        return [msgspec.json.format(msgspec.json.encode(facts), indent=2).decode()]

    _answer(invocation, shown)


async def _write_out(path: Path, pieces: AsyncIterator[bytes]) -> None:
    """Write a job's file, in the place of what was there once all of it is written, where that is a file.

    Raises ClickException where it cannot be, and what reading the pieces raises.
    """
    opened, what = (_elsewhere, "is not whole") if _leads_elsewhere(path) else (replacing, "cannot be written")
    with ExitStack() as stack:
        with _refusing(path, "cannot be written"):
            stream = stack.enter_context(opened(path))
        async for piece in pieces:
            with _refusing(path, what):
                stream.write(piece)
                stream.flush()
        with _refusing(path, what):
            stack.close()


def _leads_elsewhere(path: Path) -> bool:
    """Whether what is written there goes on to somebody else, as with a pipe, or to another file, as with a link."""
    return path.is_symlink() or (path.exists() and not path.is_file())


@contextmanager
def _elsewhere(path: Path) -> Iterator[IO[bytes]]:
    stream = path.open("wb")
    try:
        yield stream
    finally:
        # What was flushed is there. What was not, it would try to write once more.
        with suppress(OSError):
            stream.close()


@contextmanager
def _refusing(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"{path} {what}: {error.strerror}.") from error


@jobs.command()
@settings_options
@click.argument("job_id", metavar="ID")
def retry(invocation: Invocation, job_id: str) -> None:
    """Queue a job again that has failed or was cancelled. It goes on from where it was; a comparison begins anew."""

    async def retried(conn: AsyncConnection) -> Job:
        job = await requests.retry(conn, job_id, SystemClock().now())
        await _record(conn, Action.JOB_CHANGED, job)
        return job

    _change(invocation, retried, queues=True)


@jobs.command()
@settings_options
@click.argument("job_id", metavar="ID")
def cancel(invocation: Invocation, job_id: str) -> None:
    """Cancel a job that has not ended. What its worker does now is not kept."""

    async def cancelled(conn: AsyncConnection) -> Job:
        job = await requests.cancel(conn, job_id, SystemClock().now())
        await _record(conn, Action.JOB_CHANGED, job)
        return job

    _change(invocation, cancelled)


async def _request(conn: AsyncConnection, new: NewJob) -> Job:
    job = await requests.request(conn, system_ids(), new, SystemClock().now())
    await _record(conn, Action.JOB_ASKED, job)
    return job


async def _record(conn: AsyncConnection, action: Action, job: Job) -> None:
    told = {"kind": job.kind, "state": job.state}
    await record(conn, person(), action, SystemClock().now(), subject=job.job_id, details=told, line=False)


def _line(job: Job) -> str:
    error = f": {job.error}" if job.error else ""
    done = progress_of(job)
    about = f"{job.kind}  {done}" if done else job.kind
    return f"{job.job_id}  {job.created_at:%Y-%m-%d %H:%M}  {about}  {job.state}  by {job.requested_by}{error}"


def _change(invocation: Invocation, work: Callable[[AsyncConnection], Awaitable[Job]], *, queues: bool = False) -> None:
    """Do the work in a transaction, and show the job as it is then."""

    async def changed(database: Database) -> Sequence[str]:
        async with database.transaction() as conn:
            return [_line(await work(conn))]

    _answer(invocation, changed, queues=queues)


def _answer(
    invocation: Invocation, work: Callable[[Database], Awaitable[Sequence[str]]], *, queues: bool = False
) -> None:
    async def done(settings: Settings) -> Sequence[str]:
        why = "'cambist jobs' reads the jobs of a gateway that runs."
        async with opened_database(settings, "jobs", why) as database:
            lines = await work(database)
        if queues:
            await _wake_workers(settings)
        return lines

    answer(done(invocation.settings()))


async def _wake_workers(settings: Settings) -> None:
    """Have workers look at once; without Redis they look within seconds."""
    if settings.redis.url is None:
        return
    async with open_redis(settings.redis.url) as redis:
        await Hints(redis).publish(requests.TOPIC)
