"""How many requests the key may still send: 1inch counts them by account, and blocks what is too much."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Final

from cambist.plugin import ProviderUnavailableError

WAIT_MAX_S: Final = 5.0
"""A request that would wait for longer is refused at once: whoever asks has a deadline."""

BACKOFF_FIRST_S: Final = 1.0
BACKOFF_MAX_S: Final = 60.0
RETRY_AFTER_MAX_S: Final = 300.0
"""More than this no server is let ask for."""


class RequestBudget(ABC):
    """Shared by all who ask with one key. Another one may count over several processes."""

    @abstractmethod
    async def take(self) -> None:
        """Return when one request may be sent. Raises ProviderUnavailableError where that is too far away."""

    @abstractmethod
    def limited(self, retry_after: float) -> float:
        """Take note that the server wants fewer, and how long it said to wait; return after how long to ask again."""

    @abstractmethod
    def answered(self) -> None:
        """Take note that the server answers again."""


class TokenBucket(RequestBudget):
    """Counts in this process. It holds one token, so that no second sees more requests than it may, burst or not."""

    def __init__(
        self,
        per_second: int,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._interval_s = 1 / per_second
        self._monotonic = monotonic
        self._sleep = sleep
        self._free_at = monotonic()
        self._blocked_until = self._free_at
        self._refusals = 0

    async def take(self) -> None:
        self._check_blocked()
        now = self._monotonic()
        at = max(now, self._free_at)
        if at - now > WAIT_MAX_S:
            raise ProviderUnavailableError("1inch has more asked of it than our plan allows", retry_after=at - now)
        self._free_at = at + self._interval_s
        if at > now:
            await self._sleep(at - now)
            self._check_blocked()

    def limited(self, retry_after: float) -> float:
        backoff = min(BACKOFF_FIRST_S * (1 << min(self._refusals, 16)), BACKOFF_MAX_S)
        wait = max(backoff, retry_after)
        self._refusals += 1
        self._blocked_until = max(self._blocked_until, self._monotonic() + wait)
        return wait

    def answered(self) -> None:
        self._refusals = 0

    def _check_blocked(self) -> None:
        wait = self._blocked_until - self._monotonic()
        if wait > 0:
            raise ProviderUnavailableError("1inch asked for fewer requests", retry_after=wait)
