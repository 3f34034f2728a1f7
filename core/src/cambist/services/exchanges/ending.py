"""How an exchange ends: told to the merchant, to the payout that waits for it, and paid for in credits or not."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import structlog
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.exchanges import MadeFor, Status, Step
from cambist.domain.intents import metered_as
from cambist.plugin import Units
from cambist.ports import Ids
from cambist.services.accounting import usage

from .events import enqueue_ended
from .rows import ExchangeRow, save

log = structlog.get_logger(__name__)


class PayoutOfExchange(Protocol):
    """What exchanges mean for the payouts that they were made for. ``row.payout_pk`` names the payout, unlocked."""

    async def on_waiting(self, conn: AsyncConnection, row: ExchangeRow, now: datetime, /) -> None: ...
    async def on_sent(self, conn: AsyncConnection, row: ExchangeRow, now: datetime, /) -> None: ...
    async def on_ended(self, conn: AsyncConnection, row: ExchangeRow, now: datetime, /) -> None: ...
    async def on_reopened(self, conn: AsyncConnection, row: ExchangeRow, now: datetime, /) -> None: ...


class Endings(Struct, frozen=True):
    """Ends exchanges and opens them again. Rows are locked, and what the ledger says of it is posted by the caller."""

    ids: Ids
    payouts: PayoutOfExchange

    async def succeed(
        self, conn: AsyncConnection, row: ExchangeRow, now: datetime, units: Units, **changed: object
    ) -> ExchangeRow:
        """Say that the output has come."""
        return await self._end(conn, row, now, status=Status.SUCCEEDED, output_units=units, error=None, **changed)

    async def fail(
        self, conn: AsyncConnection, row: ExchangeRow, now: datetime, reason: str, **changed: object
    ) -> ExchangeRow:
        """Say why nothing came of it. What was never sent costs no credits."""
        if row.broadcast_at is None:
            await usage.give_back(conn, metered_as(row.kind), [row.txn_id], now)
        return await self._end(conn, row, now, status=Status.FAILED, error=reason, **changed)

    async def _end(self, conn: AsyncConnection, row: ExchangeRow, now: datetime, **changed: object) -> ExchangeRow:
        # A turn is given back only when nothing of its allowance is left.
        step = Step.CLEARING if row.has_turn else Step.ENDED
        due_at = now if row.has_turn else None
        ended = await save(conn, row, now, step=step, due_at=due_at, waits_for=None, finished_at=now, **changed)
        await enqueue_ended(conn, ended, self.ids, now)
        if ended.made_for is MadeFor.PAYOUT:
            await self.payouts.on_ended(conn, ended, now)
        log.info("exchange_ended", txn_id=ended.txn_id, status=ended.status, error=ended.error)
        return ended

    async def reopen(
        self, conn: AsyncConnection, row: ExchangeRow, now: datetime, step: Step, **changed: object
    ) -> ExchangeRow:
        """Set the step that it is on from now on; where it had ended, a reorg took that back."""
        opened = await save(
            conn,
            row,
            now,
            status=Status.PENDING,
            step=step,
            due_at=now,
            error=None,
            output_units=None,
            finished_at=None,
            **changed,
        )
        if row.is_finished:
            log.warning("exchange_reopened", txn_id=row.txn_id, step=step)
            if opened.made_for is MadeFor.PAYOUT:
                await self.payouts.on_reopened(conn, opened, now)
        return opened
