"""Connections to prices, swaps and bridges that are opened again where they ended by themselves.

A background task of theirs that failed is one reason. Whoever holds what a plugin brought holds what stands for it, and
asks whatever is connected at the moment of the call.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Generic, TypeVar, cast

from cambist.plugin import BridgeProvider, PluginContext, PriceSource, SwapProvider

from .connect import Connector, ConnectProblem, Opener

REOPEN_FIRST_S = 1.0
REOPEN_MAX_S = 300.0
STABLE_S = 900.0
"""What was open for so long before it ended has its first pause again."""

Provider = TypeVar("Provider", PriceSource, SwapProvider, BridgeProvider)


class KeptConnection(Generic[Provider]):
    """One connection of a plugin, with all that it brings. ``kind`` is what that must be."""

    def __init__(
        self,
        plugin: str,
        opener: Opener[Provider],
        kind: type,
        context: PluginContext,
        report: Callable[[ConnectProblem], None],
    ) -> None:
        self._plugin = plugin
        self._opener: Opener[Any] = opener
        self._kind = kind
        self._context = context
        self._report = report
        self._ended = asyncio.Event()
        self._stack = AsyncExitStack()
        self._standing: dict[str, Any] = {}
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> Mapping[str, Provider]:
        """Return what stands for each thing that it brings, by name; nothing where it cannot be opened."""
        found = await self._open(self._stack)
        self._standing = {name: _standing_for(self._kind)(thing) for name, thing in found.items()}
        if found:
            self._task = asyncio.create_task(self._keep())
        return self._standing

    async def aclose(self) -> None:
        """Close what is open, and open nothing again."""
        try:
            if self._task is not None:
                self._task.cancel()
                await asyncio.wait([self._task])
        finally:
            await self._stack.aclose()

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s, opened_at = REOPEN_FIRST_S, loop.time()
        while True:
            await self._ended.wait()
            if loop.time() - opened_at >= STABLE_S:
                pause_s = REOPEN_FIRST_S
            await asyncio.sleep(pause_s)
            pause_s, opened_at = min(2 * pause_s, REOPEN_MAX_S), loop.time()
            self._ended.clear()
            async with AsyncExitStack() as stack:
                found = await self._open(stack)
                known = found.keys() & self._standing.keys()
                for name in known:
                    self._standing[name].connected = found[name]
                if known:  # what has ended has nothing to be closed any more
                    self._stack = stack.pop_all()
                else:
                    self._ended.set()

    async def _open(self, stack: AsyncExitStack) -> Mapping[str, Provider]:
        connector = Connector(stack, self._context, self._report, lambda _: self._ended.set())
        return await connector.open(self._plugin, [self._opener], lambda one: one.name, self._kind)


class _Standing:
    """Hands on whatever it is asked, also what its kind does not name."""

    def __init__(self, thing: Any) -> None:  # noqa: ANN401  of the kind that it stands for
        self.name = thing.name
        self.connected = thing

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  whatever that is
        return getattr(self.connected, name)


@functools.cache
def _standing_for(kind: type) -> Callable[[Any], Any]:
    members = {
        name: _handed_on(name)
        for base in kind.__mro__
        for name, member in vars(base).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
    return cast("Callable[[Any], Any]", type(kind)(f"Kept{kind.__name__}", (_Standing, kind), members))


def _handed_on(name: str) -> Callable[..., Any]:
    def call(self: _Standing, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  whatever the method takes
        return getattr(self.connected, name)(*args, **kwargs)

    return call
