"""What a pool keeps of each endpoint, and what it asks of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from cambist.plugin import Block, ChainError, EndpointHealth, Head

MISSING_AGAIN_MAX: Final = 2
"""How often a block that is missing is asked for again at once: another node behind the same address may have it."""

AGAIN_S: Final = 600.0
"""How long nobody asks an endpoint for what it does not offer: it may be told to, or be another node by then."""


class Endpoint(ABC):
    """A node, or a provider's many nodes behind one address, and its record so far.

    ``strikes`` counts failures in a row; until ``retry_at`` it is left alone. ``verified`` says that it serves
    the right chain, ``lagging`` that the others are ahead, ``suspect`` that the others tell another chain's
    story.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.head: int | None = None
        self.calls = 0
        self.failures = 0
        self.rate_limited = 0
        self.position: int | None = None
        self.latency_ms: float | None = None
        self.strikes = 0
        self.retry_at = 0.0
        self.verified = False
        self.lagging = False
        self.suspect = False
        self.last_error: str | None = None

    def note_failure(self, error: ChainError) -> None:
        """Count a failure: those that did not fail are asked first from now on."""
        self.failures += 1
        self.strikes += 1
        self.last_error = str(error)

    def health(self, now: float) -> EndpointHealth:
        return EndpointHealth(
            name=self.name,
            healthy=self.strikes == 0 and now >= self.retry_at and not (self.lagging or self.suspect),
            head=self.head,
            calls=self.calls,
            failures=self.failures,
            last_error=self.last_error,
            position=self.position,
            rate_limited=self.rate_limited,
            set_aside=self._set_aside(now),
            latency_ms=self.latency_ms,
        )

    def _set_aside(self, now: float) -> str | None:
        if self.suspect:
            return "it tells other blocks than the other endpoints"
        if now < self.retry_at:
            return f"it failed {self.strikes} times in a row, and is asked again in {self.retry_at - now:.0f} s"
        return "the other endpoints are ahead of it" if self.lagging else None

    @abstractmethod
    async def verify(self) -> None:
        """Ask whether this is the chain it should be, and set ``verified``. Raises ChainUnavailableError."""

    @abstractmethod
    async def newest(self) -> Head:
        """Return the newest block, and set ``head``."""

    @abstractmethod
    async def block(self, height: int) -> Block:
        """Return the block at this height on the node's best chain. Raises InconsistentChainError for a missing one."""
