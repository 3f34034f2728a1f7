"""One chain's sending: track open transactions, finish what is deep, cancel, collect what is due, send what waits.

A tick asks first what there is to do (``agenda.py``), and runs these steps alone. It asks again after steps that may
have left something to others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from typing import TypeVar

from msgspec import Struct

from cambist.services.addresses.account_keys import AccountKeys
from cambist.services.addresses.wallets import OwnAddress
from cambist.services.receiving.deposits import opening_balances
from cambist.signer.protocol import SignerUnavailableError

from .agenda import Agenda, read_agenda
from .batches import send_waiting
from .cancelling import cancel_asked
from .collections.planning import Collector
from .context import EngineContext
from .failures import Failures
from .finalizing import finalize
from .following import Followed, Follower
from .gas.loans import ask_back
from .giving_way import learn_rests
from .pausing import defer_paused, release_paused
from .rests import PAUSE_MAX, Rests
from .reviving import LostSlots
from .sweeps.building import sweep_waiting

Result = TypeVar("Result")

COLLECTING_TIMEOUT_S = 60.0
"""How long one check of deposits may take: half of what a worker gives a tick. In the rest what waits is sent."""
GOES_ON_AFTER_S = 10.0
"""When a check goes on that ended for what is to be sent first, however seldom all deposits are looked at."""


class TickResult(Struct, kw_only=True):
    """What one tick did. ``more`` asks for the next one at once; ``told``: events for merchants were queued.

    ``paused``: an operator has paused sending, so what is out was followed, and nothing was signed. None where the tick
    failed before that was asked. ``follows``: some of what is out is not deep yet.
    """

    more: bool = False
    told: bool = False
    collected: int = 0
    paused: bool | None = None
    follows: bool = False


class Engine:
    """Sends on one chain. Any number of engines may run on the same one: the database decides who is first."""

    def __init__(self, context: EngineContext, keys: AccountKeys) -> None:
        self.context = context
        self.done = TickResult()
        """What the newest tick did, also where it failed after that."""
        self._follower = Follower(context)
        self._lost = LostSlots(context)
        self._collector = Collector(context, keys)
        self._rests = Rests()
        self._is_new = True
        self._learnt_at: float | None = None
        self._collected_at: float | None = None
        self._goes_on = False
        self._asked_at: datetime | None = None
        self._station: OwnAddress | None = None
        self._any_deferred = True

    def begin(self) -> None:
        """Take for granted nothing of what waits: another engine may have sent on this chain since the last tick."""
        self._is_new = self._any_deferred = True

    async def tick(self) -> TickResult:
        """Do what there is to do now, a bounded part of it.

        Raises ChainUnavailableError and SignerUnavailableError: then what was stored stays, and is found again. What
        cancelling, collecting, asking back and sweeping raise, whatever it is, is raised when what waits was sent: of
        several the first that is a defect, before an outage. ``done`` says what was done even so.
        """
        self.done, failures = TickResult(), Failures(self.context.chain_scope.info.id)
        try:
            await self._do(self.done, failures)
        except Exception as error:  # noqa: BLE001  it is raised below, unless what came before it is worse
            failures.add(error)
        failures.raise_one()
        return self.done

    async def _do(self, done: TickResult, failures: Failures) -> None:
        """Do it, and say in ``done`` what was done as soon as it was."""
        context = self.context
        collects_all = self._collects_all()
        await self._learn()
        agenda = await self._read_agenda(collects_all=collects_all)
        # Before a node is asked: that it does not answer may be why something is cancelled.
        cancelled = agenda.cancel and await self._try("cancelling_failed", cancel_asked(context), failures)
        # Where it has failed, the money of some may have gone back before.
        done.told = cancelled is not False
        followed = await self._follower.follow() if agenda.follow else Followed()
        if agenda.check_lost:
            await self._try("lost_nonces_unknown", self._lost.check(), failures)
        if agenda.cancel or followed.left_some:
            # What was followed may wait again, or for gas.
            agenda = await self._read_agenda(collects_all=collects_all)
        undoes = agenda.undo
        finalized = (agenda.finalize or followed.any_deep or undoes) and await finalize(context, undoes=undoes)
        if finalized:
            agenda = await self._read_agenda(collects_all=collects_all)
        done.follows = agenda.follow
        # What was taken back is followed again, and more may be as deep.
        done.more = (finalized and (undoes or agenda.finalize or agenda.undo)) or cancelled is True
        done.told = done.told or finalized or done.more
        done.paused = agenda.paused or (agenda.begins and await context.is_paused())
        if done.paused:
            self._any_deferred = True
            done.more = (agenda.send and await defer_paused(context)) or done.more
            done.told = done.told or done.more
            # Nothing is to be signed: that the signer is away, as while it is looked into, keeps nobody waiting.
            failures.forget(SignerUnavailableError)
            return
        if self._any_deferred:
            # Of what is due.
            self._any_deferred = agenda.send and await release_paused(context)
        station = await self._open_station()
        if station is not None and await self._collect_and_send(
            agenda, done, failures, station, collects_all=collects_all
        ):
            done.more = done.told = True

    async def _learn(self) -> None:
        """Learn anew who gives way, where another engine may know more; then some of each such sender are tried.

        They may fail ticks. So a lease that comes and goes has nobody tried more often than who fails is tried anyway.
        """
        now = self.context.clock.monotonic()
        if self._is_new and (self._learnt_at is None or now - self._learnt_at >= PAUSE_MAX.total_seconds()):
            self._rests = await learn_rests(self.context)
            self._is_new, self._learnt_at = False, now

    async def _collect_and_send(
        self, agenda: Agenda, done: TickResult, failures: Failures, station: OwnAddress, *, collects_all: bool
    ) -> bool:
        """Return whether there may be more to send."""
        failed_before = len(failures)
        done.collected = await self._collect(agenda, failures, collects_all=collects_all)
        if agenda.ask_back:
            await self._try("asking_back_failed", ask_back(self.context, station), failures)
        # Collecting that failed may have asked for some before.
        if not (agenda.send or agenda.ask_back or done.collected or len(failures) > failed_before):
            return False
        # Together where that is possible.
        swept = await self._try("sweeping_failed", sweep_waiting(self.context, self._rests, station), failures)
        return await send_waiting(self.context, failures, self._rests, station) or swept is True

    async def _try(self, name: str, step: Awaitable[Result], failures: Failures) -> Result | None:
        """Do a step; note what it raises among the failures, and return None."""
        try:
            return await step
        except Exception as error:  # noqa: BLE001  a plugin may raise anything; it is raised when the rest is done
            failures.note(name, error)
            return None

    async def _collect(self, agenda: Agenda, failures: Failures, *, collects_all: bool) -> int:
        """Collect what is due; return how much.

        A wish has all deposits looked at when it is new. What that leaves without an answer says so, and waits for its
        turn, as all else does: however long it stays, most ticks judge nothing.
        """
        is_new = agenda.asked_at not in (None, self._asked_at)
        judges_all = collects_all or is_new
        try:
            if not (agenda.collect or is_new):
                return 0
            collecting = self._collect_in_time(only_needed=not judges_all)
            collected = await self._try("collecting_failed", collecting, failures)
            if judges_all and collected is None and agenda.asked_at is not None:
                hindered = self._collector.note_hindrance(agenda.asked_at, failures.newest)
                await self._try("collecting_failed", hindered, failures)
            return collected or 0
        finally:
            if judges_all:
                # From its end on: what takes longer than the interval would leave no tick to anything else.
                self._asked_at, self._collected_at = agenda.asked_at, self.context.clock.monotonic()
                self._goes_on = self._collector.left_some

    async def _collect_in_time(self, *, only_needed: bool) -> int:
        async with asyncio.timeout(COLLECTING_TIMEOUT_S):
            return await self._collector.collect(only_needed=only_needed)

    async def _read_agenda(self, *, collects_all: bool) -> Agenda:
        async with self.context.db.autocommit() as conn:
            return await read_agenda(conn, self.context, self.context.clock.now(), collects_all=collects_all)

    async def _open_station(self) -> OwnAddress | None:
        """Return the gas station once its opening balance is posted: before it is, nothing may leave it.

        It is derived once, and stays what it is.
        """
        if self._station is None:
            async with self.context.db.autocommit() as conn:
                self._station = await opening_balances.open_station(
                    conn, self.context.chain_scope.info, self.context.chain_scope.mode
                )
        return self._station

    def _collects_all(self) -> bool:
        """Whether it is time to look at all deposits, and not only for what something waits for."""
        interval_s = self.context.settings.collect_interval_ms / 1000
        if self._goes_on:
            interval_s = min(interval_s, GOES_ON_AFTER_S)
        return self._collected_at is None or self.context.clock.monotonic() - self._collected_at >= interval_s
