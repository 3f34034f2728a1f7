"""Jobs that somebody asked for, as rows: asked twice, claimed once, fenced, cancelled and tried again."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from cambist.domain.troubles import Said, Trouble
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.jobs import leases, requests
from cambist.services.jobs.leases import LeaseLostError
from cambist.services.jobs.requests import Kind, NewJob

LEASE = timedelta(seconds=60)
LATE = Said(Trouble.OTHER, "late")
NEW = NewJob(kind=Kind.RECONCILE, arguments={"chain": "memory"}, requested_by="operator", unique_key="all")


class Jobs:
    """The use cases, each in a transaction of its own."""

    def __init__(self, db, clock, ids):
        self.db, self.clock, self.ids = db, clock, ids

    async def request(self, new=NEW):
        async with self.db.transaction() as conn:
            return await requests.request(conn, self.ids, new, self.clock.now())

    async def claim(self, job, worker="one"):
        now = self.clock.now()
        async with self.db.autocommit() as conn:
            return await leases.claim(conn, job.pk, worker=worker, now=now, leased_until=now + LEASE)

    async def save(self, job, progress):
        async with self.db.transaction() as conn:
            await leases.save(conn, job, progress, self.clock.now() + LEASE)
            await conn.exec_driver_sql(
                "INSERT INTO job_outputs (job_pk, number, content) VALUES ($1, $2, $3)",
                (job.pk, progress["n"], b"piece"),
            )

    async def now(self, what, job, *more):
        async with self.db.transaction() as conn:
            return await what(conn, job, *more, self.clock.now())

    async def get(self, job):
        async with self.db.autocommit() as conn:
            return await requests.get(conn, job.job_id)

    async def pieces(self, job):
        return [piece async for piece in requests.output(self.db, job)]

    async def due(self):
        async with self.db.autocommit() as conn:
            return [one.job_id for one in await leases.find_due(conn, self.clock.now(), 10)]


@pytest.fixture
def jobs(db, clock, ids):
    return Jobs(db, clock, ids)


async def test_asking_twice_is_asking_once_until_the_work_has_ended(jobs):
    first, *others = await asyncio.gather(*(jobs.request() for _ in range(5)))
    assert {other.job_id for other in others} == {first.job_id}
    assert (first.state, first.arguments, first.progress, first.result) == ("queued", {"chain": "memory"}, {}, None)
    held = await jobs.claim(first)
    assert (await jobs.request()).job_id == first.job_id
    await jobs.now(leases.succeed, held, {"agrees": True})
    again = await jobs.request()
    assert again.job_id != first.job_id
    assert (await jobs.get(first)).result == {"agrees": True}
    async with jobs.db.autocommit() as conn:
        assert await requests.counts(conn) == {("reconcile", "queued"): 1, ("reconcile", "succeeded"): 1}
        assert [job.job_id for job in (await requests.list_jobs(conn)).items] == [again.job_id, first.job_id]
        assert [job.job_id for job in (await requests.list_jobs(conn, state="queued")).items] == [again.job_id]


async def test_one_worker_gets_the_lease_and_the_next_when_it_is_over(jobs):
    job = await jobs.request()
    claims = await asyncio.gather(*(jobs.claim(job, f"worker {number}") for number in range(5)))
    [held] = [one for one in claims if one is not None]
    assert (held.state, held.lease_token, held.attempts) == ("running", 1, 0)
    assert await jobs.due() == []
    jobs.clock.advance(61)
    assert await jobs.due() == [job.job_id]
    taken_over = await jobs.claim(job, "two")
    assert (taken_over.worker, taken_over.lease_token, taken_over.attempts) == ("two", 2, 1)


async def test_nothing_is_written_under_a_lease_that_another_worker_took(jobs):
    job = await jobs.request()
    dead = await jobs.claim(job)
    await jobs.save(dead, {"n": 0})
    jobs.clock.advance(61)
    living = await jobs.claim(job, "two")
    assert living.progress == {"n": 0}
    with pytest.raises(LeaseLostError):
        await jobs.save(dead, {"n": 1})
    for end in (leases.release, *((lambda c, j, n, f=f: f(c, j, LATE, n)) for f in (leases.fail,))):
        with pytest.raises(LeaseLostError):
            await jobs.now(end, dead)
    with pytest.raises(LeaseLostError):
        await jobs.now(leases.succeed, dead, {"late": True})
    await jobs.save(living, {"n": 1})
    await jobs.now(leases.succeed, living, {"done": True})
    assert await jobs.pieces(job) == [b"piece"] * 2
    assert (await jobs.get(job)).result == {"done": True}


async def test_a_cancelled_job_takes_no_more_writes_and_goes_on_where_it_was_when_it_is_tried_again(jobs):
    job = await jobs.request(replace(NEW, kind=Kind.STATEMENT_EXPORT))
    held = await jobs.claim(job)
    await jobs.save(held, {"n": 0})
    cancelled = await jobs.now(requests.cancel, job.job_id)
    assert cancelled.state == "cancelled"
    assert (await jobs.now(requests.cancel, job.job_id)).state == "cancelled"
    with pytest.raises(LeaseLostError):
        await jobs.save(held, {"n": 1})
    assert await jobs.claim(job) is None
    assert (await jobs.now(requests.retry, job.job_id)).state == "queued"
    again = await jobs.claim(job)
    assert (again.progress, again.lease_token, again.attempts) == ({"n": 0}, 2, 0)


@pytest.mark.parametrize("kind", requests.COMPARISONS)
async def test_a_comparison_that_is_tried_again_compares_everything_anew(jobs, kind):
    job = await jobs.request(replace(NEW, kind=kind))
    await jobs.save(await jobs.claim(job), {"n": 0})
    await jobs.now(requests.cancel, job.job_id)
    assert (await jobs.now(requests.retry, job.job_id)).progress == {}


async def test_the_last_one_is_the_one_that_ended_last_however_long_ago_it_was_asked_for(jobs):
    first = await jobs.request()
    await jobs.now(requests.cancel, first.job_id)
    await jobs.now(leases.succeed, await jobs.claim(await jobs.request()), {"agrees": True})
    jobs.clock.advance(1)
    await jobs.now(requests.retry, first.job_id)
    await jobs.now(leases.succeed, await jobs.claim(first), {"agrees": False})
    async with jobs.db.autocommit() as conn:
        assert (await requests.last_succeeded(conn, Kind.RECONCILE)).result == {"agrees": False}


async def test_what_failed_is_due_again_after_a_pause_and_can_be_tried_again_by_hand_once_it_ended(jobs):
    job = await jobs.request()
    held = await jobs.claim(job)
    async with jobs.db.transaction() as conn:
        await leases.retry_later(conn, held, Said(Trouble.OTHER, "no"), jobs.clock.now() + timedelta(seconds=5))
    assert await jobs.due() == []
    jobs.clock.advance(5)
    held = await jobs.claim(job)
    assert held.attempts == 1
    async with jobs.db.transaction() as conn:
        await leases.fail(conn, held, Said(Trouble.CHAIN_UNAVAILABLE, "x" * 1_000), jobs.clock.now())
    ended = await jobs.get(job)
    assert ended.error_code == "CHAIN_UNAVAILABLE"
    assert (ended.state, len(ended.error), ended.finished_at) == ("failed", 500, jobs.clock.now())
    with pytest.raises(ConflictError, match="failed already"):
        await jobs.now(requests.cancel, job.job_id)
    other = await jobs.request()
    with pytest.raises(ConflictError, match="asked for again meanwhile"):
        await jobs.now(requests.retry, job.job_id)
    await jobs.now(requests.cancel, other.job_id)
    again = await jobs.now(requests.retry, job.job_id)
    assert (again.error, again.error_code) == (None, None)
    with pytest.raises(ConflictError, match="queued; only failed"):
        await jobs.now(requests.retry, job.job_id)
    with pytest.raises(NotFoundError):
        await jobs.now(requests.retry, "job_unknown")
