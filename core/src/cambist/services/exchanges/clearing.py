"""Takes back what is left of an allowance once its exchange has ended, and then gives the turn to the next."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from cambist.db.models import OutboundIntent
from cambist.domain.exchanges import Step
from cambist.plugin import ChainError, Units

from .handler import approval_reference
from .queued import approve
from .rows import ExchangeRow, lock, save, save_on
from .worker import ExchangeWorker, later

PAUSE = timedelta(seconds=5)
TURN_PAUSE = timedelta(minutes=1)
CLEARINGS_MAX = 8
"""Approvals of zero that are tried for one exchange before a person is asked."""
ALERT_PAUSE = timedelta(minutes=10)


async def clear(worker: ExchangeWorker, row: ExchangeRow) -> None:
    """Look whether an allowance is left, and ask for an approval of zero where one is."""
    chain, now = worker.chain(row.source_chain), worker.clock.now()
    if chain is None:
        await later(worker, row, PAUSE)
        return
    if row.spender is not None and not await _has_turn(worker, row):
        return
    left = Units(0)
    if row.spender is not None:
        references = [approval_reference(row.txn_id, number) for number in range(row.approvals)]
        is_open = OutboundIntent.state.in_(("waiting", "sending")), OutboundIntent.reference.in_(references)
        async with worker.db.autocommit() as conn:
            opened = await conn.scalar(select(func.count()).select_from(OutboundIntent).where(*is_open))
        if opened:
            await later(worker, row, PAUSE)
            return
        left = await chain.allowance(row.sender, row.spender, row.source)
    async with worker.db.transaction() as conn:
        locked = await lock(conn, row.pk)
        if locked.step is not Step.CLEARING or locked.approvals != row.approvals:
            return
        if not left:
            await save(conn, locked, now, step=Step.ENDED, has_turn=False, due_at=None)
            return
        if locked.approvals >= CLEARINGS_MAX:
            worker.alert("allowance_left", locked, spender=locked.spender, units=str(left))
            await save(conn, locked, now, due_at=now + ALERT_PAUSE)
            return
        await approve(worker, conn, locked, str(locked.spender), Units(0), now)
        await save(conn, locked, now, approvals=locked.approvals + 1, due_at=now + PAUSE)


async def _has_turn(worker: ExchangeWorker, row: ExchangeRow) -> bool:
    """Take the turn again where it was given back: without it, what is left is the allowance of whoever has it."""
    if row.has_turn:
        return True
    try:
        return await save_on(worker.db, row, worker.clock.now(), has_turn=True)
    except IntegrityError:
        await later(worker, row, TURN_PAUSE)
        return False


async def give_back_turn(worker: ExchangeWorker, row: ExchangeRow) -> None:
    """Let the next exchange have the turn as soon as a call that is final has used up its allowance."""
    chain = worker.chain(row.source_chain)
    if not row.has_turn or chain is None:
        return
    try:
        if row.spender is not None and await chain.allowance(row.sender, row.spender, row.source):
            return
    except ChainError:
        # What it brought is credited all the same; the turn waits.
        return
    async with worker.db.transaction() as conn:
        locked = await lock(conn, row.pk)
        if locked.step is row.step and locked.approvals == row.approvals:
            await save(conn, locked, worker.clock.now(), has_turn=False)
