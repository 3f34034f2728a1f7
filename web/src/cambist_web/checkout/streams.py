"""Streams of what an open page shows: now, whenever it changes, and with heartbeats in between."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from msgspec import Struct

from cambist.hints import Hints, Subscription
from cambist.ports import Clock

RETRY_S = 10
"""When to come again where there was no room."""


class CheckoutOptions(Struct, frozen=True, kw_only=True):
    """How many streams one worker serves and for how long, and how often they poll without a hint.

    ``heartbeat_s`` is below the minute after which common proxies drop a silent connection.
    """

    streams_max: int = 500
    streams_per_payment_max: int = 10
    poll_open_s: float = 3.0
    poll_late_s: float = 15.0
    heartbeat_s: float = 20.0
    lifetime_s: float = 900.0


class Shown(Struct, frozen=True, kw_only=True):
    """What a page shows at one moment.

    ``same`` is equal as long as there is nothing new to tell, and ``card`` draws it. ``pause_s`` says when to poll
    again without a hint. ``ended`` is there when nothing can change any more.
    """

    same: Any
    card: Callable[[], str]
    pause_s: float
    ended: str | None = None


ReadShown = Callable[[], Awaitable[Shown | None]]
"""Returns what is to be shown now, or None where there is nothing any more."""


class Streams:
    """One worker's streams. Each is of a topic of hints, such as ``payment:<public id>``."""

    def __init__(self, clock: Clock, hints: Hints, options: CheckoutOptions) -> None:
        self._clock = clock
        self._hints = hints
        self._options = options
        self._open: Counter[str] = Counter()
        self._closing = asyncio.Event()

    @property
    def count(self) -> int:
        """How many are open."""
        return self._open.total()

    def has_room(self, topic: str) -> bool:
        """Tell whether one more stream of this topic may be opened."""
        return (
            not self._closing.is_set()
            and self._open.total() < self._options.streams_max
            and self._open[topic] < self._options.streams_per_payment_max
        )

    def close(self) -> None:
        """End every stream; browsers come again, and find another worker or the next one."""
        self._closing.set()

    async def follow(self, topic: str, read: ReadShown) -> AsyncGenerator[bytes, None]:
        """Yield the card now and whenever it changes, heartbeats in between, and ``end`` when nothing can change.

        Ends by itself after ``lifetime_s``, as it does on ``close``; browsers then connect again. Ends at once
        where others took the room that there was when it was asked for: many may ask at the same moment.
        """
        if not self.has_room(topic):
            yield f"retry: {RETRY_S * 1000}\n\n".encode()
            return
        self._open[topic] += 1
        try:
            async with self._hints.subscribe(topic) as hints:
                async for event in self._follow(read, hints):
                    yield event
        finally:
            self._open[topic] -= 1
            if not self._open[topic]:
                del self._open[topic]

    async def _follow(self, read: ReadShown, hints: Subscription) -> AsyncGenerator[bytes, None]:
        started = spoken = self._clock.monotonic()
        before: Any = None
        while not self._closing.is_set() and self._clock.monotonic() - started < self._options.lifetime_s:
            shown = await read()
            if shown is None:
                break
            if shown.same != before:
                before, spoken = shown.same, self._clock.monotonic()
                yield event_bytes("card", shown.card())
            if shown.ended is not None:
                yield event_bytes("end", shown.ended)
                return
            if self._clock.monotonic() - spoken >= self._options.heartbeat_s:
                spoken = self._clock.monotonic()
                yield b": still here\n\n"
            await self._wait(hints, min(shown.pause_s, self._options.heartbeat_s))

    async def _wait(self, hints: Subscription, seconds: float) -> None:
        """Wait for a hint, for the time to pass, or for the end."""
        hint = asyncio.ensure_future(hints.wait(seconds))
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((hint, closing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            hint.cancel()
            closing.cancel()


def event_bytes(name: str, text: str) -> bytes:
    lines = "\n".join(f"data: {line}" for line in text.splitlines())
    return f"event: {name}\n{lines}\n\n".encode()
