"""Finishes what is deep in the chain: posts fees and calls handlers; and takes that back after a deep reorg."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from . import finality_store
from .context import EngineContext
from .gas.posting import post_fees
from .handler import lock_spending
from .rows import TxRow


async def finalize(context: EngineContext, *, undoes: bool) -> bool:
    """Finish what is deep, a bounded number of them; return whether anything changed.

    ``undoes``: something that was final may have left the chain, and is looked for.
    """
    async with context.db.transaction() as conn:
        found = await finality_store.lock_depth(conn, context.chain_scope)
        if found is None:
            return False
        now, undone, states = context.clock.now(), list[TxRow](), ("done", "reverted", "cancelled")
        if undoes:
            undone += await finality_store.reopen_undone(conn, context.chain_scope, found, states)
        finals = await finality_store.close_final(conn, context.chain_scope, found, now)
        await lock_spending(conn, context.chain_scope.mode, [tx.intent.update for tx in (*undone, *finals)])
        await _undo(context, conn, undone, now)
        await _finish(context, conn, finals, now)
    for tx in undone:
        context.alert("undone", reference=tx.intent.update.reference, tx_id=tx.tx_id, height=tx.height)
    for tx in finals:
        if not _done(tx):
            context.alert("failed", reference=tx.intent.update.reference, tx_id=tx.tx_id, role=tx.role)
    return bool(undone or finals)


def _done(tx: TxRow) -> bool:
    return tx.role == "main" and bool(tx.succeeded)


async def _finish(context: EngineContext, conn: AsyncConnection, finals: Sequence[TxRow], now: datetime) -> None:
    if not finals:
        return
    await post_fees(conn, context.chain_scope.mode, context.chain_scope.info, finals)
    await context.handlers.on_final(conn, [tx.intent.update for tx in finals if _done(tx)], now)
    await context.handlers.on_failed(conn, [tx.intent.update for tx in finals if not _done(tx)], now)


async def _undo(context: EngineContext, conn: AsyncConnection, undone: Sequence[TxRow], now: datetime) -> None:
    """Take back what was posted. What had failed stays so for who wanted it, unless it is mined after all.

    Its nonce slot must be filled again, though: without it nothing behind it can be mined.
    """
    if undone:
        await post_fees(conn, context.chain_scope.mode, context.chain_scope.info, undone, back=True)
        await context.handlers.on_undone(conn, [tx.intent.update for tx in undone if tx.intent.state == "done"], now)
