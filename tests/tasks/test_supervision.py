"""Tasks that crash come back, alone; a stop waits for what is running, but not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from sqlalchemy.exc import SQLAlchemyError
from structlog.testing import capture_logs

from cambist.db.engine import connect
from cambist.signer import SignerUnavailableError
from cambist_tasks.supervision import Backoff, keep_running, run_all

pytestmark = pytest.mark.slow


def test_pauses_double_up_to_their_ceiling_and_begin_anew_after_a_success() -> None:
    pauses = Backoff(0.5, 3.0)
    assert [pauses.next_s() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    pauses.reset()
    assert pauses.next_s() == 0.5


async def events_of(work: Callable[[], Coroutine[Any, Any, None]], last: asyncio.Event) -> list[str]:
    """Keep something running until it has begun for the last time, and return what was logged of it."""
    with capture_logs() as logs:
        task = asyncio.create_task(keep_running("it", work))
        async with asyncio.timeout(60):
            await last.wait()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    return [entry["event"] for entry in logs]


async def test_a_task_that_crashes_or_ends_is_started_again_and_the_crash_is_logged() -> None:
    starts: list[int] = []
    third = asyncio.Event()

    async def work() -> None:
        starts.append(len(starts))
        if len(starts) == 1:
            raise ValueError("once")
        if len(starts) == 3:
            third.set()
            await asyncio.Event().wait()

    assert await events_of(work, third) == ["task_crashed", "task_ended"]


async def test_a_server_that_is_away_is_told_in_a_line_and_a_defect_with_its_traceback(database_url: str) -> None:
    strange = urlsplit(database_url)._replace(netloc="cambist:hunter2@").geturl()
    told: dict[str | None, Exception] = {
        "Connection refused.": RedisConnectionError("Connection refused."),
        "The signer's store cannot be used: disk is full.": SignerUnavailableError(
            "The signer's store cannot be used: disk is full."
        ),
        None: ValueError("a defect"),
    }
    for why, url in (
        ("No such file or directory", "postgresql://cambist:hunter2@/x?host=/nowhere"),
        ("Connection refused", "postgresql://cambist:hunter2@127.0.0.1:1/x"),
        ('password authentication failed for user "cambist"', strange),
    ):
        database = connect(url, application_name="cambist-tests")
        with pytest.raises((SQLAlchemyError, OSError)) as raised:
            async with database.autocommit():
                pass
        told[why] = raised.value
        await database.close()

    for words, error in told.items():

        async def work(error: Exception = error) -> None:
            raise error

        with capture_logs() as logs:
            task = asyncio.create_task(keep_running("it", work))
            while not logs:  # noqa: ASYNC110  the log tells nobody
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        (crash,) = logs
        assert (crash["event"], crash.get("error"), crash.get("exc_info")) == ("task_crashed", words, not words or None)
        assert "hunter2" not in str(crash)


async def test_a_task_that_ends_as_cancelled_though_nobody_stopped_it_is_started_again() -> None:
    starts: list[int] = []
    second = asyncio.Event()

    async def work() -> None:
        starts.append(asyncio.current_task().cancelling())  # type: ignore[union-attr]
        if len(starts) == 1:
            raise asyncio.CancelledError
        second.set()
        await asyncio.Event().wait()

    assert await events_of(work, second) == ["task_crashed"]
    assert starts == [0, 0]


async def test_a_task_that_dies_of_what_is_no_exception_is_started_again_and_that_is_logged() -> None:
    class PanicError(BaseException):
        """What libraries written in Rust raise when they panic."""

    starts: list[int] = []
    second = asyncio.Event()

    async def work() -> None:
        starts.append(len(starts))
        if len(starts) == 1:
            raise PanicError
        second.set()
        await asyncio.Event().wait()

    assert await events_of(work, second) == ["task_crashed"]


@pytest.mark.parametrize("wanted", [SystemExit, KeyboardInterrupt])
def test_what_asks_for_the_end_of_the_process_ends_it(wanted: type[BaseException]) -> None:
    starts: list[int] = []

    async def work() -> None:
        starts.append(len(starts))
        raise wanted

    with capture_logs() as logs, pytest.raises(wanted):
        asyncio.run(keep_running("it", work))
    assert starts == [0]
    assert logs == []


async def test_one_crashing_task_leaves_the_others_running_and_stop_ends_all() -> None:
    ticks, cleaned = [], []
    stop = asyncio.Event()

    async def crash() -> None:
        raise RuntimeError("again and again")

    async def tick() -> None:
        try:
            while True:
                ticks.append(1)
                await asyncio.sleep(0.01)
        finally:
            await asyncio.sleep(0.05)
            cleaned.append(1)

    with capture_logs():
        running = asyncio.create_task(run_all({"crash": crash, "tick": tick}, stop, grace_s=2))
        await asyncio.sleep(0.3)
        assert len(ticks) > 5
        stop.set()
        async with asyncio.timeout(60):
            await running
    assert cleaned == [1]


async def test_a_task_that_will_not_stop_is_left_behind_after_the_grace() -> None:
    stop, freed = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        while not freed.is_set():
            try:
                await freed.wait()
            except asyncio.CancelledError:
                continue

    with capture_logs() as logs:
        running = asyncio.create_task(run_all({"stubborn": stubborn}, stop, grace_s=0.1))
        await asyncio.sleep(0.05)
        stop.set()
        async with asyncio.timeout(60):
            await running
    freed.set()
    assert [(entry["event"], entry["task"]) for entry in logs] == [("task_does_not_stop", "stubborn")]
    # Freed, it ends like any task that ends; it is cancelled for good here.
    for task in asyncio.all_tasks():
        if task.get_name() == "stubborn":
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
