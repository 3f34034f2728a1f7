"""Deadlines for what plugins do: whoever waits goes on in time, whatever a plugin makes of being cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


async def within(timeout_s: float, work: Awaitable[T]) -> T:
    """Return what comes of a plugin's work, which runs in a task of its own. Raises TimeoutError, and what it raises.

    Work that catches its cancellation is left behind. What it raises that is no Exception is a RuntimeError here: a
    cancellation from within is none of the caller, and a panic of one plugin must not end what is asked of others.
    """
    task = asyncio.create_task(_result(work))
    task.add_done_callback(_forget)
    try:
        await asyncio.wait([task], timeout=timeout_s)
    finally:
        task.cancel()  # where it is still running: the deadline has passed, or the caller is cancelled
    if not task.done():
        raise TimeoutError
    if task.cancelled():
        raise RuntimeError("it was cancelled from within")
    return task.result()


async def _result(work: Awaitable[T]) -> T:
    try:
        return await work
    except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise  # the last two end the process, or its loop
    except BaseException as error:
        raise RuntimeError(f"it raised {type(error).__name__}: {error}") from error


def _forget(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # asked for, so that asyncio does not report that of a task left behind as lost
