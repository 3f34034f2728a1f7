"""When price sources are asked, and about what at a time, so that no crowd of callers floods them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

from cambist.plugin import PricePair
from cambist.ports import Clock

Ask: TypeAlias = Callable[[Sequence[PricePair]], Coroutine[Any, Any, None]]
Choose: TypeAlias = Callable[[Sequence[PricePair], Collection[PricePair]], Sequence[PricePair]]
Sleep: TypeAlias = Callable[[float], Awaitable[None]]


class PacedQuestions:
    """Gathers pairs that are wanted and asks about many at once: ``burst`` times in a row, then every ``gap_s``."""

    def __init__(  # noqa: PLR0913  how often, about what, and by which time
        self, ask: Ask, choose: Choose, clock: Clock, *, gap_s: float, burst: int, sleep: Sleep = asyncio.sleep
    ) -> None:
        """``choose`` gets the wanted pairs, those of each caller in turn, and those being asked about.

        It returns what the next question is about, none of which is being asked about. What it leaves waits for the
        question after that.
        """
        self._ask = ask
        self._choose = choose
        self._clock = clock
        self._sleep = sleep
        self._gap_s = gap_s
        self._ahead_s = (burst - 1) * gap_s
        self._due = float("-inf")
        self._wanted: dict[PricePair, asyncio.Future[None]] = {}
        self._wanted_by: dict[str, dict[PricePair, None]] = {}
        self._asked: dict[PricePair, asyncio.Future[None]] = {}
        self._pace: asyncio.Task[None] | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def is_free(self) -> bool:
        """Whether a question may be asked at once."""
        return self._due <= self._clock.monotonic()

    def want(self, pair: PricePair, asked_by: str) -> asyncio.Future[None]:
        """Have the pair be asked about, and return what is done as soon as that is answered. Shield it."""
        if (asked := self._asked.get(pair)) is not None:
            return asked
        self._wanted_by.setdefault(asked_by, {})[pair] = None
        if pair not in self._wanted:
            self._wanted[pair] = asyncio.get_running_loop().create_future()
        if self._pace is None or self._pace.done():
            # A task begins after whatever is ready to run: what is wanted at once is one question.
            self._pace = asyncio.create_task(self._keep_asking())
        return self._wanted[pair]

    async def _keep_asking(self) -> None:
        while self._wanted:
            wait_s = self._due - self._clock.monotonic()
            if wait_s > 0:
                await self._sleep(wait_s)
            self._ask_next()

    def _ask_next(self) -> None:
        now = self._clock.monotonic()
        self._due = min(max(self._due, now - self._ahead_s), now) + self._gap_s
        one_of_each = zip_longest(*self._wanted_by.values())
        wanted = list(dict.fromkeys(pair for some in one_of_each for pair in some if pair is not None))
        pairs = self._choose(wanted, self._asked.keys())
        loop = asyncio.get_running_loop()
        futures = {pair: self._wanted.pop(pair) if pair in self._wanted else loop.create_future() for pair in pairs}
        unserved: dict[str, dict[PricePair, None]] = {}
        served: dict[str, dict[PricePair, None]] = {}
        for who, queue in self._wanted_by.items():
            if left := {pair: None for pair in queue if pair not in futures}:
                (unserved if len(left) == len(queue) else served)[who] = left
        # Whoever came to nothing is first in the next one, however many others want something.
        self._wanted_by = unserved | served
        self._asked |= futures
        task = asyncio.create_task(self._ask(pairs))
        self._under_way.add(task)
        task.add_done_callback(lambda done: self._end(done, futures))

    def _end(self, task: asyncio.Task[None], futures: dict[PricePair, asyncio.Future[None]]) -> None:
        self._under_way.discard(task)
        for pair, future in futures.items():
            del self._asked[pair]
            if task.cancelled():
                future.cancel()
            elif (error := task.exception()) is not None:
                future.set_exception(error)
                future.exception()  # asked for, so that asyncio does not report it as lost where nobody waits
            else:
                future.set_result(None)
