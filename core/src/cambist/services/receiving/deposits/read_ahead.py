"""The next span of a chain, read while the span before it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

from cambist.plugin import ChainError

from .checking import Scanned
from .cursors import Cursor

log = structlog.get_logger(__name__)


class ReadAhead:
    """One span at most. It is used only where it follows the cursor that is stored when its turn comes."""

    def __init__(self, chain: str) -> None:
        self._chain = chain
        self._task: asyncio.Task[Scanned] | None = None
        self._cursor: Cursor | None = None

    def start(self, cursor: Cursor, read: Coroutine[Any, Any, Scanned]) -> None:
        """Read what follows this cursor, which is about to be stored."""
        self._cursor, self._task = cursor, asyncio.create_task(read)

    async def take(self, cursor: Cursor) -> Scanned | None:
        """Return what follows the cursor, or None where it was not read: then the caller reads it itself."""
        if self._task is None or self._cursor != cursor:
            await self.drop()
            return None
        task, self._task = self._task, None
        try:
            return await task
        except ChainError as error:
            log.debug("read_ahead_failed", chain=self._chain, height=cursor.height, error=str(error))
            return None

    async def drop(self) -> None:
        """Give up what is being read, and forget it."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # asked for, so that asyncio does not report it as lost
