"""One chain's sending: track open transactions, finish what is deep, cancel, collect what is due, send what waits.

A tick asks first what there is to do (``agenda.py``), and runs these steps alone. It asks again after steps that may
have left something to others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from typing import TypeVar

import structlog
from msgspec import Struct

from cambist.services.addresses.account_keys import AccountKeys
from cambist.services.receiving.deposits import opening_balances

from .agenda import Agenda, read_agenda
from .batches import send_waiting
from .cancelling import cancel_asked
from .collections.planning import Collector
from .context import EngineContext
from .finalizing import finalize
from .following import Follower
from .gas.loans import ask_back
from .holding import hold_back, let_go
from .sweeps.building import sweep_waiting

Result = TypeVar("Result")

log = structlog.get_logger(__name__)

LOOK_TIMEOUT_S = 60.0
"""How long one look at deposits may take: half of what a worker gives a tick. In the rest what waits is sent."""


class TickResult(Struct, frozen=True, kw_only=True):
    """What one tick did. ``more`` asks for the next one at once; ``told``: events for merchants were queued.

    ``paused``: an operator has paused sending, so what is out was followed, and nothing was signed.
    """

    more: bool
    told: bool
    collected: int = 0
    paused: bool = False


class Engine:
    """Sends on one chain. Any number of engines may run on the same one: the database decides who is first."""

    def __init__(self, context: EngineContext, keys: AccountKeys) -> None:
        self.context = context
        self._follower = Follower(context)
        self._collector = Collector(context, keys)
        self._collected_at: float | None = None
        self._asked_at: datetime | None = None
        self._books_open = False
        self._may_hold_back = True

    async def tick(self) -> TickResult:
        """Do what there is to do now, a bounded part of it.

        Raises ChainUnavailableError and SignerUnavailableError: then what was stored stays, and is found again. What
        cancelling, collecting, asking back and sweeping raise, whatever it is, is raised when what waits was sent.
        """
        context, failures = self.context, list[Exception]()
        collects_all = self._collects_all()
        agenda = await self._read_agenda(collects_all=collects_all)
        # Before a node is asked: that it does not answer may be why something is cancelled.
        cancelled = agenda.cancel and await self._try("cancelling_failed", cancel_asked(context), failures)
        if agenda.follow:
            await self._follower.follow()
        if agenda.cancel or agenda.follow:
            # What was followed may be mined and deep, or wait again.
            agenda = await self._read_agenda(collects_all=collects_all)
        finalized = agenda.finalize and await finalize(context)
        if finalized:
            agenda = await self._read_agenda(collects_all=collects_all)
        finalized = finalized or cancelled is True
        if await context.is_paused():
            self._may_hold_back = True
            more = (agenda.send and await hold_back(context)) or finalized
            return TickResult(more=more, told=more, paused=True)
        if self._may_hold_back:
            self._may_hold_back = await let_go(context)
        collected = 0
        if await self._are_books_open():
            collected, more = await self._collect_and_send(agenda, failures, collects_all=collects_all)
            finalized = finalized or more
        if failures:
            raise failures[0]
        return TickResult(more=finalized, told=finalized, collected=collected)

    async def _collect_and_send(
        self, agenda: Agenda, failures: list[Exception], *, collects_all: bool
    ) -> tuple[int, bool]:
        """Return how many collections were asked for, and whether there may be more to send."""
        failed_before = len(failures)
        collected = await self._collect(agenda, failures, collects_all=collects_all)
        if agenda.ask_back:
            await self._try("asking_back_failed", ask_back(self.context), failures)
        # Collecting that failed may have asked for some before.
        if not (agenda.send or agenda.ask_back or collected or len(failures) > failed_before):
            return collected, False
        # Together where that is possible.
        swept = await self._try("sweeping_failed", sweep_waiting(self.context), failures)
        return collected, await send_waiting(self.context) or swept is True

    async def _try(self, name: str, step: Awaitable[Result], failures: list[Exception]) -> Result | None:
        """Do a step; note what it raises among the failures, and return None."""
        try:
            return await step
        except Exception as error:  # noqa: BLE001  a plugin may raise anything; it is raised when the rest is done
            log.warning(name, chain=self.context.chain_scope.info.id, error=f"{type(error).__name__}: {error}")
            failures.append(error)
            return None

    async def _collect(self, agenda: Agenda, failures: list[Exception], *, collects_all: bool) -> int:
        """Collect what is due; return how much.

        A wish has all deposits looked at when it is new. What that leaves without an answer says so, and waits for its
        turn, as all else does: however long it stays, most ticks do not look.
        """
        is_new = agenda.asked_at not in (None, self._asked_at)
        looks = collects_all or is_new
        try:
            if not (agenda.collect or is_new):
                return 0
            look = self._look(only_needed=not looks)
            collected = await self._try("collecting_failed", look, failures)
            if looks and collected is None and agenda.asked_at is not None:
                hindered = self._collector.note_hindrance(agenda.asked_at, failures[-1])
                await self._try("collecting_failed", hindered, failures)
            return collected or 0
        finally:
            if looks:
                # From its end on: a look that takes longer than the interval would leave no tick to anything else.
                self._asked_at, self._collected_at = agenda.asked_at, self.context.clock.monotonic()

    async def _look(self, *, only_needed: bool) -> int:
        async with asyncio.timeout(LOOK_TIMEOUT_S):
            return await self._collector.collect(only_needed=only_needed)

    async def _read_agenda(self, *, collects_all: bool) -> Agenda:
        async with self.context.db.autocommit() as conn:
            return await read_agenda(conn, self.context, self.context.clock.now(), collects_all=collects_all)

    async def _are_books_open(self) -> bool:
        """Whether the gas station's opening balance is posted: before it is, nothing may leave it."""
        if not self._books_open:
            async with self.context.db.transaction() as conn:
                self._books_open = await opening_balances.is_open(
                    conn, self.context.chain_scope.info, self.context.chain_scope.mode
                )
        return self._books_open

    def _collects_all(self) -> bool:
        """Whether it is time to look at all deposits, and not only for what something waits for."""
        interval_s = self.context.settings.collect_interval_ms / 1000
        return self._collected_at is None or self.context.clock.monotonic() - self._collected_at >= interval_s
