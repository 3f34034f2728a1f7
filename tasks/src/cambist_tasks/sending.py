"""Keeps one chain's engine turning: whenever it is this worker's, at every hint, and at least once per poll."""

from __future__ import annotations

import asyncio
from collections import Counter

import structlog
from msgspec import Struct, field

from cambist.bootstrap import Gateway
from cambist.hints import Hints
from cambist.plugin import Chain
from cambist.services.outbound.desk import Desk
from cambist.services.outbound.engine import Engine
from cambist.services.outbound.kinds import outcomes
from cambist.services.outbound.rows import Site

from .chain_turns import Pauses, whenever_ours
from .turns import Turns

log = structlog.get_logger(__name__)

TOPIC = "outbound"
TURN_TIMEOUT_S = 120.0


class SendState(Struct, kw_only=True):
    """How the sending on one chain goes, for metrics."""

    chain: Chain
    sending: bool = False
    failing: bool = False
    turns: int = 0
    failures: int = 0
    collected: int = 0
    alerts: Counter[str] = field(default_factory=Counter)


class ChainSender:
    """One chain's engine and its place in a worker."""

    def __init__(self, engine: Engine, turns: Turns, hints: Hints) -> None:
        """Turn this engine when it is this worker's turn."""
        self._engine = engine
        self._turns = turns
        self._hints = hints
        self._info = engine.desk.chain.info
        self._turn = f"send {self._info.id}"
        self.state = SendState(chain=engine.desk.chain, alerts=engine.desk.alerts)

    async def run(self) -> None:
        """Send until cancelled, or wait for the turn."""
        await whenever_ours(self._turns, self._turn, self._send)

    async def _send(self) -> None:
        log.info("sending", chain=self._info.id)
        self.state.sending = True
        try:
            await self._follow()
        finally:
            self.state.sending = False

    async def _follow(self) -> None:
        pauses = Pauses(self.state, "sending_failed", self._info.id)
        async with self._hints.subscribe([TOPIC]) as hints:
            while await self._turns.still(self._turn):
                pause_s = await self._once(pauses)
                if pause_s > 0:
                    await hints.wait(pause_s)

    async def _once(self, pauses: Pauses) -> float:
        """Take one turn, and return how long nothing needs to be done."""
        try:
            async with asyncio.timeout(TURN_TIMEOUT_S):
                turn = await self._engine.turn()
        except Exception as error:  # noqa: BLE001  a plugin may raise anything, and only its chain is affected
            return pauses.after(error)
        if pauses.over():
            log.info("sending_is_back", chain=self._info.id)
        if turn.told:
            await self._hints.publish("webhooks")
        self.state.turns += 1
        self.state.collected += turn.collected
        return 0.0 if turn.more else self._info.poll_interval_ms / 1000


def chain_senders(gateway: Gateway, turns: Turns) -> list[ChainSender]:
    """Return a sender for every connected chain."""
    if gateway.signer is None or not gateway.settings.outbound.enabled:
        return []
    senders = []
    for chain in gateway.chains.values():
        desk = Desk(
            db=gateway.db,
            chain=chain,
            family=gateway.registry.families[chain.info.family],
            signer=gateway.signer,
            rates=gateway.rates,
            clock=gateway.clock,
            ids=gateway.ids,
            outcomes=outcomes(),
            settings=gateway.settings.outbound,
            site=Site(info=chain.info, scope=0, mode="live"),
            alerts=Counter(),
        )
        senders.append(ChainSender(Engine(desk, gateway.keys), turns, gateway.hints))
    return senders
