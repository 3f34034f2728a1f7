"""Recurring jobs: a moment is worked off once, however often it fires, and once more where a worker died in it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from arq.worker import Worker
from msgspec.structs import replace
from structlog.testing import capture_logs

from cambist.services.jobs import cron_runs
from cambist.settings import PriceSettings
from cambist_tasks import crons
from cambist_tasks.arq_worker import arq_options
from cambist_tasks.crons import CRONS, Cron, CronRunner, arq_crons, crons_of, due_at

MOMENT = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


class Work:
    """A job that counts how often it is done, and can be told to hang, to fail or to have more to do."""

    def __init__(self) -> None:
        self.done, self.failures, self.more = 0, 0, 0
        self.hanging = asyncio.Event()
        self.hangs = False

    async def __call__(self, _: object) -> bool:
        if self.hangs:
            self.hanging.set()
            await asyncio.Event().wait()
        if self.failures:
            self.failures -= 1
            raise LookupError("no such thing")
        self.done += 1
        self.more -= 1
        return self.more > 0


@pytest.fixture
def work():
    return Work()


@pytest.fixture
def job(work):
    return Cron(name="prices", work=work, every_s=60)


@pytest.fixture
def runners(gateway):
    return [CronRunner(gateway, "one"), CronRunner(gateway, "two")]


async def test_a_moment_that_fires_again_and_again_is_worked_off_once(runners, job, work):
    late = MOMENT + timedelta(seconds=59, milliseconds=999)
    await asyncio.gather(*(runner.run(job, moment) for moment in (MOMENT, late) * 5 for runner in runners))
    assert work.done == 1
    await runners[1].run(job, MOMENT + timedelta(seconds=60))
    assert work.done == 2
    assert sum(runner.states["prices"].succeeded for runner in runners) == 2


async def test_a_moment_is_void_once_a_later_one_was_claimed(runners, job, work):
    await runners[0].run(job, MOMENT)
    await runners[0].run(job, MOMENT - timedelta(hours=1))
    assert work.done == 1


async def test_a_moment_that_lies_ahead_is_refused_and_voids_nothing(gateway, runners, job, work):
    now = datetime.now(UTC)
    with capture_logs() as logs:
        await runners[0].run(job, now + timedelta(hours=2))
    assert work.done == 0
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("cron_moment_ahead", "warning")]
    async with gateway.db.autocommit() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO cron_runs (name, due_at, worker, claimed_at, leased_until) VALUES ($1, $2, '', $2, $2)",
            (job.name, now + timedelta(hours=2)),
        )
    await runners[0].run(job, now)
    assert work.done == 1


async def test_what_a_dead_worker_left_is_done_once_more_when_its_lease_is_over(gateway, clock, runners, job, work):
    async with gateway.db.autocommit() as conn:
        lease = {"worker": "dead", "now": clock.now(), "leased_until": clock.now() + timedelta(seconds=30)}
        assert await cron_runs.claim(conn, job.name, MOMENT, **lease) is not None
    await runners[0].run(job, MOMENT)
    assert work.done == 0
    clock.advance(31)
    await asyncio.gather(*(runner.run(job, MOMENT) for runner in runners))
    assert work.done == 1


async def test_a_run_that_is_cancelled_can_be_taken_over_at_once(runners, job, work):
    work.hangs = True
    running = asyncio.create_task(runners[0].run(job, MOMENT))
    await work.hanging.wait()
    running.cancel()
    await asyncio.wait([running])
    work.hangs = False
    await runners[1].run(job, MOMENT)
    assert work.done == 1


async def test_a_dead_workers_late_end_does_not_close_the_run_of_who_took_over(gateway, clock):
    now = clock.now()
    async with gateway.db.autocommit() as conn:
        dead = await cron_runs.claim(conn, "usage", MOMENT, worker="dead", now=now, leased_until=now)
        living = await cron_runs.claim(conn, "usage", MOMENT, worker="living", now=now, leased_until=now)
        assert (dead.attempts, living.attempts) == (1, 2)
        await cron_runs.finish(conn, dead, now)
        assert await cron_runs.last_successes(conn, ["usage"]) == {}
        await cron_runs.finish(conn, living, now)
        assert await cron_runs.last_successes(conn, ["usage", "prices"]) == {"usage": now}


async def test_more_work_goes_on_at_once_and_a_running_job_does_not_start_again(runners, job, work):
    work.more = 5
    await runners[0].run(job, MOMENT)
    assert work.done == 5
    work.hangs = True
    running = asyncio.create_task(runners[0].run(job, MOMENT + timedelta(seconds=60)))
    await work.hanging.wait()
    work.hangs = False
    await runners[0].run(job, MOMENT + timedelta(seconds=120))
    assert work.done == 5
    running.cancel()
    await asyncio.wait([running])


async def test_a_failure_is_tried_again_where_the_next_moment_is_far_and_logged_where_it_stays(
    gateway, runners, job, work, monkeypatch
):
    monkeypatch.setattr("cambist_tasks.crons.RETRY_FIRST_S", 0.01)
    work.failures = 2
    with capture_logs() as logs:
        await runners[0].run(replace(job, tries=3), MOMENT)
    assert work.done == 1
    assert [entry["event"] for entry in logs] == ["cron_tried_again"] * 2
    work.failures = 1
    with capture_logs() as logs:
        await runners[0].run(job, MOMENT + timedelta(seconds=60))
    assert [entry["event"] for entry in logs] == ["cron_failed"]
    state = runners[0].states["prices"]
    assert (state.succeeded, state.failed) == (1, 1)
    async with gateway.db.autocommit() as conn:
        failed = await conn.exec_driver_sql("SELECT error FROM cron_runs WHERE error IS NOT NULL")
        assert failed.scalars().all() == ["LookupError: no such thing"]


async def test_a_run_that_hangs_is_given_up(runners, job, work):
    work.hangs = True
    await runners[0].run(replace(job, timeout_s=0.05), MOMENT)
    assert runners[0].states["prices"].failed == 1


def test_schedules_fire_at_the_moments_that_are_claimed_and_no_function_runs_longer_than_a_minute(monkeypatch):
    now = MOMENT
    monkeypatch.setattr(crons, "utc_now", lambda: now)
    often = crons_of(PriceSettings(watch_s=5))
    assert {one.every_s for one in often if one.name == "price_sources"} == {5}
    for one, scheduled in zip([*CRONS, *often], [*arq_crons("queue"), *arq_crons("queue", often)], strict=True):
        now = MOMENT
        scheduled.calculate_next(MOMENT + timedelta(seconds=1))
        now = first = scheduled.next_run
        assert first == due_at(one, first)
        scheduled.calculate_next(first)
        assert (scheduled.next_run - first).total_seconds() == one.every_s
        assert scheduled.timeout_s <= 60


@pytest.fixture
async def arq(gateway):
    """Give arq's own worker, which its command line runs, too."""
    worker = Worker(**arq_options(gateway.settings), handle_signals=False)
    yield worker
    await worker.pool.aclose(close_connection_pool=True)


@pytest.mark.parametrize("step", [-timedelta(hours=1), timedelta(hours=1)], ids=["back", "forward"])
async def test_what_recurs_goes_on_at_once_and_once_when_the_clock_is_set(arq, monkeypatch, step):
    now = MOMENT

    async def queues(times):
        """Return which moments of what recurs every other second are queued while arq looks so often."""
        nonlocal now
        await arq.pool.flushdb()
        for _ in range(times):
            await arq.run_cron(now, 0.5)
            now += timedelta(seconds=0.5)
        queued = [one.decode() for one in await arq.pool.zrange(arq.queue_name, 0, -1)]
        return sorted(int(one.rpartition(":")[2]) / 1_000 for one in queued if ":usage:" in one)

    monkeypatch.setattr(crons, "utc_now", lambda: now)
    assert len(await queues(10)) >= 2
    now += step
    again = now.timestamp()
    found = await queues(10)
    assert 2 <= len(found) <= 5
    assert all(again <= moment <= again + 10 for moment in found)
