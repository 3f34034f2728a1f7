"""Keeps one chain watched: whenever it is this worker's turn, look after look, with pauses that suit the chain."""

from __future__ import annotations

import asyncio
from typing import Protocol

import structlog
from msgspec import Struct

from cambist.plugin import Chain, ChainError, RateLimitedError
from cambist.services.deposits import Look

from .supervision import Backoff
from .turns import Turns

log = structlog.get_logger(__name__)

TAKE_OVER_S = 1.0
"""How often a worker asks whether a chain's watcher is gone."""
LOOK_TIMEOUT_S = 120.0
"""A look that hangs is given up. A plugin's own timeouts are shorter."""
PAUSE_FIRST_S = 0.5
PAUSE_MAX_S = 30.0
PAUSE_ASKED_MAX_S = 300.0
"""An endpoint that asks for more than this is asked again all the same."""


class Looks(Protocol):
    """What looks at a chain: the deposits service's Watcher."""

    async def look(self) -> Look:
        """Read on, judge what is due, and say where it stands."""


class ChainState(Struct, kw_only=True):
    """How the watching of one chain goes, for metrics."""

    chain: Chain
    watching: bool = False
    last: Look | None = None
    looks: int = 0
    failures: int = 0
    blocks: int = 0
    deposits: int = 0
    orphaned: int = 0
    failing: bool = False

    def note(self, look: Look) -> None:
        """Count what a look did."""
        self.last = look
        self.looks += 1
        self.blocks += look.blocks
        self.deposits += look.deposits
        self.orphaned += look.orphaned


class ChainWatch:
    """One chain's place in a worker."""

    def __init__(self, watcher: Looks, chain: Chain, turns: Turns) -> None:
        """Look through this watcher when it is this worker's turn."""
        self._watcher = watcher
        self._turns = turns
        self._info = chain.info
        self._turn = f"watch {chain.info.id}"
        self.state = ChainState(chain=chain)

    async def run(self) -> None:
        """Watch until cancelled, or wait for the turn."""
        try:
            while True:
                if await self._turns.take(self._turn):
                    log.info("watching", chain=self._info.id)
                    self.state.watching = True
                    await self._follow()
                    self.state.watching = False
                await asyncio.sleep(TAKE_OVER_S)
        finally:
            self.state.watching = False
            await self._turns.give(self._turn)

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        pauses = Backoff(PAUSE_FIRST_S, PAUSE_MAX_S)
        while await self._turns.still(self._turn):
            started = loop.time()
            try:
                async with asyncio.timeout(LOOK_TIMEOUT_S):
                    look = await self._watcher.look()
            except Exception as error:  # noqa: BLE001  a plugin may raise anything, and only its chain is affected
                pause_s = self._pause_s(error, pauses)
            else:
                pauses.reset()
                self._note(look)
                pause_s = 0.0 if look.behind > 0 else self._info.poll_interval_ms / 1000 - (loop.time() - started)
            await asyncio.sleep(max(0.0, pause_s))

    def _note(self, look: Look) -> None:
        self.state.note(look)
        if self.state.failing:
            self.state.failing = False
            log.info("chain_is_back", chain=self._info.id, head=look.head, behind=look.behind)

    def _pause_s(self, error: Exception, pauses: Backoff) -> float:
        """Log what happened, and return how long the chain is left alone."""
        self.state.failures += 1
        self.state.failing = True
        pause_s = pauses.next_s()
        if isinstance(error, RateLimitedError):
            pause_s = max(pause_s, min(error.retry_after, PAUSE_ASKED_MAX_S))
        expected = isinstance(error, ChainError | TimeoutError)
        log.warning(
            "look_failed",
            chain=self._info.id,
            error=f"{type(error).__name__}: {error}",
            pause_s=pause_s,
            exc_info=None if expected else error,
        )
        return pause_s
