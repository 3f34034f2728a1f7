"""Blocks in which transactions of the gateway's own are read, whatever nodes say of them when asked by their ids."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import transposed
from cambist.plugin import ScanResult
from cambist.services.chain_scope import ChainScope

_NOTE = """
WITH read AS (SELECT * FROM unnest($3::text[], $4::bigint[], $5::text[]) AS n (tx_id, height, hash)), due AS (
    SELECT t.id, read.height, read.hash FROM outbound_txs t JOIN read USING (tx_id)
    WHERE t.chain = $1 AND t.scope = $2 ORDER BY t.id FOR NO KEY UPDATE OF t
)
UPDATE outbound_txs t SET read_height = due.height, read_hash = due.hash FROM due WHERE t.id = due.id
RETURNING t.read_height
"""


async def note_sent(conn: AsyncConnection, chain_scope: ChainScope, result: ScanResult) -> Collection[int]:
    """Note in which block of a scan each transaction of ours moved something, and return the heights of these blocks.

    A nonce slot is given up where something else used its nonce. That no node finds what we signed for it is no proof
    of that: an index of transactions may be behind, or lost, where the blocks are all there. Whoever calls this holds
    the cursor, and keeps these blocks for ever: with those alone that are recent, one that a reorg had replaced long
    ago would look like one that stands.
    """
    moved = {one.tx_id: (one.tx_id, one.height, one.block_hash) for one in result.transfers}
    if not moved or chain_scope.mode == "sandbox":  # what is simulated is always found
        return set()
    return set((await conn.exec_driver_sql(_NOTE, (*chain_scope.key, *transposed(list(moved.values()))))).scalars())
