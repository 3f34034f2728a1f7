"""A Valkey of a test's own, which can be killed; it keeps nothing on disk, so it comes back empty."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from cambist.embedded.valkey import EmbeddedValkey

ALIVE_S, GONE_S = (0.5, 4), 1.5


class MortalValkey(EmbeddedValkey):
    def kill(self) -> None:
        """Kill it with no chance to clean up; ``start`` brings it back, empty, at the same address."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    @asynccontextmanager
    async def gone(self) -> AsyncIterator[None]:
        """Kill it, and have it back, empty, at the end."""
        self.kill()
        try:
            yield
        finally:
            await asyncio.to_thread(self.start)

    @asynccontextmanager
    async def dying(self) -> AsyncIterator[None]:
        """Kill it as a story begins, and again a little later; each time it is back, empty, after a while."""

        async def kill() -> None:
            for alive_s in ALIVE_S:
                await asyncio.sleep(alive_s)
                async with self.gone():
                    await asyncio.sleep(GONE_S)

        killing = asyncio.create_task(kill())
        yield
        await killing


@contextmanager
def mortal_valkey(folder: Path) -> Iterator[MortalValkey]:
    server = MortalValkey(folder, os.urandom)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="package")
def valkey_by_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MortalValkey]:
    """Give a folder a Redis of its own, which a story can kill: its conftest imports this as ``valkey``."""
    with mortal_valkey(tmp_path_factory.mktemp("redis")) as valkey:
        yield valkey


@pytest.fixture(scope="module")
def story_redis_url(valkey: MortalValkey) -> str:
    """Have the folder's gateways use it."""
    return valkey.url
