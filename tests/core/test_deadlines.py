"""A plugin's work is waited for no longer than is said, and ends nobody but itself."""

from __future__ import annotations

import asyncio

import pytest

from cambist import deadlines
from cambist.deadlines import LEFT_BEHIND_MAX, obeying, within
from tests.support.stubborn import stay


async def answer() -> str:
    return "answer"


async def never() -> None:
    await asyncio.Event().wait()


async def test_what_comes_of_the_work_is_returned_or_raised():
    async def fail() -> None:
        raise LookupError

    assert await within(5, answer()) == "answer"
    with pytest.raises(LookupError):
        await within(5, fail())


async def test_an_awaitable_that_is_no_coroutine_is_waited_for():
    class Wrapped:
        def __await__(self):
            return answer().__await__()

    assert await within(5, Wrapped()) == "answer"


async def test_work_that_is_late_is_cancelled():
    cancelled = asyncio.Event()

    async def late() -> None:
        try:
            await never()
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError):
        await within(0.01, late())
    async with asyncio.timeout(5):
        await cancelled.wait()


async def test_work_that_catches_its_cancellation_is_left_behind():
    freed = asyncio.Event()
    async with asyncio.timeout(5):
        with pytest.raises(TimeoutError):
            await within(0.01, stay(freed))
    freed.set()


@pytest.mark.parametrize(
    "error, sentence",
    [
        (asyncio.CancelledError(), "it was cancelled from within"),
        (SystemExit(3), "it raised SystemExit: 3"),
        (BaseException("panic"), "it raised BaseException: panic"),
    ],
)
async def test_what_the_work_raises_as_no_exception_ends_the_work_alone(error, sentence):
    async def end() -> None:
        raise error

    with pytest.raises(RuntimeError, match=sentence):
        await within(5, end())


async def test_an_error_that_cannot_say_what_it_is_is_told_by_its_kind():
    """Whoever catches it logs its words, and that would fail where a failure is dealt with."""

    class SpeechlessError(LookupError):
        def __str__(self) -> str:
            raise AttributeError("response")

    async def fail() -> None:
        raise SpeechlessError

    with pytest.raises(RuntimeError, match="it raised SpeechlessError"):
        await within(5, fail())


async def test_who_is_cancelled_while_waiting_ends_as_cancelled_and_so_does_the_work():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await never()
        finally:
            ended.set()

    caller = asyncio.create_task(within(60, work()))
    async with asyncio.timeout(5):
        await begun.wait()
        caller.cancel()
        await asyncio.wait([caller])
        await ended.wait()
    assert caller.cancelled()


def test_an_interrupt_of_the_process_goes_through():
    async def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(within(5, interrupted()))


async def test_who_is_cancelled_waits_until_the_work_has_ended_too():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await never()
        finally:
            await asyncio.sleep(0.01)
            ended.set()

    caller = asyncio.create_task(obeying(work()))
    async with asyncio.timeout(5):
        await begun.wait()
        caller.cancel()
        await asyncio.wait([caller])
    assert caller.cancelled()
    assert ended.is_set()


async def test_who_is_cancelled_goes_on_though_the_work_does_not_end(monkeypatch):
    monkeypatch.setattr(deadlines, "GIVE_UP_S", 0.01)
    freed = asyncio.Event()
    async with asyncio.timeout(5):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await obeying(stay(freed))
    freed.set()


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3), BaseException("panic")])
async def test_work_without_a_deadline_ends_nobody_else_either(error):
    async def end() -> None:
        raise error

    with pytest.raises(RuntimeError):
        await obeying(end())
    assert await obeying(answer()) == "answer"


async def test_so_much_of_one_owner_is_left_behind_and_no_more():
    owner, other, freed = object(), object(), asyncio.Event()
    for _ in range(LEFT_BEHIND_MAX):
        with pytest.raises(TimeoutError):
            await within(0.001, stay(freed), of=owner)
    with pytest.raises(RuntimeError, match="go on though they were cancelled"):
        await within(5, answer(), of=owner)
    assert await within(5, answer(), of=other) == "answer"
    freed.set()
    async with asyncio.timeout(5):
        while deadlines._left_behind:  # noqa: ASYNC110  they end by themselves
            await asyncio.sleep(0)
    assert await within(5, answer(), of=owner) == "answer"


async def test_what_is_ending_once_it_is_cancelled_is_not_left_behind():
    """Else many calls of a chain that are cancelled at once would refuse what others ask it meanwhile."""
    owner, freed = object(), asyncio.Event()

    async def tidy() -> None:
        try:
            await never()
        finally:
            await freed.wait()

    calls = [asyncio.create_task(obeying(tidy(), of=owner)) for _ in range(LEFT_BEHIND_MAX)]
    async with asyncio.timeout(5):
        await asyncio.sleep(0.01)
        for call in calls:
            call.cancel()
        await asyncio.sleep(0.01)
        assert await obeying(answer(), of=owner) == "answer"
        freed.set()
        await asyncio.wait(calls)
    assert all(call.cancelled() for call in calls)
    assert not deadlines._left_behind


async def test_so_many_calls_without_a_deadline_are_left_behind_and_no_more(monkeypatch):
    monkeypatch.setattr(deadlines, "GIVE_UP_S", 0.001)
    owner, freed = object(), asyncio.Event()
    for _ in range(LEFT_BEHIND_MAX):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await obeying(stay(freed), of=owner)
    with pytest.raises(RuntimeError, match="go on though they were cancelled"):
        await obeying(answer(), of=owner)
    freed.set()
    async with asyncio.timeout(5):
        while deadlines._left_behind:  # noqa: ASYNC110  they end by themselves
            await asyncio.sleep(0)
    assert await obeying(answer(), of=owner) == "answer"
