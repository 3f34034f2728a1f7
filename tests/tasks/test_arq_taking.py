"""How workers take jobs from their queue in Redis: each is one worker's, and nobody's before it is due."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from arq.constants import in_progress_key_prefix
from arq.utils import timestamp_ms
from arq.worker import func

from cambist_tasks.arq_worker import TAKE, _Worker, arq_options, open_pool, queue_of


async def test_a_job_is_taken_by_one_worker_and_not_before_it_is_due(gateway):
    queue = queue_of(gateway.settings)
    pool = open_pool(gateway.settings.redis.url, queue)
    names = [f"{queue}:{name}" for name in ("later", "forgotten", "due", "due too")]

    async def take():
        keys = (queue, *(in_progress_key_prefix + name for name in names))
        return await pool.eval(TAKE, len(keys), *keys, len(names), timestamp_ms(), 60_000, *names)

    until_ms = timestamp_ms() + 60_000
    await pool.enqueue_job("work_off", 1, _job_id=names[0], _defer_until=datetime.fromtimestamp(until_ms / 1000, UTC))
    for name in names[2:]:
        await pool.enqueue_job("work_off", 1, _job_id=name)
    taken = await asyncio.gather(take(), take())
    assert sorted([job_id.decode() for job_id, _ in one] for one in taken) == [[], names[2:]]
    assert {float(score) for one in taken for _, score in one} <= {*range(until_ms - 60_000, timestamp_ms() + 1)}
    assert 0 < await pool.pttl(in_progress_key_prefix + names[2]) <= 60_000
    await pool.delete(in_progress_key_prefix + names[3])
    assert [job_id.decode() for job_id, _ in await take()] == names[3:]
    await pool.delete(queue)
    await pool.aclose(close_connection_pool=True)


async def test_a_free_place_is_taken_though_all_that_is_first_in_the_queue_is_running(gateway):
    begun, ended = asyncio.Queue(), asyncio.Event()

    async def work_off(ctx, number):
        begun.put_nowait(number)
        await ended.wait()

    places = {"max_jobs": 3, "cron_jobs": None, "functions": [func(work_off, name="work_off")]}
    worker = _Worker(arq_options(gateway.settings) | places, {})
    for numbers in ((1,), (2,), (3, 4)):
        for number in numbers:
            await worker.pool.enqueue_job("work_off", number, _job_id=f"{worker.queue_name}:{number}")
        await asyncio.wait_for(worker._poll_iteration(), 10)
        assert await asyncio.wait_for(begun.get(), 10) == numbers[0]
    running = list(worker.tasks.values())
    assert len(running) == 3
    ended.set()
    await asyncio.gather(*running)
    assert begun.empty()
    await worker.pool.delete(worker.queue_name)
    await worker.pool.aclose(close_connection_pool=True)
