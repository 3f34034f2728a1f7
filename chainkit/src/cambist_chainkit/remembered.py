"""Values that are read again only when they have grown old."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class Remembered(Generic[T]):
    """Those who ask at once share one read."""

    def __init__(self, read: Callable[[], Awaitable[T]], monotonic: Callable[[], float], *, seconds: float) -> None:
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


class RememberedByKey(Generic[K, T]):
    """A value for each key. Beyond ``keys_max``, those that were not asked for the longest are forgotten."""

    def __init__(
        self, read: Callable[[K], Awaitable[T]], monotonic: Callable[[], float], *, seconds: float, keys_max: int
    ) -> None:
        self._read = read
        self._monotonic = monotonic
        self._seconds = seconds
        self._keys_max = keys_max
        self._values: OrderedDict[K, Remembered[T]] = OrderedDict()

    async def now(self, key: K) -> T:
        """Return the key's value, as old as it may be. Raises what reading it raises."""
        remembered = self._values.pop(key, None)
        if remembered is None:
            remembered = Remembered(partial(self._read, key), self._monotonic, seconds=self._seconds)
        self._values[key] = remembered
        if len(self._values) > self._keys_max:
            self._values.popitem(last=False)
        return await remembered.now()
