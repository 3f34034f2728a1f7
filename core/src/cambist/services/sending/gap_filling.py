"""Fills gaps between a sender's nonces: what stands behind one can never be mined.

None of ours leaves one. They come from nodes that counted too many, and from reorgs that took away what was not ours.
"""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import IntentKind

from . import nonce_slot_store
from .context import EngineContext
from .intents import internal_intent, is_coming, submit
from .rows import OwnPath

GAPS_MAX = 20


async def fill_gaps(conn: AsyncConnection, context: EngineContext, sender: OwnPath, mined: int, first: int) -> int:
    """Ask for a repair of each gap between what is mined and the first that waits; return how many are asked for."""
    if await is_coming(conn, context.chain_scope, sender.pk, IntentKind.REPAIR):
        return 0
    gaps = await nonce_slot_store.gaps(conn, context.chain_scope, sender.pk, mined, first, GAPS_MAX)
    repairs = [
        internal_intent(
            IntentKind.REPAIR,
            context.ids.new("fix"),
            context.chain_scope,
            merchant_pk=sender.merchant_pk,
            source_pk=sender.pk,
            recipient=sender,
            units=1,
        )
        for _ in gaps
    ]
    await submit(conn, repairs, context.clock.now())
    return len(repairs)
