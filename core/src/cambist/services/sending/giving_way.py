"""Has a sender that fails let the others come first: what no node can plan looks like an outage to all of them."""

from __future__ import annotations

from datetime import timedelta

from cambist.domain.intents import IntentKind

from .context import EngineContext
from .rows import OwnPath

PAUSE = timedelta(seconds=15)
POSTPONED_MAX = 5_000
"""Intents of one sender that give way at once."""

_POSTPONE = f"""
WITH due AS (
    SELECT id FROM outbound_intents WHERE chain = $1 AND scope = $2 AND source_address_pk = $3 AND state = 'waiting'
        AND kind <> '{IntentKind.SWEEP}' AND due_at <= $5 AND cancel_asked_at IS NULL ORDER BY id LIMIT $6 FOR UPDATE
)
UPDATE outbound_intents i SET due_at = $4, updated_at = $5 FROM due WHERE i.id = due.id
"""  # noqa: S608  a constant


async def give_way(context: EngineContext, source: OwnPath) -> None:
    """Have what is due of a sender be due later, a bounded number of it.

    It keeps the reason for which it waits, as that the signer may have signed it before.
    """
    now = context.clock.now()
    async with context.db.transaction() as conn:
        await conn.exec_driver_sql(_POSTPONE, (*context.chain_scope.key, source.pk, now + PAUSE, now, POSTPONED_MAX))
