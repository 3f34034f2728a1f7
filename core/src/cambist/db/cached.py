"""What is read seldom and asked for often: one process's copy of it, never older than so many seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.ports import Clock

from .engine import Database

T = TypeVar("T")


class Cached(Generic[T]):
    """What ``load`` reads, never older than ``ttl_s``."""

    def __init__(
        self, db: Database, clock: Clock, load: Callable[[AsyncConnection], Awaitable[T]], ttl_s: float
    ) -> None:
        self._db = db
        self._clock = clock
        self._load = load
        self._ttl_s = ttl_s
        self._found: tuple[T, float] | None = None
        self._reading = asyncio.Lock()

    async def get(self) -> T:
        """Return it. One of those who come too late reads it again, the others wait for that."""
        if (fresh := self._fresh()) is not None:
            return fresh[0]
        async with self._reading:
            if (fresh := self._fresh()) is not None:
                return fresh[0]
            read_at = self._clock.monotonic()
            async with self._db.autocommit() as conn:
                found = await self._load(conn)
            self._found = found, read_at
            return found

    def forget(self) -> None:
        """Read it again next time: this process has changed it."""
        self._found = None

    def _fresh(self) -> tuple[T, float] | None:
        found = self._found
        return found if found is not None and self._clock.monotonic() - found[1] < self._ttl_s else None
