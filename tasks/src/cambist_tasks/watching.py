"""Keeps one chain watched: while this worker holds the lease, poll after poll, with pauses that suit the chain."""

from __future__ import annotations

import asyncio
from time import monotonic

import structlog

from cambist.plugin import Chain
from cambist.services.chain_pauses import ChainPauses, Pausable
from cambist.services.receiving.deposits import PollResult, Watcher

from .chain_loops import LoopState, Pauses, run_while_leased
from .leases import Leases

log = structlog.get_logger(__name__)

POLL_TIMEOUT_S = 120.0
"""A poll that hangs is given up. A plugin's own timeouts are shorter."""
PAUSED_POLL_S = 1.0
"""How often a paused watcher looks whether it was resumed."""


class WatchState(LoopState, kw_only=True):
    """How the watching of one chain goes, for metrics. ``polled_at`` is of the last good poll, as ``monotonic``."""

    watching: bool = False
    paused: bool = False
    last: PollResult | None = None
    polled_at: float = 0.0
    polls: int = 0
    blocks: int = 0
    deposits: int = 0
    orphaned: int = 0

    @property
    def unpolled_s(self) -> float | None:
        """Seconds since a poll succeeded, or since this worker began to watch; None while it does not watch."""
        return monotonic() - self.polled_at if self.watching and not self.paused else None

    def note(self, result: PollResult) -> None:
        self.last = result
        self.polled_at = monotonic()
        self.polls += 1
        self.blocks += result.blocks
        self.deposits += result.deposits
        self.orphaned += result.orphaned


class ChainWatch:
    """Polls one chain while this worker holds its lease and nobody has paused it."""

    def __init__(self, watcher: Watcher, chain: Chain, leases: Leases, operator_pauses: ChainPauses) -> None:
        self._watcher = watcher
        self._operator_pauses = operator_pauses
        self._leases = leases
        self._info = chain.info
        self._lease = f"watch {chain.info.id}"
        self.state = WatchState(chain=chain)

    async def run(self) -> None:
        await run_while_leased(self._leases, self._lease, self._watch)

    async def _watch(self) -> None:
        log.info("watching", chain=self._info.id)
        self.state.watching, self.state.polled_at = True, monotonic()
        pauses = Pauses(self.state, "poll_failed")
        try:
            while await self._leases.holds(self._lease):
                # What was read ahead before a pause says nothing about the chain after it.
                async with self._watcher.reading_ahead():
                    await self._follow(pauses)
                if self.state.paused:
                    await asyncio.sleep(PAUSED_POLL_S)
                    self.state.polled_at = monotonic()
        finally:
            self.state.watching = self.state.paused = False

    async def _follow(self, pauses: Pauses) -> None:
        """Poll until the lease is lost, or an operator has paused this. A poll that is under way then ends."""
        loop = asyncio.get_running_loop()
        while await self._leases.holds(self._lease):
            started = loop.time()
            try:
                async with asyncio.timeout(POLL_TIMEOUT_S):
                    if await self._is_paused():
                        return
                    result = await self._watcher.poll()
            except Exception as error:  # noqa: BLE001  a plugin may raise anything, and only its chain is affected
                pause_s = pauses.after(error)
            else:
                self.state.note(result)
                if pauses.over():
                    log.info("chain_is_back", chain=self._info.id, head=result.head, behind=result.behind)
                pause_s = 0.0 if result.behind > 0 else self._info.poll_interval_ms / 1000 - (loop.time() - started)
            await asyncio.sleep(max(0.0, pause_s))

    async def _is_paused(self) -> bool:
        paused = await self._operator_pauses.are_in_force(self._info.id, Pausable.WATCHING)
        if paused is not self.state.paused:
            self.state.paused = paused
            log.warning("watching_paused" if paused else "watching_resumed", chain=self._info.id)
        return paused
