"""Opens plugins so that one that fails, hangs, ends or closes badly is reported and touches no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import structlog
from msgspec import Struct

from cambist.deadlines import words_of
from cambist.plugin import PluginContext

OPEN_TIMEOUT_S = 30
CLOSE_TIMEOUT_S = 10
GIVE_UP_TIMEOUT_S = 1
"""How long a connection that is given up may take to end. One that does not is left behind."""

T = TypeVar("T")
Opener: TypeAlias = tuple[Callable[[Any, PluginContext], AbstractAsyncContextManager[Sequence[T]]], Any]

_log = structlog.get_logger(__name__)


class ConnectProblem(Struct, frozen=True, kw_only=True):
    """What is wrong with one plugin's connection, in a sentence, and the exception behind it if there is one."""

    plugin: str
    message: str
    error: BaseException | None


def log_problem(problem: ConnectProblem) -> None:
    _log.error("plugin.connect_failed", plugin=problem.plugin, problem=problem.message, exc_info=problem.error)


class Connector:
    """Opens connections that are closed with the stack, and reports what goes wrong instead of raising it."""

    def __init__(
        self,
        stack: AsyncExitStack,
        context: PluginContext,
        report: Callable[[ConnectProblem], None],
        ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Tell ``ended`` of each thing, by its key, whose connection has ended before it was closed."""
        self._stack = stack
        self._context = context
        self._report = report
        self._ended = ended

    def problem(self, name: str, text: str, error: BaseException | None = None) -> None:
        self._report(ConnectProblem(plugin=name, message=text, error=error))

    async def open(
        self, name: str, openers: Sequence[Opener[T]], key: Callable[[T], str], expected: type
    ) -> dict[str, T]:
        """Open a plugin's connections and return what they bring, by its key."""
        brought: dict[str, T] = {}
        for connect, config in openers:
            own: list[str] = []
            kept = _KeptOpen(partial(connect, config, self._context), partial(self._has_ended, name, own))
            try:
                things = await kept.open()
            except _FailedError as failed:
                self.problem(name, f"it cannot connect: {failed}", failed.error)
                continue
            self._stack.push_async_callback(self._close, kept, name)
            try:
                for thing in things:
                    if not isinstance(thing, expected):
                        self.problem(name, f"connect() brought {thing!r}, which is no {expected.__name__}")
                    else:
                        brought[key(thing)] = thing
                        own.append(key(thing))
            except Exception as error:  # noqa: BLE001 - a plugin may bring anything, and only it is affected
                self.problem(name, f"connect() brought something unusable: {_words(error)}", error)
            if kept.has_ended:  # before it was known what it brings
                for each in own:
                    self._ended(each)
        return brought

    async def _close(self, kept: _KeptOpen[Any], name: str) -> None:
        try:
            await kept.close()
        except _FailedError as failed:
            self.problem(name, f"it cannot disconnect: {failed}", failed.error)

    def _has_ended(self, name: str, own: Sequence[str], error: BaseException | None) -> None:
        why = "" if error is None else f": {_words(error)}"
        self.problem(name, f"its connection has ended by itself{why}", error)
        for key in own:
            self._ended(key)


class _FailedError(Exception):
    """A plugin has raised something, whatever that is."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(_words(error))
        self.error = error


def _words(error: BaseException) -> str:
    return words_of(error) or type(error).__name__


class _KeptOpen(Generic[T]):
    """A plugin's connection, which is opened, kept and closed in one task of its own.

    A plugin's task group cancels the task that it was opened in when one of its tasks fails, and what a plugin raises
    as a cancellation looks like one of whoever awaits it: neither may be the gateway's own. Nor does a plugin see, and
    could swallow, the exception with which the gateway itself ends.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[Sequence[T]]],
        ended: Callable[[BaseException | None], None],
    ) -> None:
        """Nothing is opened yet. ``ended`` hears of one that ends before it is closed, and what it ended with."""
        self._connect = connect
        self._ended = ended
        self._things: asyncio.Future[Sequence[T]] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._error: BaseException | None = None
        self.has_ended = False
        """Whether it ended before it was closed."""
        self._task: asyncio.Task[None] | None = None

    async def _keep(self) -> None:
        try:
            async with self._connect() as things:
                self._things.set_result(things)
                await self._closing.wait()
        except (KeyboardInterrupt, GeneratorExit):
            raise  # the process, or its loop, ends
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, and only it is affected
            self._error = error
        if self._things.done() and not self._closing.is_set():
            self.has_ended = True
            self._ended(self._error)

    async def open(self) -> Sequence[T]:
        """Return what it brings. Raises _FailedError."""
        self._task = asyncio.create_task(self._keep())
        either: list[asyncio.Future[Any]] = [self._task, self._things]
        try:
            await asyncio.wait(either, timeout=OPEN_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._give_up(self._task)
            raise
        if self._things.done():
            return self._things.result()
        if self._task.done():
            raise _FailedError(self._error or RuntimeError("it brought nothing"))
        await self._give_up(self._task)
        raise _FailedError(TimeoutError())

    async def close(self) -> None:
        """Close it, unless it has ended. Raises _FailedError."""
        if self._task is None or self._task.done():
            return
        self._closing.set()
        try:
            await asyncio.wait([self._task], timeout=CLOSE_TIMEOUT_S)
        finally:
            closed = self._task.done()
            if not closed:
                await self._give_up(self._task)
        if not closed:
            raise _FailedError(TimeoutError())
        if self._error is not None:
            raise _FailedError(self._error)

    async def _give_up(self, task: asyncio.Task[None]) -> None:
        self._closing.set()
        task.cancel()
        await asyncio.wait([task], timeout=GIVE_UP_TIMEOUT_S)
