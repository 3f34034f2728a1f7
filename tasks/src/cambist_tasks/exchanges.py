"""Follows exchanges in this worker: at every hint and every second, several at once, each for itself."""

from __future__ import annotations

import asyncio
from collections import Counter

import structlog

from cambist.bootstrap import Gateway
from cambist.hints import Hints
from cambist.services.exchanges.rows import ExchangeRow
from cambist.services.exchanges.runner import claim_due, claim_kept, follow_exchange, lane_of, reopen_orphaned
from cambist.services.exchanges.worker import ExchangeWorker
from cambist.services.intent_handlers import endings

log = structlog.get_logger(__name__)

TOPIC = "exchanges"
PAUSE_S = 1.0
PACE_S = 0.1
"""Of all hints that come within it, one claim makes use: many who ask at once cost no claim each."""
FOLLOW_TIMEOUT_S = 90.0
REOPEN_INTERVAL_S = 10.0


class ExchangeFollower:
    """Any number of workers follow the same exchanges: see ``cambist.services.exchanges.runner``."""

    def __init__(self, worker: ExchangeWorker, hints: Hints) -> None:
        self.worker = worker
        self._hints = hints
        self._following: dict[asyncio.Task[None], str] = {}
        self._reopened_at = float("-inf")

    async def run(self) -> None:
        try:
            async with self._hints.subscribe(TOPIC) as hints:
                while True:
                    begun = await self.tick()
                    await asyncio.sleep(PACE_S)
                    if not begun:
                        await hints.wait(PAUSE_S)
        finally:
            for task in self._following:
                task.cancel()
            await asyncio.gather(*self._following, return_exceptions=True)

    async def tick(self) -> int:
        """Begin to look at what is due and gets a permit; return how many. Nothing waits for those that go on."""
        monotonic = self.worker.clock.monotonic()
        if monotonic - self._reopened_at >= REOPEN_INTERVAL_S:
            self._reopened_at = monotonic
            await reopen_orphaned(self.worker)
        due = await claim_due(self.worker, Counter(self._following.values()))
        for row in due:
            task = asyncio.create_task(self._follow(row))
            self._following[task] = lane_of(row)
            task.add_done_callback(self._following.pop)
        return len(due)

    async def _follow(self, row: ExchangeRow) -> None:
        try:
            async with claim_kept(self.worker, row), asyncio.timeout(FOLLOW_TIMEOUT_S):
                await follow_exchange(self.worker, row)
        except Exception as error:  # a plugin may raise anything, and only this exchange waits for it
            self.worker.alerts["failed"] += 1
            facts = {
                "txn_id": row.txn_id,
                "step": row.step,
                "source_chain": row.source_chain,
                "dest_chain": row.dest_chain,
            }
            log.warning("exchange_not_followed", **facts, error=repr(error), exc_info=error)
        await self._hints.publish("outbound", "webhooks")


def exchange_follower(gateway: Gateway) -> ExchangeFollower | None:
    """Return what follows the gateway's exchanges, None where this worker sends nothing."""
    if gateway.signer is None or not gateway.settings.outbound.enabled:
        return None
    worker = ExchangeWorker(
        db=gateway.db,
        infos=gateway.registry.chains,
        families=gateway.registry.families,
        chains=gateway.chains,
        swaps=gateway.swaps,
        bridges=gateway.bridges,
        readers=gateway.registry.call_readers(),
        clock=gateway.clock,
        endings=endings(gateway.ids),
        alerts=Counter(),
    )
    return ExchangeFollower(worker, gateway.hints)
