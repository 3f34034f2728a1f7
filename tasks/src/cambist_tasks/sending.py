"""Sends on one chain while this worker holds its lease: one tick of the engine at every hint and poll interval."""

from __future__ import annotations

import asyncio
from collections import Counter

import structlog
from msgspec import field

from cambist.bootstrap import Gateway
from cambist.hints import Hints
from cambist.services.chain_scope import ChainScope
from cambist.services.exchanges.calls import Readers
from cambist.services.intent_handlers import intent_handlers
from cambist.services.sending.context import EngineContext
from cambist.services.sending.engine import Engine

from .chain_loops import LoopState, Pauses, run_while_leased
from .leases import Leases

log = structlog.get_logger(__name__)

TOPIC = "outbound"
TICK_TIMEOUT_S = 120.0
PACE_S = 0.1
"""Of all hints that come within it, one tick makes use: many who ask at once cost no tick each."""


class SendState(LoopState, kw_only=True):
    """How the sending on one chain goes, for metrics."""

    sending: bool = False
    paused: bool = False
    collected: int = 0
    alerts: Counter[str] = field(default_factory=Counter)


class ChainSender:
    """Runs one chain's engine while this worker holds its lease."""

    def __init__(self, engine: Engine, leases: Leases, hints: Hints) -> None:
        self._engine = engine
        self._leases = leases
        self._hints = hints
        self._info = engine.context.chain.info
        self._lease = f"send {self._info.id}"
        self.state = SendState(chain=engine.context.chain, alerts=engine.context.alerts)

    async def run(self) -> None:
        await run_while_leased(self._leases, self._lease, self._send)

    async def _send(self) -> None:
        log.info("sending", chain=self._info.id)
        self.state.sending = True
        self._engine.begin()
        try:
            await self._follow()
        finally:
            self.state.sending = False

    async def _follow(self) -> None:
        pauses = Pauses(self.state, "sending_failed")
        async with self._hints.subscribe(TOPIC) as hints:
            while await self._leases.holds(self._lease):
                pause_s = await self._tick(pauses)
                if self.state.failing:
                    # Whoever asks for something meanwhile does not bring a node back, and would only have it asked.
                    await asyncio.sleep(pause_s)
                elif pause_s > 0:
                    await asyncio.sleep(min(PACE_S, pause_s))
                    await hints.wait(pause_s)

    async def _tick(self, pauses: Pauses) -> float:
        """Run the engine once; return the seconds until the next tick."""
        failure: Exception | None = None
        try:
            async with asyncio.timeout(TICK_TIMEOUT_S):
                await self._engine.tick()
        except Exception as error:  # noqa: BLE001  a plugin may raise anything, and only its chain is affected
            failure = error
        # Money may have gone back, or arrived, before it failed.
        done = self._engine.done
        if done.told:
            await self._hints.publish("webhooks")
        self.state.collected += done.collected
        if done.paused is not None and done.paused is not self.state.paused:
            self.state.paused = done.paused
            log.warning("sending_paused" if done.paused else "sending_resumed", chain=self._info.id)
        if failure is not None:
            return pauses.after(failure)
        if pauses.over():
            log.info("sending_is_back", chain=self._info.id)
        return 0.0 if done.more else self._info.poll_interval_ms / 1000


def chain_senders(gateway: Gateway, leases: Leases) -> list[ChainSender]:
    if gateway.signer is None or not gateway.settings.outbound.enabled:
        return []
    senders = []
    readers = Readers(readers=gateway.registry.call_readers(), infos=gateway.registry.chains)
    for chain in gateway.chains.values():
        context = EngineContext(
            db=gateway.db,
            chain=chain,
            family=gateway.registry.families[chain.info.family],
            signer=gateway.signer,
            pauses=gateway.pauses,
            rates=gateway.rates,
            clock=gateway.clock,
            ids=gateway.ids,
            handlers=intent_handlers(gateway.ids, readers),
            settings=gateway.settings.outbound,
            chain_scope=ChainScope(info=chain.info, scope=0, mode="live"),
            alerts=Counter(),
        )
        senders.append(ChainSender(Engine(context, gateway.keys), leases, gateway.hints))
    return senders
