"""Jobs that somebody asked for, on arq: in slices, once, whatever becomes of Redis and of the worker."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from arq.constants import in_progress_key_prefix
from arq.worker import Worker
from msgspec.structs import replace

from cambist.services.jobs import requests
from cambist.services.jobs.requests import TOPIC, Kind, NewJob
from cambist_tasks.arq_worker import open_pool, queue_of, run_arq, runners_of
from cambist_tasks.crons import CRONS, due_at
from cambist_tasks.job_lease import LEASE_S
from cambist_tasks.requested import TRIES, JobRunner, Requested, queue_due
from tests.tasks.test_arq import running, until, using

pytestmark = pytest.mark.slow

SLICES = 5


class Slices:
    """A job of five slices; each leaves a piece. It can be told to hang or to fail."""

    def __init__(self):
        self.calls, self.fails, self.hangs = 0, 0, False
        self.hanging = asyncio.Event()

    async def __call__(self, _, lease):
        self.calls += 1
        done = lease.job.progress.get("done", 0)
        if self.fails:
            self.fails -= 1
            raise LookupError("no such thing")
        async with lease.saving({"done": done + 1}) as conn:
            await conn.exec_driver_sql(
                "INSERT INTO job_outputs (job_pk, number, content) VALUES ($1, $2, $3)",
                (lease.job.pk, done, b"%d" % done),
            )
            if self.hangs:
                self.hanging.set()
                await asyncio.Event().wait()
        return {"slices": done + 1} if done + 1 == SLICES else None


@pytest.fixture
def slices():
    return Slices()


def runner_of(gateway, handler, name="one"):
    return JobRunner(gateway, name, {Kind.RECONCILE: Requested(handler=handler, slice_timeout_s=5)})


@pytest.fixture
def runners(gateway, slices):
    return replace(runners_of(gateway), jobs=runner_of(gateway, slices))


async def asked(gateway, **more):
    new = NewJob(kind=Kind.RECONCILE, arguments={}, requested_by="operator", **more)
    async with gateway.db.transaction() as conn:
        job = await requests.request(conn, gateway.ids, new, gateway.clock.now())
    await gateway.hints.publish(TOPIC)
    return job


async def found(gateway, job):
    async with gateway.db.autocommit() as conn:
        return await requests.get(conn, job.job_id)


async def ended(gateway, job, *, state="succeeded"):
    async def over():
        return (await found(gateway, job)).finished_at is not None

    await until(over)
    job = await found(gateway, job)
    assert job.state == state, job
    return job


async def pieces(gateway, job):
    return [piece async for piece in requests.output(gateway.db, job)]


ALL = [b"%d" % number for number in range(SLICES)]


async def test_a_job_is_worked_off_in_slices_and_its_result_can_be_fetched(gateway, runners, slices):
    async with running(gateway.settings, runners):
        job = await ended(gateway, await asked(gateway))
    assert (job.result, job.progress, slices.calls) == ({"slices": SLICES}, {"done": SLICES}, SLICES)
    assert await pieces(gateway, job) == ALL
    assert runners.jobs.states[Kind.RECONCILE].succeeded == 1


async def test_a_job_queued_again_and_again_is_done_once(gateway, runners, slices):
    job = await asked(gateway)
    pool = open_pool(gateway.settings.redis.url, queue_of(gateway.settings))
    for _ in range(3):
        await queue_due(gateway, pool)
    assert len(await pool.queued_jobs()) == 1
    for number in range(5):
        await pool.enqueue_job("work_off", job.pk, _job_id=f"again{number}")
    async with running(gateway.settings, runners):
        await ended(gateway, job)
    assert slices.calls == SLICES
    await pool.aclose(close_connection_pool=True)


async def test_what_redis_forgot_is_queued_again(gateway, runners, slices):
    job = await asked(gateway)
    pool = open_pool(gateway.settings.redis.url, queue_of(gateway.settings))
    await queue_due(gateway, pool)
    await pool.flushdb()
    async with running(gateway.settings, runners):
        await ended(gateway, job)
        await pool.flushdb()
        await ended(gateway, await asked(gateway))
    assert slices.calls == 2 * SLICES
    await pool.aclose(close_connection_pool=True)


async def test_redis_killed_while_a_job_runs_costs_time_and_no_work(gateway, valkey, runners, slices):
    slices.hangs = True
    async with running(using(gateway.settings, valkey), runners):
        job = await asked(gateway)
        await slices.hanging.wait()
        valkey.kill()
        slices.hangs = False
        await asyncio.sleep(0.1)
        waiting = await asked(gateway)
        valkey.start()
        await ended(gateway, job)
        await ended(gateway, waiting)
    assert await pieces(gateway, job) == await pieces(gateway, waiting) == ALL


async def test_a_job_that_was_taken_and_not_begun_when_arq_ended_is_taken_again_at_once(
    gateway, runners, slices, monkeypatch
):
    job, taken = await asked(gateway), asyncio.Event()

    async def get_stuck(_, job_id, score):
        if job.job_id in job_id:
            taken.set()
            await asyncio.Event().wait()

    with monkeypatch.context() as patching:
        patching.setattr(Worker, "run_job", get_stuck)
        task = asyncio.create_task(run_arq(gateway.settings, runners))
        await taken.wait()
        task.cancel()
        await asyncio.wait([task])
    assert slices.calls == 0
    async with asyncio.timeout(30), running(gateway.settings, runners):
        await ended(gateway, job)
    assert slices.calls == SLICES


async def test_a_job_that_was_begun_when_arq_ended_stays_with_whoever_took_it_since(
    gateway, runners, slices, monkeypatch
):
    finish, marks = Worker.finish_job, []
    pool = open_pool(gateway.settings.redis.url, queue_of(gateway.settings))

    async def another_takes_it(worker, job_id, *more):
        await finish(worker, job_id, *more)
        if job.job_id in job_id:
            marks.append(in_progress_key_prefix + job_id)
            await pool.set(marks[-1], b"1")

    slices.hangs = True
    monkeypatch.setattr(Worker, "finish_job", another_takes_it)
    job = await asked(gateway)
    task = asyncio.create_task(run_arq(gateway.settings, runners))
    await slices.hanging.wait()
    task.cancel()
    await asyncio.wait([task])
    assert [await pool.exists(mark) for mark in marks] == [1]
    await pool.aclose(close_connection_pool=True)


class InjectedTime:
    """What arq reads its time from, in place of the machine's."""

    def __init__(self, clock):
        self.clock = clock

    def now(self, tz=None):
        return self.clock.now().astimezone(tz)

    def time(self):
        return self.clock.now().timestamp()


@pytest.fixture
def time_is_injected(monkeypatch, clock):
    injected = InjectedTime(clock)
    monkeypatch.setattr("arq.worker.datetime", injected)
    monkeypatch.setattr("arq.utils.time", injected.time)
    monkeypatch.setattr("cambist_tasks.crons.utc_now", clock.now)


async def cron_runs(gateway):
    """Return what was claimed so far: job, moment, time of the claim, and of the end."""
    async with gateway.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT name, due_at, claimed_at, finished_at FROM cron_runs WHERE error IS NULL"
        )
        return {tuple(row) for row in rows}


async def test_redis_away_for_five_minutes_costs_no_job_and_no_moment(
    gateway, clock, valkey, runners, slices, time_is_injected
):
    def due_now():
        return {(cron.name, due_at(cron, clock.now()), clock.now(), clock.now()) for cron in CRONS}

    async def done():
        return await cron_runs(gateway) == due

    clock.advance(30)
    slices.hangs, due = True, due_now()
    async with running(using(gateway.settings, valkey), runners):
        begun = await asked(gateway)
        await slices.hanging.wait()
        await until(done)
        valkey.kill()
        slices.hangs = False
        waiting = await asked(gateway)
        for _ in range(5):
            clock.advance(60)
            await asyncio.sleep(0.1)
        assert (await found(gateway, waiting)).started_at is None
        assert await done()
        due |= due_now()
        valkey.start()
        for job in (begun, waiting):
            assert (await ended(gateway, job)).finished_at == clock.now()
            assert await pieces(gateway, job) == ALL
        await until(done)


@asynccontextmanager
async def hanging(runner, job, slices):
    """Have a worker get stuck in the middle of a slice, as one that is frozen or has lost its network."""
    slices.hangs = True
    task = asyncio.create_task(runner.run(job.pk))
    await slices.hanging.wait()
    slices.hangs = False
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_the_job_of_a_dead_worker_is_taken_over_and_each_slice_is_kept_once(gateway, clock, db, slices):
    job = await asked(gateway)
    dead, living = runner_of(gateway, slices, "dead"), runner_of(gateway, slices, "living")
    async with hanging(dead, job, slices):
        await living.run(job.pk)
        assert slices.calls == 1
        async with db.autocommit() as conn:
            # Its connections end with it, and with them the transaction that was open.
            await conn.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
                " AND datname = current_database()"
            )
        clock.advance(LEASE_S)
        await living.run(job.pk)
    assert await pieces(gateway, job) == ALL
    assert (await found(gateway, job)).result == {"slices": SLICES}


async def test_a_job_that_is_cancelled_stops_at_its_next_slice(gateway, slices):
    job = await asked(gateway)

    async def cancelling(gateway, lease):
        result = await slices(gateway, lease)
        if slices.calls == 2:
            async with gateway.db.transaction() as conn:
                await requests.cancel(conn, job.job_id, gateway.clock.now())
        return result

    await runner_of(gateway, cancelling).run(job.pk)
    assert (await found(gateway, job)).state == "cancelled"
    assert await pieces(gateway, job) == ALL[:2]


async def test_a_failing_job_is_tried_again_with_growing_pauses_and_then_left(gateway, clock, slices):
    job = await asked(gateway)
    runner = runner_of(gateway, slices)
    slices.fails = TRIES
    pauses = []
    for _ in range(TRIES - 1):
        await runner.run(job.pk)
        job = await found(gateway, job)
        assert (job.error, job.error_code) == ("LookupError: no such thing", "UNEXPECTED")
        pauses.append((job.due_at - clock.now()).total_seconds())
        await runner.run(job.pk)
        clock.advance(pauses[-1])
    assert pauses == [5, 10, 20, 40]
    await runner.run(job.pk)
    job = await found(gateway, job)
    assert (job.state, slices.calls) == ("failed", TRIES)
    async with gateway.db.transaction() as conn:
        await requests.retry(conn, job.job_id, clock.now())
    await runner.run(job.pk)
    assert (await found(gateway, job)).state == "succeeded"


async def test_a_job_that_kills_its_workers_is_given_up(gateway, clock, db, slices):
    job = await asked(gateway)
    runner = runner_of(gateway, slices)
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE jobs SET state = 'running', leased_until = $1, attempts = $2", (clock.now(), TRIES - 1)
        )
    await runner.run(job.pk)
    job = await found(gateway, job)
    assert (job.error, job.error_code) == ("A worker died of this job, again and again.", "WORKER_DIED")
    assert slices.calls == 0
