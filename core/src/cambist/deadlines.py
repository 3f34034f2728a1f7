"""Deadlines for what plugins do: whoever waits goes on in time, whatever a plugin makes of being cancelled."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
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
    return await _obeyed(_begun(work, of), of)


@asynccontextmanager
async def held(opening: Callable[[], AbstractAsyncContextManager[T]], *, of: object = None) -> AsyncIterator[T]:
    """Give what a plugin's context gives. It opens and closes in one task of its own, and obeys as in ``obeying``.

    It sees each Exception that leaves the block, and may raise another for it, but hides none. Where it ends by itself,
    as by a deadline of its own, the block is cancelled, and what it raised is raised.
    """
    loop = asyncio.get_running_loop()
    opened, left = loop.create_future(), loop.create_future()
    given: list[T] = []

    async def keep_open() -> None:
        async with opening() as value:
            given.append(value)
            _tell(opened)
            await asyncio.wait([left])
            if (error := left.result()) is not None:
                raise error

    task = _begun(keep_open(), of)
    task.add_done_callback(functools.partial(_tell, opened))
    try:
        await opened
        if not given:
            _told(task)
        async with _lasting_as(task, left):
            yield given[0]
    except Exception:
        await _obeyed(task, of)  # raises the same, or what the plugin makes of it
        raise
    except BaseException:
        left.cancel()  # what opens later than this closes at once
        await _give_up(task, of)
        raise
    await _obeyed(task, of)


@asynccontextmanager
async def _lasting_as(task: asyncio.Task[None], left: asyncio.Future[Exception | None]) -> AsyncIterator[None]:
    """Cancel the block where the task ends before it, with TimeoutError, and tell how the block was left."""
    async with asyncio.timeout(None) as block:

        def cut(_: asyncio.Task[None]) -> None:
            if not left.done():
                block.reschedule(asyncio.get_running_loop().time())

        task.add_done_callback(cut)
        try:
            yield
        except Exception as error:
            _tell(left, told=error)
            raise
        except BaseException:
            left.cancel()
            raise
        _tell(left)


def _begun(work: Awaitable[T], of: object) -> asyncio.Task[T]:
    if of is not None and len(_left_behind.get(id(of), ())) >= LEFT_BEHIND_MAX:
        if asyncio.iscoroutine(work):
            work.close()
        raise RuntimeError(f"{LEFT_BEHIND_MAX} of its works go on though they were cancelled")
    task = asyncio.create_task(_result(work))
    task.add_done_callback(_forget)
    return task


def _tell(waited: asyncio.Future[Any], _: object = None, *, told: object = None) -> None:
    if not waited.done():
        waited.set_result(told)


async def _obeyed(task: asyncio.Task[T], of: object) -> T:
    ended = asyncio.get_running_loop().create_future()  # cheaper than ``asyncio.wait``: every call of a chain comes by
    task.add_done_callback(functools.partial(_tell, ended))
    try:
        await ended
    except asyncio.CancelledError:
        await _give_up(task, of)
        raise
    return _told(task)


async def _give_up(task: asyncio.Task[Any], of: object) -> None:
    task.cancel()
    try:
        await asyncio.wait([task], timeout=GIVE_UP_S)
    finally:
        if not task.done():  # those that are ending, as many that are cancelled at once, are none left behind
            _leave_behind(task, of)


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
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise  # the last two end the process, or its loop
    except BaseException as error:
        words = words_of(error)
        if isinstance(error, Exception) and words:
            raise
        raise RuntimeError(f"it raised {words or type(error).__name__}") from error


def words_of(error: BaseException) -> str:
    """Return what a plugin's exception is called and says. Empty where saying it fails."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  a plugin may have written how
        return ""


def _forget(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # asked for, so that asyncio does not report that of a task left behind as lost
