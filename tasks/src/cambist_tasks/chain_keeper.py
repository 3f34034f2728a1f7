"""Keeps chains as operators want them: follows what is in force, asks nodes about what was added, tells what is seen.

Each worker follows for itself. What was added is claimed by one of them, and what is seen of a chain is written by
whoever watches it; by all, where a chain is not connected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog
from sqlalchemy.exc import SQLAlchemyError

from cambist.bootstrap import Gateway
from cambist.db.engine import BusyError
from cambist.domain.troubles import PROBLEMS, ChainProblem, SetupSaid
from cambist.services.chains import adding, checking, sendable, states
from cambist.services.chains.following import INTERVAL_S, Follower
from cambist.services.chains.setups import TOPIC, any_checking

from .watching import WatchState

REPORT_INTERVAL_S = 5.0
ASK_INTERVAL_S = 2.0
SENDABLE_INTERVAL_S = 30.0

log = structlog.get_logger(__name__)
_TROUBLE = (SQLAlchemyError, BusyError, OSError, TimeoutError)


class ChainKeeper:
    """One worker's part of keeping chains."""

    def __init__(self, gateway: Gateway, watched: Sequence[WatchState]) -> None:
        self._gateway = gateway
        self._watched = {state.chain.info.id: state for state in watched}
        self._follower = Follower(
            gateway.db, gateway.connections, gateway.registry, gateway.secrets, gateway.token_rules
        )
        self._readings = states.Readings(gateway.secrets, gateway.ids)
        self._problems: Mapping[str, SetupSaid] = {}
        self._failing_since: dict[str, datetime] = {}
        self._reported_at = float("-inf")

    async def run(self) -> None:
        """Follow and report, until cancelled."""
        async with self._gateway.hints.subscribe(TOPIC) as hints:
            while True:
                await self.follow()
                await self.report_when_due()
                await hints.wait(INTERVAL_S)

    async def run_reopening(self) -> None:
        """Connect again what has ended by itself, until cancelled; apart, as a plugin may take its time for that."""
        while True:
            await self._gateway.connections.reopen()
            await asyncio.sleep(INTERVAL_S)

    async def run_asking(self) -> None:
        """Ask nodes about what was added, until cancelled."""
        asked_signer_at = float("-inf")
        async with self._gateway.hints.subscribe(TOPIC) as hints:
            while True:
                more = await self.ask()
                if self._gateway.clock.monotonic() - asked_signer_at >= SENDABLE_INTERVAL_S or more:
                    await self.ask_signer()
                    asked_signer_at = self._gateway.clock.monotonic()
                if not more:
                    await hints.wait(ASK_INTERVAL_S)

    async def follow(self) -> None:
        """Follow what is in force now."""
        try:
            self._problems = (await self._follower.follow()).problems
        except _TROUBLE as error:
            log.warning("chains_not_followed", error=repr(error))

    async def report_when_due(self) -> None:
        """Write what is seen, every few seconds."""
        now = self._gateway.clock.monotonic()
        if now - self._reported_at < REPORT_INTERVAL_S:
            return
        self._reported_at = now
        try:
            await self.report()
        except Exception as error:  # noqa: BLE001  what is followed goes on, whatever of it cannot be told
            log.warning("chains_not_reported", error=repr(error))

    async def report(self) -> None:
        """Write what is seen of every chain that this worker watches, and which are not connected."""
        gateway = self._gateway
        now, monotonic = gateway.clock.now(), gateway.clock.monotonic()
        for chain, info in gateway.registry.chains.items():
            if info.availability != "live":
                continue
            watched = self._watched.get(chain)
            async with gateway.db.autocommit() as conn:
                if chain not in gateway.chains:
                    code = ChainProblem.NOT_CONNECTED
                    told = states.ChainStateRow(chain=chain, problem=PROBLEMS[code], problem_code=code, seen_at=now)
                    await states.save_problem(conn, told)
                elif watched is not None and watched.watching:
                    setup = gateway.connections.setups.get(chain)
                    await states.save(conn, self._state(chain, watched, 1 if setup is None else setup.quorum, now))
            if chain in gateway.chains and watched is not None and watched.watching:
                await self._report_endpoints(chain, watched, now, monotonic)

    async def _report_endpoints(self, chain: str, watched: WatchState, now: datetime, monotonic: float) -> None:
        """Write what is told of a chain's endpoints; apart from how it stands, which is told in any case."""
        gateway = self._gateway
        setup, file = gateway.connections.setups.get(chain), gateway.registry.setup(chain)
        try:
            health = watched.chain.endpoints()
            async with gateway.db.autocommit() as conn:
                await self._readings.save(conn, chain, setup, file, health, now=now, monotonic=monotonic)
        except Exception as error:  # noqa: BLE001  a plugin tells of them, and other chains are not its part
            log.warning("endpoints_not_reported", chain=chain, error=repr(error))

    def _state(self, chain: str, watched: WatchState, quorum: int, now: datetime) -> states.ChainStateRow:
        if watched.failing:
            self._failing_since.setdefault(chain, now)
        else:
            self._failing_since.pop(chain, None)
        told = self._problems.get(chain)
        return states.ChainStateRow(
            chain=chain,
            setup_problem=None if told is None else told.words,
            setup_problem_code=None if told is None else told.code,
            error=watched.error,
            error_code=watched.error_code,
            failing_since=self._failing_since.get(chain),
            quorum=quorum,
            seen_at=now,
        )

    async def ask(self) -> bool:
        """Ask about one endpoint and one token that were added; return True if there was any."""
        gateway = self._gateway
        chains = sorted(gateway.connections.setups)
        try:
            async with gateway.db.autocommit() as conn:
                if not await any_checking(conn):
                    return False
            async with gateway.db.transaction() as conn:
                endpoint = await checking.claim(conn, chains, gateway.clock.now())
                token = await adding.claim(conn, chains, gateway.clock.now())
            if endpoint is not None:
                reason = await checking.check(gateway.db, gateway.connections, gateway.secrets, endpoint)
                async with gateway.db.transaction() as conn:
                    await checking.finish_check(conn, endpoint, reason, gateway.clock.now())
            if token is not None:
                await self._read(token)
        except _TROUBLE as error:
            log.warning("chains_not_asked", error=repr(error))
            return False
        if endpoint is None and token is None:
            return False
        await gateway.hints.publish(TOPIC)
        return True

    async def _read(self, token: adding.ClaimedToken) -> None:
        gateway = self._gateway
        try:
            async with asyncio.timeout(checking.CHECK_TIMEOUT_S):
                found = await adding.read(gateway.chains[token.chain], token)
            async with gateway.db.transaction() as conn:
                await adding.activate(conn, gateway.registry, token, found, gateway.clock.now())
        except (adding.RefusedTokenError, TimeoutError) as error:
            reason = str(error) or f"Its contract was not read within {checking.CHECK_TIMEOUT_S:.0f} s."
            async with gateway.db.transaction() as conn:
                await adding.refuse(conn, token, reason, gateway.clock.now())

    async def ask_signer(self) -> None:
        """Ask the signer which of the added tokens stand in its own file."""
        gateway = self._gateway
        if gateway.signer is None:
            return
        try:
            await sendable.ask(gateway.db, gateway.signer)
        except _TROUBLE as error:
            log.warning("signer_not_asked", error=repr(error))
