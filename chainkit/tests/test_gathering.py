"""Several things awaited at once: one error ends all of them, and leaves no mark on who awaited them."""

from __future__ import annotations

import asyncio

import pytest

from cambist_chainkit.gathering import gather_all


class Slow:
    """Something that takes for ever, and takes its time to end when it is cancelled."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.ended = False

    async def __call__(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.ended = True


async def fails() -> None:
    await asyncio.sleep(0)
    raise ConnectionError("no node")


async def is_after(value: str) -> str:
    await asyncio.sleep(0)
    return value


async def test_all_results_come_in_the_order_of_what_was_awaited():
    assert await gather_all(is_after("a"), is_after("b")) == ["a", "b"]
    assert await gather_all() == []


async def test_the_first_error_ends_the_others_before_it_is_raised():
    slow = Slow()
    with pytest.raises(ConnectionError):
        await gather_all(slow(), fails())
    assert (slow.began.is_set(), slow.ended) == (True, True)


async def test_whoever_met_an_error_is_not_taken_for_cancelled_and_still_has_its_timeouts():
    with pytest.raises(ConnectionError):
        await gather_all(Slow()(), fails())
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await gather_all(Slow()())
    assert task.cancelling() == 0


async def test_who_is_cancelled_ends_all_of_it_and_is_cancelled():
    one, other = Slow(), Slow()
    task = asyncio.create_task(gather_all(one(), other()))
    await one.began.wait()
    await other.began.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert (one.ended, other.ended) == (True, True)
