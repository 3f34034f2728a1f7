"""Keeps to the number of requests a second that a provider allows, so that it never has to refuse one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from cambist.plugin import RateLimitedError

WAIT_MAX_S: Final = 20.0


class Pace:
    """Lets ``per_second`` requests go within any second: all at once after a rest, else as the earlier ones age."""

    def __init__(
        self,
        per_second: int,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._sent: deque[float] = deque(maxlen=per_second)
        self._per_second = per_second
        self._monotonic = monotonic
        self._sleep = sleep

    async def wait(self, who: str) -> None:
        """Return when the next request may be sent. Raises RateLimitedError where too many wait already."""
        now = self._monotonic()
        at = now if len(self._sent) < self._per_second else max(now, self._sent[0] + 1)
        wait = at - now
        if wait > WAIT_MAX_S:
            raise RateLimitedError(f"{who} has more asked of it than it allows", retry_after=WAIT_MAX_S / 2)
        self._sent.append(at)
        if wait > 0:
            await self._sleep(wait)
