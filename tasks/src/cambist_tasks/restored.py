"""Has a worker wait while its database is being restored.

Who begins to read a chain begins at its head, so that a restore would never find what came before. And what is sent,
or written as a manifest, would rest on half of the books.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from cambist.db.engine import Database
from cambist.services.recovery.unfinished import is_unfinished

log = structlog.get_logger(__name__)

ASKED_EVERY_S = 5.0
TOLD_EVERY = 12
"""How many times the database is asked for each time that it is told."""


class Restored:
    """Lets works begin once no restore is under way; a restore that begins later is refused by itself."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = asyncio.Lock()
        self._is_whole = False

    async def then(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work once the database is whole."""
        async with self._lock:
            await self._wait()
        await work()

    async def _wait(self) -> None:
        asked = 0
        while not self._is_whole:
            async with self._db.autocommit() as conn:
                self._is_whole = not await is_unfinished(conn)
            if self._is_whole:
                return
            if asked % TOLD_EVERY == 0:
                log.error("restore_unfinished", hint="let 'cambist restore' come to its end; this worker waits for it")
            asked += 1
            await asyncio.sleep(ASKED_EVERY_S)
