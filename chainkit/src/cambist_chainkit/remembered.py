"""A value that is read again only when it has grown old."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """Those who ask at once share one read."""

    def __init__(self, read: Callable[[], Awaitable[T]], monotonic: Callable[[], float], *, seconds: float) -> None:
        """Keep how to read it. Nothing is read yet."""
        self._read = read
        self._now = monotonic
        self._seconds = seconds
        self._reading = asyncio.Lock()
        self._seen: tuple[float, T] | None = None

    async def now(self) -> T:
        """Return the value, as old as it may be. Raises what reading it raises."""
        async with self._reading:
            asked_at = self._now()
            if self._seen is None or asked_at - self._seen[0] >= self._seconds:
                self._seen = (asked_at, await self._read())
            return self._seen[1]
