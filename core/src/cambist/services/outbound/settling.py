"""What is deep in the chain is over: its fee is posted, and whoever wanted it is told; until a reorg undoes it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from . import settled_store
from .desk import Desk, retold
from .locking import hold_still, lock_spending
from .posting import post_fees
from .rows import TxRow

REVERTED = "The transaction was mined, and failed."
CANCELLED = "The network refused the transaction for good, or did not take it in time."


async def settle(desk: Desk) -> bool:
    """Finish what is deep, a bounded number of them; return whether anything changed."""
    async with desk.db.transaction() as conn:
        await hold_still(conn, desk.site)
        found = await settled_store.depth(conn, desk.site)
        if found is None:
            return False
        now = desk.clock.now()
        undone = await settled_store.take_undone(conn, desk.site, found, ("done", "reverted", "cancelled"))
        finals = await settled_store.take_final(conn, desk.site, found)
        await lock_spending(conn, desk.site, [tx.intent.sent for tx in (*undone, *finals)])
        await _undo(desk, conn, undone, now)
        await _finish(desk, conn, finals, now)
    for tx in undone:
        desk.alert("undone", reference=tx.intent.sent.reference, tx_id=tx.tx_id, height=tx.height)
    for tx in finals:
        if not _done(tx):
            desk.alert("failed", reference=tx.intent.sent.reference, tx_id=tx.tx_id, role=tx.role)
    return bool(undone or finals)


def _done(tx: TxRow) -> bool:
    return tx.role == "main" and bool(tx.succeeded)


async def _finish(desk: Desk, conn: AsyncConnection, finals: Sequence[TxRow], now: datetime) -> None:
    if not finals:
        return
    await post_fees(conn, desk.site.mode, desk.site.info, finals)
    done = [tx for tx in finals if _done(tx)]
    await settled_store.finish(conn, [tx.intent for tx in done], "done", None, now)
    await desk.tell(conn, "on_final", [tx.intent.sent for tx in done], now)
    for role, reason in (("main", REVERTED), ("cancel", CANCELLED)):
        failed = [tx for tx in finals if tx.role == role and not _done(tx)]
        if failed:
            await settled_store.finish(conn, [tx.intent for tx in failed], "failed", reason, now)
            await desk.tell(conn, "on_failed", [retold(tx.intent.sent, reason=reason) for tx in failed], now)


async def _undo(desk: Desk, conn: AsyncConnection, undone: Sequence[TxRow], now: datetime) -> None:
    """Take back what was posted. What had failed stays so for who wanted it, unless it is mined after all.

    Its place must be filled again, though: without it nothing behind it can be mined.
    """
    if undone:
        await post_fees(conn, desk.site.mode, desk.site.info, undone, back=True)
        await desk.tell(conn, "on_undone", [tx.intent.sent for tx in undone if tx.intent.state == "done"], now)
