"""Keeps one chain watched: whenever it is this worker's turn, look after look, with pauses that suit the chain."""

from __future__ import annotations

import asyncio
from typing import Protocol

import structlog
from msgspec import Struct

from cambist.plugin import Chain
from cambist.services.deposits import Look

from .chain_turns import Pauses, whenever_ours
from .turns import Turns

log = structlog.get_logger(__name__)

LOOK_TIMEOUT_S = 120.0
"""A look that hangs is given up. A plugin's own timeouts are shorter."""


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
        await whenever_ours(self._turns, self._turn, self._watch)

    async def _watch(self) -> None:
        log.info("watching", chain=self._info.id)
        self.state.watching = True
        try:
            await self._follow()
        finally:
            self.state.watching = False

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        pauses = Pauses(self.state, "look_failed", self._info.id)
        while await self._turns.still(self._turn):
            started = loop.time()
            try:
                async with asyncio.timeout(LOOK_TIMEOUT_S):
                    look = await self._watcher.look()
            except Exception as error:  # noqa: BLE001  a plugin may raise anything, and only its chain is affected
                pause_s = pauses.after(error)
            else:
                self.state.note(look)
                if pauses.over():
                    log.info("chain_is_back", chain=self._info.id, head=look.head, behind=look.behind)
                pause_s = 0.0 if look.behind > 0 else self._info.poll_interval_ms / 1000 - (loop.time() - started)
            await asyncio.sleep(max(0.0, pause_s))
