"""Defers intents while an operator has paused sending, and says so; releases them once it is resumed."""

from __future__ import annotations

from . import store
from .batches import WAITS_FOR_OPERATOR
from .context import EngineContext

INTENTS_MAX = 500
"""Intents of one transaction."""


async def defer_paused(context: EngineContext) -> bool:
    """Have the next intents that are due wait for the operator; return whether there may be more.

    What waits for the signer keeps its reason: it may have been signed before, which must not be forgotten.
    """
    return await _change(context, WAITS_FOR_OPERATOR, is_deferred=False)


async def release_paused(context: EngineContext) -> bool:
    """Have the next intents that waited for the operator be due; return whether there may be more."""
    return await _change(context, None, is_deferred=True)


async def _change(context: EngineContext, reason: str | None, *, is_deferred: bool) -> bool:
    now = context.clock.now()
    async with context.db.autocommit() as conn:
        found = await store.due_for_reason(
            conn, context.chain_scope, now, WAITS_FOR_OPERATOR, is_deferred=is_deferred, limit=INTENTS_MAX
        )
    if found:
        async with context.db.transaction() as conn:
            await context.defer(conn, found, reason, now, now, keeps_retry=True)
    return len(found) == INTENTS_MAX
