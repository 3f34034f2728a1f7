"""One chain's sending: track open transactions, finish what is deep, cancel, collect what is due, send what waits."""

from __future__ import annotations

import structlog
from msgspec import Struct

from cambist.services.addresses.account_keys import AccountKeys
from cambist.services.receiving.deposits import opening_balances
from cambist.signer.protocol import SignerUnavailableError

from .batches import send_waiting
from .cancelling import cancel_asked
from .collections.planning import Collector
from .context import EngineContext
from .finalizing import finalize
from .following import Follower
from .gas.loans import ask_back
from .holding import hold_back, let_go
from .sweeps.building import sweep_waiting

log = structlog.get_logger(__name__)


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
        self._books_open = False
        self._may_hold_back = True

    async def tick(self) -> TickResult:
        """Do what there is to do now, a bounded part of it.

        Raises ChainUnavailableError and SignerUnavailableError: then what was stored stays, and is found again.
        """
        context = self.context
        cancelled = await self._cancel()
        await self._follower.follow()
        finalized = await finalize(context)
        finalized = finalized or cancelled is True
        if await context.is_paused():
            self._may_hold_back = True
            more = await hold_back(context) or finalized
            return TickResult(more=more, told=more, paused=True)
        if isinstance(cancelled, SignerUnavailableError):
            raise cancelled
        if self._may_hold_back:
            self._may_hold_back = await let_go(context)
        if not await self._are_books_open():
            return TickResult(more=finalized, told=finalized)
        collected = await self._collect()
        await ask_back(context)
        swept = await sweep_waiting(context)
        more = await send_waiting(context) or swept
        return TickResult(more=more or finalized, told=finalized or more, collected=collected)

    async def _cancel(self) -> bool | SignerUnavailableError:
        """Cancel what was asked to be, before a node is asked: that it does not answer may be why.

        What is sent already is followed whether the signer answers or not.
        """
        try:
            return await cancel_asked(self.context)
        except SignerUnavailableError as error:
            log.warning("cancelling_waits_for_signer", chain=self.context.chain_scope.info.id, error=str(error))
            return error

    async def _are_books_open(self) -> bool:
        """Whether the gas station's opening balance is posted: before it is, nothing may leave it."""
        if not self._books_open:
            async with self.context.db.transaction() as conn:
                self._books_open = await opening_balances.is_open(
                    conn, self.context.chain_scope.info, self.context.chain_scope.mode
                )
        return self._books_open

    async def _collect(self) -> int:
        now = self.context.clock.monotonic()
        interval_s = self.context.settings.collect_interval_ms / 1000
        if self._collected_at is not None and now - self._collected_at < interval_s:
            return await self._collector.collect(only_needed=True)
        self._collected_at = now
        return await self._collector.collect()
