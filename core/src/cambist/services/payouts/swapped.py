"""What becomes of payouts whose recipient is paid by an exchange: they follow it, and the exchange moves the money.

Nobody locks such a payout without its exchange, whose row is locked before: so the rows need no other order.
"""

from __future__ import annotations

from datetime import datetime

import structlog
from msgspec import structs
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.domain import exchanges
from cambist.domain.payouts import FINISHED, Status, while_waiting
from cambist.ports import Ids
from cambist.services.exchanges.rows import ExchangeRow

from . import events
from .read import COLUMNS, PayoutRow, SwapOfPayout, payout_row

log = structlog.get_logger(__name__)


class SwappedPayouts:
    """Tells payouts what happens to the exchange that each was made with, in the transaction in which it happens."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    async def on_waiting(self, conn: AsyncConnection, row: ExchangeRow, now: datetime, /) -> None:
        payout = await _lock(conn, row)
        if payout.status not in FINISHED:
            status = while_waiting(payout.status)
            await _save(conn, payout, now, status=status, waits_for=row.waits_for, tx_id=None)

    async def on_sent(self, conn: AsyncConnection, row: ExchangeRow, now: datetime, /) -> None:
        payout = await _lock(conn, row)
        if payout.status not in FINISHED:
            begun = payout.broadcast_at or now
            await _save(conn, payout, now, status=Status.BROADCAST, waits_for=None, tx_id=row.tx_id, broadcast_at=begun)

    async def on_ended(self, conn: AsyncConnection, row: ExchangeRow, now: datetime, /) -> None:
        """Say what has come to the recipient, and by which transaction; or why the money is back."""
        payout = await _lock(conn, row)
        if row.status is exchanges.Status.SUCCEEDED:
            units = payout.units if row.output_units is None else row.output_units
            told = {"status": Status.COMPLETED, "units": units, "tx_id": row.dest_tx_id or row.tx_id, "error": None}
        else:
            status = Status.CANCELLED if payout.status is Status.CANCELLING else Status.FAILED
            told = {"status": status, "units": row.units_min, "tx_id": row.tx_id, "error": row.error}
        ended = await _save(conn, payout, now, waits_for=None, finished_at=now, **told)
        outcome = "completed" if ended.status is Status.COMPLETED else "failed"
        await events.enqueue_events(conn, [ended], outcome, self._ids, now)

    async def on_reopened(self, conn: AsyncConnection, row: ExchangeRow, now: datetime, /) -> None:
        """Say that a reorg took back how it had ended: it is under way again."""
        payout = await _lock(conn, row)
        reopened = {"status": Status.BROADCAST, "units": row.units_min, "tx_id": row.tx_id}
        await _save(conn, payout, now, error=None, finished_at=None, **reopened)
        log.warning("payout_reopened", payout_id=payout.payout_id, txn_id=row.txn_id)


async def _lock(conn: AsyncConnection, row: ExchangeRow) -> PayoutRow:
    """Return the exchange's payout, locked, with what was swapped for it."""
    if row.payout_pk is None:
        raise AssertionError("an exchange that was made for a payout names it")
    of_exchange = models.Payout.id == row.payout_pk
    found = await conn.execute(select(*COLUMNS).where(of_exchange).with_for_update(key_share=True))
    return structs.replace(payout_row(found.one()), swap=SwapOfPayout.of(row))


async def _save(conn: AsyncConnection, payout: PayoutRow, now: datetime, **changed: object) -> PayoutRow:
    payouts = models.Payout
    await conn.execute(update(payouts).where(payouts.id == payout.pk).values(**changed, updated_at=now))
    return structs.replace(payout, **changed, updated_at=now)
