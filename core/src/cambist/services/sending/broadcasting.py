"""Broadcasts stored transactions, and remembers what nodes say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cambist.plugin import Broadcast, SignedTx

from . import store
from .context import EngineContext

BROADCAST_AT_ONCE_MAX = 200


async def broadcast(context: EngineContext, txs: Sequence[SignedTx]) -> Mapping[str, Broadcast]:
    """Broadcast in this order, and return by transaction what was said."""
    said: dict[str, Broadcast] = {}
    for first in range(0, len(txs), BROADCAST_AT_ONCE_MAX):
        some = txs[first : first + BROADCAST_AT_ONCE_MAX]
        said |= {tx.tx_id: answer for tx, answer in zip(some, await context.chain.broadcast(some), strict=True)}
        now = context.clock.now()
        accepted = [tx.tx_id for tx in some if said[tx.tx_id].state == "accepted"]
        others = [tx.tx_id for tx in some if said[tx.tx_id].state != "accepted"]
        async with context.db.transaction() as conn:
            await store.note_tries(conn, context.chain_scope, accepted=accepted, others=others, now=now)
    return said
