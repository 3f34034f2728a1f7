"""Jobs that somebody asked for: worked off in slices, under a lease that fences what a slice writes.

Redis carries a job's row id. Whoever gets it takes the lease in PostgreSQL, or finds that another worker holds it; so
queueing a job twice, or again after Redis forgot it, does its work once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, TypeAlias

import structlog
from arq.connections import ArqRedis
from msgspec import Struct

from cambist.bootstrap import Gateway
from cambist.domain.troubles import Said, Trouble, raised, say
from cambist.services.errors import ServiceError
from cambist.services.jobs import leases, requests
from cambist.services.jobs.leases import LeaseLostError
from cambist.services.jobs.requests import Job, Kind

from .job_lease import LaterError, Lease, lease_end
from .jobs.audit import verify_audit_log
from .jobs.reconcile import reconcile
from .jobs.rescan import rescan
from .jobs.statements import export_statement
from .jobs.tracker_history import read_history
from .jobs.webhooks import redeliver
from .run_counts import RunCounts

log = structlog.get_logger(__name__)

RUNNER = "job_runner"
"""Where the runner is in arq's context."""
ARQ_TIMEOUT_S = 58
RUN_S = 50.0
"""How long one run of a job may take; a slice that might take longer is left to the next run."""
RUNNING_MAX = 4
"""Jobs at once in one worker, so that recurring ones are not kept waiting."""
TRIES = 5
RETRY_FIRST_S = 5
QUEUE_MAX = 100
QUEUE_AGAIN_S = 30.0


Handler: TypeAlias = Callable[[Gateway, Lease], Awaitable[Mapping[str, Any] | None]]
"""Works one slice off: goes on from ``lease.job.progress``, saves, and returns the result once all is done."""


class Requested(Struct, frozen=True, kw_only=True):
    """How jobs of a kind are done. A slice that takes longer than ``slice_timeout_s`` has failed."""

    handler: Handler
    slice_timeout_s: float


REQUESTED: Mapping[Kind, Requested] = {
    Kind.AUDIT_VERIFICATION: Requested(handler=verify_audit_log, slice_timeout_s=30),
    Kind.RECONCILE: Requested(handler=reconcile, slice_timeout_s=45),
    Kind.RESCAN: Requested(handler=rescan, slice_timeout_s=30),
    Kind.STATEMENT_EXPORT: Requested(handler=export_statement, slice_timeout_s=15),
    Kind.WEBHOOK_REDELIVERY: Requested(handler=redeliver, slice_timeout_s=30),
    Kind.TRACKER_HISTORY: Requested(handler=read_history, slice_timeout_s=30),
}


class _DiedError(Exception):
    """Whoever began the job last has died of it, and so did others before."""


class JobRunner:
    """Works jobs off in this process."""

    def __init__(self, gateway: Gateway, worker: str, requested: Mapping[Kind, Requested] | None = None) -> None:
        self._gateway = gateway
        self._worker = worker
        self._requested = REQUESTED if requested is None else requested
        self._running = 0
        self.states: Mapping[str, RunCounts] = {kind: RunCounts() for kind in self._requested}

    async def run(self, pk: int) -> None:
        """Work on a job for a while, where it is due and this process has room for it."""
        if self._running >= RUNNING_MAX:
            return
        self._running += 1
        try:
            now = self._gateway.clock.now()
            async with self._gateway.db.autocommit() as conn:
                job = await leases.claim(conn, pk, worker=self._worker, now=now, leased_until=lease_end(now))
            if job is not None:
                await self._work_off(job)
        finally:
            self._running -= 1

    async def _work_off(self, job: Job) -> None:
        state, started = self.states.get(job.kind) or RunCounts(), self._gateway.clock.monotonic()
        lease = Lease(self._gateway, job)
        try:
            ended = await self._slices(lease)
            state.succeeded += ended
        except asyncio.CancelledError:
            await asyncio.shield(self._release(job))
            raise
        except LaterError as later:
            await self._release(job, later.said, later.pause_s)
        except LeaseLostError:
            log.info("job_lease_lost", job=job.job_id, kind=job.kind)
        except ServiceError as error:
            state.failed += await self._fail(lease.job, Said(Trouble.OTHER, error.message), again=False)
        except _DiedError:
            log.exception("job_failed", job=job.job_id, kind=job.kind, attempts=job.attempts)
            state.failed += await self._fail(lease.job, say(Trouble.WORKER_DIED), again=False)
        except Exception as error:
            log.exception("job_failed", job=job.job_id, kind=job.kind, attempts=job.attempts)
            state.failed += await self._fail(lease.job, raised(error), again=True)
        state.duration_s += self._gateway.clock.monotonic() - started

    async def _slices(self, lease: Lease) -> bool:
        """Work slice after slice while there is time; return whether that was all."""
        job = lease.job
        requested = self._requested[Kind(job.kind)]
        if job.attempts >= TRIES:
            raise _DiedError
        loop = asyncio.get_running_loop()
        until = loop.time() + RUN_S - requested.slice_timeout_s
        result = None
        while result is None and loop.time() <= until:
            async with asyncio.timeout(requested.slice_timeout_s):
                result = await requested.handler(self._gateway, lease)
        if result is None:
            await self._release(job)
            return False
        async with self._gateway.db.transaction() as conn:
            await leases.succeed(conn, job, result, self._gateway.clock.now())
        return True

    async def _release(self, job: Job, error: Said | None = None, pause_s: float = 0) -> None:
        due_at = self._gateway.clock.now() + timedelta(seconds=pause_s)
        async with self._gateway.db.transaction() as conn:
            await leases.release(conn, job, due_at, error)
        await self._gateway.hints.publish(requests.TOPIC)

    async def _fail(self, job: Job, error: Said, *, again: bool) -> bool:
        """Have the job tried again later, or end it; return whether it has ended."""
        now = self._gateway.clock.now()
        over = not again or job.attempts + 1 >= TRIES
        try:
            async with self._gateway.db.transaction() as conn:
                if over:
                    await leases.fail(conn, job, error, now)
                else:
                    pause = timedelta(seconds=RETRY_FIRST_S * 2**job.attempts)
                    await leases.retry_later(conn, job, error, now + pause)
        except LeaseLostError:
            return False
        return over


async def work_off(ctx: dict[Any, Any], pk: int) -> None:
    """Work on the job of this row id: what arq calls."""
    await ctx[RUNNER].run(pk)


async def keep_queueing(gateway: Gateway, pool: ArqRedis) -> None:
    """Tell Redis of every job that is due, at each hint; a recurring job gives one for those that Redis forgot."""
    async with gateway.hints.subscribe(requests.TOPIC) as hints:
        while True:
            await queue_due(gateway, pool)
            await hints.wait(QUEUE_AGAIN_S)


async def queue_due(gateway: Gateway, pool: ArqRedis) -> None:
    """Tell Redis of every job that is due. Doing it twice changes nothing: the id is of the job and its next lease.

    It names the queue, too: arq knows jobs by their ids in all of Redis, which another gateway may use.
    """
    async with gateway.db.autocommit() as conn:
        due = await leases.find_due(conn, gateway.clock.now(), QUEUE_MAX)
    for one in due:
        job_id = f"{pool.default_queue_name}:{one.job_id}:{one.lease_token}"
        await pool.enqueue_job(work_off.__name__, one.pk, _job_id=job_id)
