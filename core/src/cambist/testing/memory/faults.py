"""What a test can make go wrong when a chain in memory is read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from cambist.plugin import (
    ChainUnavailableError,
    InconsistentChainError,
    RateLimitedError,
    SpanTooWideError,
)

Call: TypeAlias = Literal["view", "head", "block", "scan", "balance", "transaction"]


class MemoryFaults:
    """Switches, all off at first; each stays on until it is switched off.

    ``unavailable``: nobody answers. ``failing_calls``: so many more calls find nobody, then all is well.
    ``rate_limited_s``: the endpoint asks for this wait. ``inconsistent``: scans contradict themselves.
    ``span_max``: the node refuses longer spans. ``lag_blocks``: the endpoint knows nothing of the newest blocks.
    ``crash``: an exception that no plugin should raise. ``before``: awaited before each call with its name, so
    that a test can change the world in the middle of a look.
    """

    def __init__(self) -> None:
        """Start without any fault."""
        self.unavailable = False
        self.failing_calls = 0
        self.rate_limited_s: float | None = None
        self.inconsistent = False
        self.span_max: int | None = None
        self.lag_blocks = 0
        self.crash: Exception | None = None
        self.before: Callable[[Call], Awaitable[None]] | None = None

    async def meet(self, call: Call, *, span_length: int = 0) -> None:
        """Raise what this call runs into."""
        if self.before is not None:
            await self.before(call)
        if self.crash is not None:
            raise self.crash
        if self.failing_calls > 0:
            self.failing_calls -= 1
            msg = f"no endpoint answers {call}, and {self.failing_calls} more calls will fail"
            raise ChainUnavailableError(msg)
        if self.unavailable:
            msg = f"no endpoint answers {call}"
            raise ChainUnavailableError(msg)
        if self.rate_limited_s is not None:
            msg = "too many requests"
            raise RateLimitedError(msg, retry_after=self.rate_limited_s)
        if self.span_max is not None and span_length > self.span_max:
            msg = f"{span_length} blocks are more than {self.span_max}"
            raise SpanTooWideError(msg)
        if self.inconsistent and call == "scan":
            msg = "fewer receipts than transactions"
            raise InconsistentChainError(msg)
