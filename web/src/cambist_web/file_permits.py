"""How many files of one process read from the database at once: the others wait, without a connection of anybody's.

What is counted before a file begins has permits of its own: a count may take ten seconds, and keeps no file waiting
that has begun, and of one merchant or operator only one goes on at a time. Whoever waits too long is told so, as where
the database is busy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import BusyError, Database

COUNTS_AT_ONCE = 2
READS_AT_ONCE = 3
COUNT_WAIT_S = 20.0
READ_WAIT_S = 60.0
"""A file that has begun is cut off where it waits for longer, so that whoever reads it is not left hanging."""


class FilePermits:
    """The permits of one process."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.counts = asyncio.Semaphore(COUNTS_AT_ONCE)
        self.reads = asyncio.Semaphore(READS_AT_ONCE)
        self._own: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def counting(self, who: str) -> AsyncIterator[AsyncConnection]:
        """Give a transaction in which is counted how much a file of theirs would hold. Raises BusyError."""
        own = self._own.get(who) or asyncio.Lock()
        self._own[who] = own
        async with _permit(own, COUNT_WAIT_S), _permit(self.counts, COUNT_WAIT_S), self._db.transaction() as conn:
            yield conn

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Give a transaction in which the next part of a file is read. Raises BusyError."""
        async with _permit(self.reads, READ_WAIT_S), self._db.transaction() as conn:
            yield conn


@asynccontextmanager
async def _permit(permits: asyncio.Semaphore | asyncio.Lock, wait_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(wait_s):
            await permits.acquire()
    except TimeoutError as error:
        raise BusyError from error
    try:
        yield
    finally:
        permits.release()
