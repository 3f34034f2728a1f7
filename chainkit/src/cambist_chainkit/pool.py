"""Which of a chain's endpoints to ask: failover with back-off, and setting aside those that lag or lie.

Nothing runs on a timer. A poll of the chain that finds the last survey to be old starts a new one in the
background: each endpoint tells which chain it serves and its head, and the hash of a block that all must share.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

from cambist.plugin import (
    ChainError,
    ChainUnavailableError,
    EndpointHealth,
    InconsistentChainError,
    PluginContext,
    RateLimitedError,
    SpanTooWideError,
    StateUnavailableError,
)

from .gathering import gather_all
from .record import Endpoint

E = TypeVar("E", bound=Endpoint)
T = TypeVar("T")

BACKOFF_FIRST_S: Final = 0.5
BACKOFF_MAX_S: Final = 30.0
SURVEY_INTERVAL_S: Final = 10.0
SURVEY_TIMEOUT_S: Final = 3.0
LIAR_STRIKES: Final = 5
# Whoever tells of it says of which chain it is.
NOBODY_NOW: Final = "no endpoint can be asked now"


async def answer_of(endpoint: Endpoint, answer: Awaitable[T]) -> T:
    """Await what an endpoint answers. Raises ChainError and nothing else, so that each failure counts against it.

    Answers can be broken in ways that no decoder foresees, and what it then stumbles over is their fault: an address
    that is none, too.
    """
    try:
        return await answer
    except ChainError:
        raise
    except Exception as error:
        message = f"{endpoint.name} answered what cannot be read ({type(error).__name__})"
        raise InconsistentChainError(message) from error


async def undivided(answer: Awaitable[T]) -> T:
    """Await what nobody can ask for in smaller parts. Who finds it too much is of no use now: the next one is asked."""
    try:
        return await answer
    except SpanTooWideError as error:
        raise ChainUnavailableError(str(error)) from error


class EndpointPool(Generic[E]):
    """All endpoints of one chain, in the operator's order of preference.

    One that is more than ``lag_blocks_max`` behind the others is set aside.
    """

    def __init__(self, chain: str, endpoints: Sequence[E], context: PluginContext, *, lag_blocks_max: int) -> None:
        self.endpoints = endpoints
        for position, endpoint in enumerate(endpoints):
            endpoint.position = position
        self.chain = chain
        self._lag_blocks_max = lag_blocks_max
        self._now: Callable[[], float] = context.monotonic
        self._random = context.random
        self._surveyed_at: float | None = None
        self._survey: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def pin(self) -> AsyncIterator[E]:
        """Lend the endpoint in the best shape. A ChainError that leaves the context counts against it."""
        await self._survey_when_due()
        endpoint = await self._pick()
        try:
            yield endpoint
        except ChainError as error:
            self.blame(endpoint, error)
            raise
        endpoint.strikes = 0

    async def _pick(self) -> E:
        for endpoint in self.usable():
            if await self.trusted(endpoint):
                return endpoint
        now = self._now()
        waiting = min((endpoint.retry_at for endpoint in self.endpoints), default=now)
        told = "; ".join(str(endpoint.last_error) for endpoint in self.endpoints if endpoint.last_error)
        message = f"no endpoint can be asked for {max(waiting - now, 0):.1f} s: {told}"
        raise ChainUnavailableError(message)

    def usable(self) -> list[E]:
        """Return the endpoints that may be asked now, best first: up to date, then by failures, then as listed."""
        ready = [endpoint for endpoint in self._rested() if not endpoint.suspect]
        return sorted(ready, key=lambda endpoint: (endpoint.lagging, endpoint.strikes))

    def _rested(self) -> list[E]:
        now = self._now()
        return [endpoint for endpoint in self.endpoints if now >= endpoint.retry_at]

    async def trusted(self, endpoint: E) -> bool:
        """Return whether the endpoint serves the right chain, asking it once."""
        if not endpoint.verified:
            try:
                await undivided(answer_of(endpoint, endpoint.verify()))
            except ChainError as error:
                self.blame(endpoint, error)
                return False
        return True

    def blame(self, endpoint: E, error: ChainError, *, strikes: int = 1) -> None:
        """Count a failure and leave the endpoint alone for a while, twice as long after each in a row.

        A refused span is no failure: the endpoint answers narrower questions. Nor is a state that it does not keep.
        """
        if isinstance(error, (SpanTooWideError, StateUnavailableError)):
            return
        endpoint.note_failure(error)
        endpoint.strikes = max(endpoint.strikes, strikes)
        endpoint.verified = False
        wait = min(BACKOFF_FIRST_S * 2 ** min(endpoint.strikes - 1, 16), BACKOFF_MAX_S)
        if isinstance(error, RateLimitedError):
            endpoint.rate_limited += 1
            wait = max(wait, error.retry_after)
        # Jitter, so that workers that failed together do not come back together.
        endpoint.retry_at = self._now() + wait * self._random.uniform(1.0, 1.25)

    def health(self) -> Sequence[EndpointHealth]:
        """Return how each endpoint is doing, best first."""
        now = self._now()
        ranked = sorted(self.endpoints, key=lambda one: (now < one.retry_at, one.lagging, one.strikes))
        return [endpoint.health(now) for endpoint in ranked]

    async def ask_all(self, ask: Callable[[E], Awaitable[T]]) -> list[T]:
        """Return the answers of all endpoints that have one. Raises ChainUnavailableError where none has."""
        failed: list[str] = []

        async def answer(endpoint: E) -> list[T]:
            if not await self.trusted(endpoint):
                return []
            try:
                return [await answer_of(endpoint, ask(endpoint))]
            except ChainError as error:
                self.blame(endpoint, error)
                failed.append(str(error))
                return []

        answers: list[list[T]] = await gather_all(*map(answer, self.usable()))
        found = [one for some in answers for one in some]
        if not found:
            raise ChainUnavailableError("; ".join(failed)) if failed else self._nobody()
        return found

    async def ask_any(self, ask: Callable[[E], Awaitable[T]], good: Callable[[T], bool] = lambda _: True) -> T:
        """Return the first good answer, else the last answer, else the last error."""
        error: ChainError = self._nobody()
        answers: list[T] = []
        for endpoint in self.usable():
            if not await self.trusted(endpoint):
                continue
            try:
                answer = await answer_of(endpoint, ask(endpoint))
            except ChainError as failed:
                self.blame(endpoint, failed)
                error = failed
                continue
            if good(answer):
                return answer
            answers.append(answer)
        if answers:
            return answers[-1]
        raise error

    def _nobody(self) -> ChainUnavailableError:
        """Return the error for when all endpoints are set aside, with what each was set aside for."""
        told = "; ".join(endpoint.last_error for endpoint in self.endpoints if endpoint.last_error)
        return ChainUnavailableError(f"{NOBODY_NOW}: {told}" if told else NOBODY_NOW)

    async def close(self) -> None:
        """End a survey that is under way."""
        if self._survey is not None:
            self._survey.cancel()
            await asyncio.gather(self._survey, return_exceptions=True)

    async def _survey_when_due(self) -> None:
        """Start a survey where the last one is old. Only the first is waited for, since nothing is known before it."""
        if len(self.endpoints) == 1 or (self._survey is not None and not self._survey.done()):
            return
        first = self._surveyed_at is None
        if self._surveyed_at is not None and self._now() - self._surveyed_at < SURVEY_INTERVAL_S:
            return
        self._surveyed_at = self._now()
        self._survey = asyncio.create_task(self.survey())
        if first:
            await asyncio.shield(self._survey)

    async def survey(self) -> None:
        """Compare all endpoints that may be asked with each other."""
        asked = self._rested()
        greeted = await asyncio.gather(*map(self._greet, asked))
        answered = await self._with_heads([one for one, answers in zip(asked, greeted, strict=True) if answers])
        best = max((endpoint.head or 0 for endpoint in answered), default=0)
        for endpoint in answered:
            endpoint.lagging = best - (endpoint.head or 0) > self._lag_blocks_max
            if endpoint.lagging:
                endpoint.last_error = f"{endpoint.name} is {best - (endpoint.head or 0)} blocks behind"
        await self._compare([endpoint for endpoint in answered if not endpoint.lagging])

    async def _with_heads(self, endpoints: Sequence[E]) -> list[E]:
        """Leave out whoever is far ahead of all others by what it says, and has no such block."""

        async def show(endpoint: E) -> None:
            await endpoint.block(endpoint.head or 0)

        found = sorted(endpoints, key=lambda endpoint: endpoint.head or 0)
        while len(found) > 1 and (found[-1].head or 0) - (found[-2].head or 0) > self._lag_blocks_max:
            if await self._survived(found[-1], show):
                break
            found.pop()
        return found

    async def _greet(self, endpoint: E) -> bool:
        async def greet(asked: E) -> None:
            await asked.verify()
            await asked.newest()

        return await self._survived(endpoint, greet)

    async def _survived(self, endpoint: E, ask: Callable[[E], Awaitable[None]]) -> bool:
        try:
            async with asyncio.timeout(SURVEY_TIMEOUT_S):
                await undivided(answer_of(endpoint, ask(endpoint)))
        except TimeoutError:
            self.blame(endpoint, ChainUnavailableError(f"{endpoint.name} did not answer in {SURVEY_TIMEOUT_S} s"))
        except ChainError as error:
            self.blame(endpoint, error)
        else:
            return True
        return False

    async def _compare(self, endpoints: Sequence[E]) -> None:
        """Set aside those whose block at a common height is not the majority's; all, where there is no majority.

        They stay aside until a later survey finds them in agreement: waiting makes nobody honest.
        """
        if len(endpoints) <= 1:
            return
        # Some blocks below the lowest head, because near it honest nodes may differ for a moment.
        height = max(min(endpoint.head or 0 for endpoint in endpoints) - self._lag_blocks_max, 0)
        hashes: dict[E, str] = {}

        async def ask(endpoint: E) -> None:
            hashes[endpoint] = (await endpoint.block(height)).hash

        await asyncio.gather(*(self._survived(endpoint, ask) for endpoint in endpoints))
        votes = Counter(hashes.values()).most_common(1)
        right = votes[0][0] if votes and votes[0][1] * 2 > len(hashes) else None
        for endpoint, found in hashes.items():
            endpoint.suspect = found != right
            if endpoint.suspect:
                message = f"{endpoint.name} has another block {height} than " + (
                    "the other endpoints" if right else "another endpoint, and no majority tells who is right"
                )
                self.blame(endpoint, InconsistentChainError(message))
