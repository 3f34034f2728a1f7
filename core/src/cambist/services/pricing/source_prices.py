"""What every price source said when all were last polled, for operators: kept, so that many who read poll seldom."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from cambist.domain.prices import Observation
from cambist.plugin import PricePair
from cambist.ports import Clock
from cambist.services.errors import TooManyError

KEPT_S = 30
"""So long a poll serves everybody who reads prices in its currency."""
ROUNDS_MAX = 6
"""How often in ``ROUNDS_WITHIN_S`` the sources are asked by one process, whatever the currencies."""
ROUNDS_WITHIN_S = 60


class Said(NamedTuple):
    """What each source said of each pair, and who gave no answer."""

    of: Mapping[PricePair, Sequence[Observation]]
    away: Collection[str]


class SourcePrices(Struct, frozen=True, kw_only=True):
    """What each source said of each pair, and when it was asked. Nothing is judged yet: who is set aside may change."""

    asked_at: datetime
    said: Mapping[PricePair, Sequence[Observation]]
    away: Collection[str]


class SourcePoller:
    """Keeps the last poll of each currency. One of those who come too late polls again, the others wait for that."""

    def __init__(self, ask: Callable[[Sequence[PricePair]], Awaitable[Said]], clock: Clock) -> None:
        """``ask`` asks every source about pairs of one currency."""
        self._ask = ask
        self._clock = clock
        self._kept: dict[str, tuple[SourcePrices, float]] = {}
        self._rounds: deque[float] = deque(maxlen=ROUNDS_MAX)
        self._asking = asyncio.Lock()

    async def poll(self, symbols: Sequence[str], currency: str) -> SourcePrices:
        """Return what the sources say, at most ``KEPT_S`` old. While they were asked too often, an older poll.

        Raises TooManyError where there is no older one.
        """
        pairs = [(symbol, currency) for symbol in symbols]
        if (fresh := self._fresh(pairs, currency)) is not None:
            return fresh
        async with self._asking:
            if (fresh := self._fresh(pairs, currency)) is not None:
                return fresh
            now = self._clock.monotonic()
            free_in_s = self._rounds[0] + ROUNDS_WITHIN_S - now if len(self._rounds) == ROUNDS_MAX else 0.0
            if free_in_s > 0:
                if currency in self._kept:
                    return self._kept[currency][0]
                words = f"Prices in {currency.upper()} cannot be looked up now: the sources were asked too often."
                raise TooManyError("RATE_LIMITED", words, retry_after_s=math.ceil(free_in_s))
            self._rounds.append(now)
            asked_at, told = self._clock.now(), await self._ask(pairs)
            polled = SourcePrices(asked_at=asked_at, said=told.of, away=told.away)
            self._kept[currency] = polled, now
            return polled

    def _fresh(self, pairs: Sequence[PricePair], currency: str) -> SourcePrices | None:
        polled, asked_at = self._kept.get(currency, (None, 0.0))
        if polled is None or self._clock.monotonic() - asked_at >= KEPT_S or not polled.said.keys() >= set(pairs):
            return None
        return polled
