"""Hints wake whoever waits, here and in other processes; without Redis they stay here, and nothing else fails."""

from __future__ import annotations

import asyncio
from time import perf_counter

import pytest
from redis.asyncio import Redis

from cambist.hints import Hints


async def test_a_hint_wakes_every_subscription_of_its_topic_and_no_other() -> None:
    hints = Hints(None)
    async with hints.subscribe("a") as one, hints.subscribe("a") as two, hints.subscribe("c") as three:
        await hints.publish("a")
        assert await one.wait(10)
        assert await two.wait(10)
        assert not await three.wait(0.01)
        assert not await one.wait(0.01)


async def test_a_hint_that_comes_before_the_wait_is_kept_and_several_are_one() -> None:
    hints = Hints(None)
    async with hints.subscribe("a") as waiter:
        await hints.publish("a", "a")
        await hints.publish("a")
        assert await waiter.wait(0)
        assert not await waiter.wait(0.01)


async def test_a_subscription_ends_with_its_context() -> None:
    hints = Hints(None)
    async with hints.subscribe("a"):
        pass
    assert hints._subscriptions == {}
    await hints.publish("a")


async def test_hints_travel_between_processes_also_for_topics_that_come_later(redis_url: str) -> None:
    async with Redis.from_url(redis_url) as here, Redis.from_url(redis_url) as there:
        ours, theirs = Hints(here), Hints(there)
        async with ours.subscribe("a") as first:
            # The connection wakes everybody once, for what may have been missed before.
            assert await first.wait(3)
            async with ours.subscribe("b") as later:
                await asyncio.sleep(0.1)
                await theirs.publish("b")
                assert await later.wait(3)
                assert not await first.wait(0.05)
            await theirs.publish("b")
            await theirs.publish("a")
            assert await first.wait(3)
        await ours.aclose()
        await theirs.aclose()


@pytest.mark.slow
async def test_an_outage_of_redis_is_survived_and_what_was_missed_is_made_up_for(redis_url: str) -> None:
    async with Redis.from_url(redis_url) as here, Redis.from_url(redis_url) as there:
        ours = Hints(here)
        async with ours.subscribe("a") as waiter:
            assert await waiter.wait(3)
            await there.client_kill_filter(_type="pubsub")
            # Connected again, everybody is woken once; and hints arrive as before.
            assert await waiter.wait(5)
            await asyncio.sleep(0.1)
            await Hints(there).publish("a")
            assert await waiter.wait(3)
        await ours.aclose()


async def test_publishing_never_raises_and_never_takes_long_without_redis() -> None:
    async with Redis(host="127.0.0.1", port=1) as nobody:
        hints = Hints(nobody)
        began = perf_counter()
        async with hints.subscribe("a") as waiter:
            for _ in range(100):
                await hints.publish("a")
            assert await waiter.wait(10)
        assert perf_counter() - began < 10  # and not half a second for each
        await hints.aclose()


@pytest.mark.slow
async def test_a_redis_that_accepts_and_never_answers_delays_one_request_only() -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silence, "127.0.0.1", 0)
    async with server, Redis(host="127.0.0.1", port=server.sockets[0].getsockname()[1]) as mute:
        hints = Hints(mute)
        began = perf_counter()
        for _ in range(50):
            await hints.publish("a")
        assert perf_counter() - began < 10  # and not half a second for each
        await hints.aclose()
