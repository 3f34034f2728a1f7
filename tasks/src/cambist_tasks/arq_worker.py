"""The arq worker: recurring jobs and jobs that somebody asked for, as one child of the worker's supervision.

arq ends when Redis does, and is started again. Nothing is lost by that: what is pending is in PostgreSQL.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from time import time
from typing import Any, cast

from arq.connections import ArqRedis, RedisSettings
from arq.constants import in_progress_key_prefix
from arq.jobs import Job
from arq.utils import timestamp_ms
from arq.worker import Worker, func
from msgspec import Struct
from redis.asyncio import ConnectionPool
from redis.asyncio.client import Pipeline
from redis.exceptions import RedisError
from sqlalchemy import make_url

from cambist.bootstrap import REDIS_TIMEOUT_S, Gateway, database_url, redis_tls
from cambist.settings import Settings, SettingsError

from . import crons, requested
from .codec import decode, encode
from .crons import CronRunner
from .requested import JobRunner

POLL_S = 0.2
ASK_S = 0.8
"""How often the queue is looked into for what others put there, and for recurring jobs that are due within a second.

What this worker puts there itself, at a hint or for a moment, it takes as soon as that is due.
"""
DUE_MAX = 500
"""Moments of what was queued that are remembered: arq's own worker looks at none, and of more the oldest are over."""
HEALTH_INTERVAL_S = 5
JOBS_MAX = 16
"""Jobs at once in one worker."""
TAKE = """
local taken = {}
for at = 2, #KEYS do
    if #taken == tonumber(ARGV[1]) then
        break
    end
    local job = ARGV[at + 2]
    local score = redis.call('ZSCORE', KEYS[1], job)
    if score and tonumber(score) <= tonumber(ARGV[2])
            and redis.call('SET', KEYS[at], '1', 'PX', ARGV[3], 'NX') then
        taken[#taken + 1] = {job, score}
    end
end
return taken
"""
"""Marks queued jobs as taken that are due and nobody has taken, as many as there are places; tells when each was due.

A job stays in the queue until its end: the first ones there may all be running. arq does the same for each by four
questions, which is most of what an idle worker has to do with Redis.
"""
CANCEL_AGAIN_S = 0.5
CANCELLATIONS_MAX = 10


def redis_url(settings: Settings) -> str:
    """Return where the jobs are queued. Raises SettingsError."""
    if settings.redis.url is None:
        raise SettingsError("redis.url must be set.")
    return settings.redis.url


def queue_of(settings: Settings) -> str:
    """Return the name of the gateway's queue, which no other gateway's worker reads that uses the same Redis.

    It tells gateways apart by database and public address. Workers of one gateway that read these differently have two
    queues, and still do each job once: PostgreSQL says who does it. Raises SettingsError.
    """
    database = make_url(database_url(settings))._replace(password=None)  # which a worker may need none of
    which = f"{database.render_as_string()} {settings.web.public_url}"
    return f"cambist:jobs:{hashlib.sha256(which.encode()).hexdigest()[:16]}"


def arq_options(settings: Settings) -> dict[str, Any]:
    """Return what arq's Worker takes. Times of schedules are in UTC on every machine. Raises SettingsError."""
    url, queue = redis_url(settings), queue_of(settings)
    return {
        "functions": [func(requested.work_off, timeout=requested.ARQ_TIMEOUT_S)],
        "cron_jobs": crons.arq_crons(queue, crons.crons_of(settings.prices)),
        "redis_settings": RedisSettings.from_dsn(url),  # for arq's health check, which opens its own pool
        "redis_pool": open_pool(url, queue),
        "queue_name": queue,
        "job_serializer": encode,
        "job_deserializer": decode,
        "poll_delay": POLL_S,
        "keep_result": 0,
        "max_jobs": JOBS_MAX,
        "job_timeout": 60,
        "health_check_interval": HEALTH_INTERVAL_S,
        "timezone": UTC,
    }


class _Pipeline(Pipeline):
    """redis' pipeline, except that it gives its connection back whatever interrupts it: that one keeps it then."""

    async def reset(self) -> None:
        try:
            await super().reset()  # type: ignore[no-untyped-call]
        finally:
            connection, self.connection = self.connection, None
            if connection is not None:  # in the middle of an answer, so nobody may go on with it
                await connection.disconnect(nowait=True)
                with suppress(KeyError):  # given back, but cancelled before it could say so
                    await self.connection_pool.release(connection)


class _Redis(ArqRedis):
    """arq's client, which knows who queues a job: arq leaves those alone that it queues at once, once one is cancelled.

    What they do then may open a connection anew.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  as arq calls it
        super().__init__(*arguments, **options)
        self.queueing: set[asyncio.Task[Any]] = set()
        self.due_at: deque[float] = deque(maxlen=DUE_MAX)
        """When what was queued here may begin, by the machine's clock, until it was looked for."""

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:  # noqa: FBT001, FBT002  as redis declares it
        return _Pipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)

    async def enqueue_job(self, *what: Any, **how: Any) -> Job | None:  # noqa: ANN401  as arq calls it
        with _among(self.queueing):
            queued = await super().enqueue_job(*what, **how)
        # Also what was queued before, by another worker: whoever looks first does it.
        moment: datetime | None = how.get("_defer_until")
        self.due_at.append(time() if moment is None else moment.timestamp())
        return queued


@contextmanager
def _among(tasks: set[asyncio.Task[Any]]) -> Iterator[None]:
    task = cast("asyncio.Task[Any]", asyncio.current_task())
    tasks.add(task)
    try:
        yield
    finally:
        tasks.discard(task)


def open_pool(url: str, queue: str) -> _Redis:
    """Return arq's client; nothing is opened before it is used."""
    connections = ConnectionPool.from_url(
        url, socket_timeout=REDIS_TIMEOUT_S, socket_connect_timeout=REDIS_TIMEOUT_S, **redis_tls(url)
    )
    return _Redis(connections, job_serializer=encode, job_deserializer=decode, default_queue_name=queue)


class _Worker(Worker):
    """arq's worker, which knows what it is still writing: arq shields that, so it outlives a job that is cancelled.

    It also knows which jobs it has taken and not begun, and looks into the queue when there may be something.
    """

    def __init__(self, options: Mapping[str, Any], context: dict[str, Any]) -> None:
        super().__init__(**options, handle_signals=False, ctx=context, on_job_start=self._begin)
        self.writing: set[asyncio.Task[Any]] = set()
        self.not_begun: set[str] = set()
        self._asks_at = 0.0

    async def _poll_iteration(self) -> None:
        # arq would ask Redis five times a second all day long, mostly for nothing.
        redis, now, monotonic = cast("_Redis", self.pool), time(), self.loop.time()
        if monotonic < self._asks_at and all(moment > now for moment in redis.due_at):
            return
        self._asks_at = monotonic + ASK_S
        await super()._poll_iteration()
        if self.job_counter < self.max_jobs:  # else what is due waits for a place
            redis.due_at = deque((moment for moment in redis.due_at if moment > now), DUE_MAX)

    async def start_jobs(self, job_ids: list[bytes]) -> None:
        if not job_ids:
            return
        numbers = (self.max_jobs - self.job_counter, timestamp_ms(), int(self.in_progress_timeout_s * 1000))
        wanted = [job_id.decode() for job_id in job_ids]
        keys = (self.queue_name, *(in_progress_key_prefix + job_id for job_id in wanted))
        told: Any = self.pool.eval(TAKE, len(keys), *keys, *map(str, numbers), *wanted)
        for taken, score in await told:
            await self.sem.acquire()
            self.job_counter += 1
            job_id = taken.decode()
            task = self.tasks[job_id] = self.loop.create_task(self.run_job(job_id, int(float(score))))
            task.add_done_callback(lambda _: self._release_sem_dec_counter_on_complete())

    def run_job(self, job_id: str, score: int) -> Coroutine[Any, Any, None]:
        # Not async: a task that is cancelled before it starts runs nothing of its coroutine.
        self.not_begun.add(job_id)
        return super().run_job(job_id, score)

    async def _begin(self, ctx: dict[Any, Any]) -> None:
        self.not_begun.discard(ctx["job_id"])

    async def finish_job(self, *what: Any) -> None:  # noqa: ANN401  as arq calls it
        with _among(self.writing):
            await super().finish_job(*what)

    async def finish_failed_job(self, job_id: str, *what: Any) -> None:  # noqa: ANN401  as arq calls it
        self.not_begun.discard(job_id)  # one that cannot begin
        with _among(self.writing):
            await super().finish_failed_job(job_id, *what)


class Runners(Struct, frozen=True, kw_only=True):
    """What runs the jobs of this process."""

    gateway: Gateway
    crons: CronRunner
    jobs: JobRunner

    @property
    def context(self) -> dict[str, Any]:
        """The context that arq passes to every function."""
        return {crons.RUNNER: self.crons, requested.RUNNER: self.jobs}


def runners_of(gateway: Gateway) -> Runners:
    worker = f"{socket.gethostname()}/{os.getpid()}"
    return Runners(gateway=gateway, crons=CronRunner(gateway, worker), jobs=JobRunner(gateway, worker))


async def run_arq(settings: Settings, runners: Runners) -> None:
    """Run jobs until cancelled, or until Redis is gone. Raises SettingsError."""
    worker = _Worker(arq_options(settings), runners.context)
    both = {
        asyncio.create_task(worker.main(), name="arq"),
        asyncio.create_task(requested.keep_queueing(runners.gateway, worker.pool), name="arq queueing"),
    }
    ended: set[asyncio.Task[None]] = set()
    try:
        ended, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        closing = asyncio.create_task(_close(worker, both), name="arq closing")
        await _to_its_end(closing)
    for task in ended:
        task.result()


async def _close(worker: _Worker, tasks: set[asyncio.Task[None]]) -> None:
    # Worker.close() would talk to Redis first, which may be the reason for closing.
    await end_tasks(tasks)
    await end_tasks(set(worker.tasks.values()))
    await end_tasks(set(cast("_Redis", worker.pool).queueing))
    # A job whose end is written down is not run again by the next worker.
    if worker.writing:
        await asyncio.wait(worker.writing, timeout=CANCEL_AGAIN_S)
    await end_tasks(worker.writing)
    try:
        await _give_back(worker.pool, worker.not_begun)
    finally:
        await worker.pool.aclose(close_connection_pool=True)


async def _to_its_end(task: asyncio.Task[None]) -> None:
    """Wait for a task however often the wait is cancelled, and be cancelled then: who insists must not interrupt it."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError


async def _give_back(pool: ArqRedis, job_ids: AbstractSet[str]) -> None:
    """Have jobs be taken by the next worker at once: arq leaves those that it had not begun marked for a minute.

    The mark of one that had begun is no longer there, or another worker's by now.
    """
    if job_ids:
        with suppress(RedisError, TimeoutError):
            async with asyncio.timeout(CANCEL_AGAIN_S / 2):
                await pool.delete(*(in_progress_key_prefix + job_id for job_id in job_ids))


async def end_tasks(tasks: set[asyncio.Task[None]]) -> None:
    """Cancel tasks until they end, however they end."""
    # Once is not enough: before Python 3.12 asyncio.wait_for can lose a cancellation, and Redis' client waits with it.
    running = {task for task in tasks if not task.done()}
    for _ in range(CANCELLATIONS_MAX):
        for task in running:
            task.cancel()
        if running:
            _, running = await asyncio.wait(running, timeout=CANCEL_AGAIN_S)
    await asyncio.gather(*(tasks - running), return_exceptions=True)
