"""Stored transactions are handed to nodes; what nodes say of them is remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cambist.plugin import Broadcast, SignedTx

from . import store
from .desk import Desk

HANDED_OUT_AT_ONCE_MAX = 200


async def hand_out(desk: Desk, txs: Sequence[SignedTx]) -> Mapping[str, Broadcast]:
    """Broadcast in this order, and return by transaction what was said."""
    said: dict[str, Broadcast] = {}
    for first in range(0, len(txs), HANDED_OUT_AT_ONCE_MAX):
        some = txs[first : first + HANDED_OUT_AT_ONCE_MAX]
        said |= {tx.tx_id: answer for tx, answer in zip(some, await desk.chain.broadcast(some), strict=True)}
        now = desk.clock.now()
        accepted = [tx.tx_id for tx in some if said[tx.tx_id].state == "accepted"]
        others = [tx.tx_id for tx in some if said[tx.tx_id].state != "accepted"]
        async with desk.db.transaction() as conn:
            await store.note_tries(conn, desk.site, accepted=accepted, others=others, now=now)
    return said
