"""Deadlines for what plugins do: whoever waits goes on in time, whatever a plugin makes of being cancelled."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

T = TypeVar("T")

GIVE_UP_S: Final = 1.0
"""How long work that was cancelled may take to end while somebody waits for that. Then it is left behind."""
LEFT_BEHIND_MAX: Final = 20
"""Works of one object of a plugin that were left behind. Where there are so many, no more is begun until one ends."""

_left_behind: dict[int, set[asyncio.Task[Any]]] = {}
"""By the id of whose work it is, which lives as long as its work does."""


async def within(timeout_s: float, work: Awaitable[T], *, of: object = None) -> T:
    """Return what comes of a plugin's work, which runs in a task of its own. Raises TimeoutError, and what it raises.

    Work that catches its cancellation is left behind, so much of one object, ``of``, and no more. What it raises that
    is no Exception is a RuntimeError here: a cancellation from within is none of the caller, and a panic of one plugin
    must not end what is asked of others.
    """
    task = _begun(work, of)
    try:
        await asyncio.wait([task], timeout=timeout_s)
    finally:
        if not task.done():  # the deadline has passed, or the caller is cancelled
            task.cancel()
            _leave_behind(task, of)
    if not task.done():
        raise TimeoutError
    return _told(task)


async def obeying(work: Awaitable[T], *, of: object = None) -> T:
    """Return what comes of a plugin's work, however long it takes. Raises what it raises, as in ``within``.

    Who is cancelled meanwhile waits until the work has ended, too, and for that no longer than ``GIVE_UP_S``.
    """
    task = _begun(work, of)
    ended = asyncio.get_running_loop().create_future()  # every call of a chain comes by: a third of ``asyncio.wait``
    task.add_done_callback(functools.partial(_tell, ended))
    try:
        await ended
    except asyncio.CancelledError:
        task.cancel()
        try:
            await asyncio.wait([task], timeout=GIVE_UP_S)
        finally:
            if not task.done():  # those that are ending, as many that are cancelled at once, are none left behind
                _leave_behind(task, of)
        raise
    return _told(task)


def _begun(work: Awaitable[T], of: object) -> asyncio.Task[T]:
    if of is not None and len(_left_behind.get(id(of), ())) >= LEFT_BEHIND_MAX:
        if asyncio.iscoroutine(work):
            work.close()
        raise RuntimeError(f"{LEFT_BEHIND_MAX} of its works go on though they were cancelled")
    task = asyncio.create_task(_result(work))
    task.add_done_callback(_forget)
    return task


def _tell(ended: asyncio.Future[None], _: asyncio.Task[Any]) -> None:
    if not ended.done():
        ended.set_result(None)


def _leave_behind(task: asyncio.Task[Any], of: object) -> None:
    if of is None:
        return
    whose = id(of)
    _left_behind.setdefault(whose, set()).add(task)
    task.add_done_callback(functools.partial(_ended, whose))


def _ended(whose: int, task: asyncio.Task[Any]) -> None:
    left = _left_behind[whose]
    left.discard(task)
    if not left:
        del _left_behind[whose]


def _told(task: asyncio.Task[T]) -> T:
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
