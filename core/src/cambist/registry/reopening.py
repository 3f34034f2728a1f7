"""Price sources whose connection ended by itself, as by a background task that failed, and is opened again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager

from cambist.plugin import Price, PricePair, PriceSource

from .connect import Connector, Opener

REOPEN_FIRST_S = 1.0
REOPEN_MAX_S = 300.0
STABLE_S = 900.0
"""What was open for so long before it ended has its first pause again."""


class _Kept(PriceSource):
    """Stands for a source, whichever connection it is asked on."""

    def __init__(self, source: PriceSource) -> None:
        self.name = source.name  # type: ignore[misc]
        self.source = source

    async def prices(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        return await self.source.prices(pairs)


class SourceKeeper:
    """Puts what is opened again into the place of what has ended, while it is ``running``."""

    def __init__(self) -> None:
        self._ended: asyncio.Queue[str] = asyncio.Queue()
        self._kept: dict[str, tuple[_Kept, str, Sequence[Opener[PriceSource]]]] = {}
        self._reopening: dict[str, asyncio.Task[None]] = {}
        self._pauses: dict[str, tuple[float, float]] = {}

    def has_ended(self, name: str) -> None:
        """Hear that the connection of this source has ended."""
        self._ended.put_nowait(name)

    def keep(self, source: PriceSource, plugin: str, openers: Sequence[Opener[PriceSource]]) -> PriceSource:
        """Return what stands for a source of this plugin from now on."""
        kept = _Kept(source)
        self._kept[kept.name] = kept, plugin, openers
        return kept

    @asynccontextmanager
    async def running(self, connector: Connector) -> AsyncIterator[None]:
        """Open again what ends, until the block does."""
        watching = asyncio.create_task(self._watch(connector))
        try:
            yield
        finally:
            tasks = {watching, *self._reopening.values()}
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _watch(self, connector: Connector) -> None:
        while True:
            name = await self._ended.get()
            if name in self._kept and name not in self._reopening:
                self._reopening[name] = asyncio.create_task(self._reopen(connector, name))

    async def _reopen(self, connector: Connector, name: str) -> None:
        kept, plugin, openers = self._kept[name]
        loop = asyncio.get_running_loop()
        pause_s, opened_at = self._pauses.get(name, (REOPEN_FIRST_S, loop.time()))
        if loop.time() - opened_at >= STABLE_S:
            pause_s = REOPEN_FIRST_S
        try:
            while True:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, REOPEN_MAX_S)
                found = await connector.open(plugin, openers, lambda one: one.name, PriceSource)
                if name in found:
                    kept.source = found[name]
                    break
        finally:
            self._pauses[name] = pause_s, loop.time()
            del self._reopening[name]
