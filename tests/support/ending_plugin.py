"""A chain plugin whose connections end by themselves, as where a background task fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from cambist.plugin import AnyChainPlugin, Chain, ChainUnavailableError, PluginContext, hookimpl
from cambist.testing.memory import MemoryChain, MemoryConfig, MemoryPlugin

FAILS_AT_ONCE: list[bool] = []
"""As many of the next connections end at the moment when they are open."""


class EndingChain(MemoryChain):
    """Nobody answers it any more once its connection has ended."""


class EndingPlugin(MemoryPlugin):
    """``fail`` ends the connections that are open; none can be opened while it ``refuses``, or while it ``hangs``."""

    name = "ending"

    def __init__(self) -> None:
        super().__init__()
        self.opened = 0
        self.refuses = False
        self.hangs: asyncio.Event | None = None
        self._failing = asyncio.Event()

    def fail(self) -> None:
        self._failing.set()
        self._failing = asyncio.Event()

    @asynccontextmanager
    async def connect(self, config: MemoryConfig, context: PluginContext) -> AsyncIterator[Sequence[Chain]]:
        del context
        self.opened += 1
        if self.hangs is not None:
            await self.hangs.wait()
        if self.refuses:
            raise ChainUnavailableError("nobody is there")
        chains = [EndingChain(info) for info in self.chains(config) if info.availability == "live"]
        failing = self._failing
        if FAILS_AT_ONCE:
            FAILS_AT_ONCE.pop()
            failing = asyncio.Event()
            failing.set()

        async def run() -> None:
            await failing.wait()
            for chain in chains:
                chain.faults.unavailable = True
            raise KeyError("result")

        async with asyncio.TaskGroup() as group:
            running = group.create_task(run())
            await asyncio.sleep(0)
            yield chains
            running.cancel()


PLUGINS: list[EndingPlugin] = []


@hookimpl
def register_chains() -> Sequence[AnyChainPlugin]:
    """Bring a new one each time, and remember it for whoever ends its connections."""
    PLUGINS.append(EndingPlugin())
    return [PLUGINS[-1]]
