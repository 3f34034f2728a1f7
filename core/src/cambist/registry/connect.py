"""Opens plugins so that one that fails, hangs or closes badly is reported and touches no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeAlias, TypeVar

import structlog
from msgspec import Struct

from cambist.plugin import PluginContext

OPEN_TIMEOUT_S = 30
CLOSE_TIMEOUT_S = 10

T = TypeVar("T")
Opener: TypeAlias = tuple[Callable[[Any, PluginContext], AbstractAsyncContextManager[Sequence[T]]], Any]

_log = structlog.get_logger(__name__)


class ConnectProblem(Struct, frozen=True, kw_only=True):
    """What is wrong with one plugin's connection, in a sentence, and the exception behind it if there is one."""

    plugin: str
    message: str
    error: Exception | None


def log_problem(problem: ConnectProblem) -> None:
    _log.error("plugin.connect_failed", plugin=problem.plugin, problem=problem.message, exc_info=problem.error)


class Connector:
    """Opens connections that are closed with the stack, and reports what goes wrong instead of raising it."""

    def __init__(self, stack: AsyncExitStack, context: PluginContext, report: Callable[[ConnectProblem], None]) -> None:
        self._stack = stack
        self._context = context
        self._report = report

    def problem(self, name: str, text: str, error: Exception | None = None) -> None:
        self._report(ConnectProblem(plugin=name, message=text, error=error))

    async def open(
        self, name: str, openers: Sequence[Opener[T]], key: Callable[[T], str], expected: type
    ) -> dict[str, T]:
        """Open a plugin's connections and return what they bring, by its key."""
        brought: dict[str, T] = {}
        for connect, config in openers:
            try:
                async with asyncio.timeout(OPEN_TIMEOUT_S):
                    manager = connect(config, self._context)
                    things = await manager.__aenter__()
            except Exception as error:  # noqa: BLE001 - a plugin may raise anything, and only it is affected
                self.problem(name, f"it cannot connect: {type(error).__name__}: {error}", error)
                continue
            self._stack.push_async_callback(self._close, manager, name)
            try:
                for thing in things:
                    if not isinstance(thing, expected):
                        self.problem(name, f"connect() brought {thing!r}, which is no {expected.__name__}")
                    else:
                        brought[key(thing)] = thing
            except Exception as error:  # noqa: BLE001 - as above
                self.problem(name, f"connect() brought something unusable: {type(error).__name__}: {error}", error)
        return brought

    async def _close(self, manager: AbstractAsyncContextManager[Any], name: str) -> None:
        # Without the exception that may be on its way: it is not the plugin's, and a plugin must not swallow it.
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await manager.__aexit__(None, None, None)
        except Exception as error:  # noqa: BLE001 - as above
            self.problem(name, f"it cannot disconnect: {type(error).__name__}: {error}", error)
