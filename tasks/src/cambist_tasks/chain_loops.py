"""What watching and sending on a chain share: waiting for the lease, and pausing after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from msgspec import Struct

from cambist.domain.troubles import Trouble, trouble_with
from cambist.plugin import Chain, RateLimitedError
from cambist.services.sending.failures import EXPECTED

from .leases import Leases
from .supervision import Backoff

log = structlog.get_logger(__name__)

TAKE_OVER_S = 1.0
"""How often a worker tries to take a lease that another worker holds."""
PAUSE_FIRST_S = 0.5
PAUSE_MAX_S = 30.0
PAUSE_ASKED_MAX_S = 300.0
"""An endpoint that asks for more than this is asked again all the same."""


class LoopState(Struct, kw_only=True):
    """How the loop of one chain goes, for metrics and operators. ``error`` is what it fails with, and has a code."""

    chain: Chain
    failing: bool = False
    failures: int = 0
    error: str | None = None
    error_code: Trouble | None = None


async def run_while_leased(leases: Leases, name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work whenever this worker holds the lease, until cancelled; the work ends when the lease is lost."""
    try:
        while True:
            if await leases.take(name):
                await work()
            await asyncio.sleep(TAKE_OVER_S)
    finally:
        await leases.release(name)


class Pauses:
    """How long a chain is left alone after one failure and the next. One chain's trouble is nobody else's."""

    def __init__(self, state: LoopState, event: str) -> None:
        self._state = state
        self._event = event
        self._backoff = Backoff(PAUSE_FIRST_S, PAUSE_MAX_S)

    def after(self, error: Exception) -> float:
        """Count and log a failure; return the seconds until the next try."""
        self._state.failures += 1
        self._state.failing = True
        self._state.error, self._state.error_code = str(error) or type(error).__name__, trouble_with(error)
        pause_s = self._backoff.next_s()
        if isinstance(error, RateLimitedError):
            pause_s = max(pause_s, min(error.retry_after, PAUSE_ASKED_MAX_S))
        log.warning(
            self._event,
            chain=self._state.chain.info.id,
            error=f"{type(error).__name__}: {error}",
            pause_s=pause_s,
            exc_info=None if isinstance(error, EXPECTED) else error,
        )
        return pause_s

    def over(self) -> bool:
        """Reset the pauses after a success; return True if the try before it had failed."""
        self._backoff.reset()
        failed, self._state.failing = self._state.failing, False
        self._state.error = self._state.error_code = None
        return failed
