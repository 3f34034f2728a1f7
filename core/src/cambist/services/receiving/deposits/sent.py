"""Blocks in which transactions of the gateway's own are read, whatever nodes say of them when asked by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import transposed
from cambist.plugin import ScanResult
from cambist.services.chain_scope import ChainScope

_NOTE = """
WITH read AS (SELECT * FROM unnest($3::text[], $4::bigint[], $5::text[]) AS n (tx_id, height, hash)), due AS (
    SELECT t.id, read.height, read.hash, i.kind FROM outbound_txs t JOIN read USING (tx_id)
        JOIN outbound_slots s ON s.id = t.slot_pk JOIN outbound_intents i ON i.id = s.intent_pk
    WHERE t.chain = $1 AND t.scope = $2 ORDER BY t.id FOR NO KEY UPDATE OF t
)
UPDATE outbound_txs t SET read_height = due.height, read_hash = due.hash FROM due WHERE t.id = due.id
RETURNING t.tx_id, t.read_height, due.kind
"""


class Sent(NamedTuple):
    """A transaction of ours that was read in a block, and the kind of the intent that it was signed for."""

    height: int
    kind: str


async def note_sent(conn: AsyncConnection, chain_scope: ChainScope, result: ScanResult) -> Mapping[str, Sent] | None:
    """Note in which block of a scan each transaction of ours moved something; return them, None where none is noted.

    A nonce slot is given up where something else used its nonce. That no node finds what we signed for it is no proof
    of that: an index of transactions may be behind, or lost, where the blocks are all there. Whoever calls this holds
    the cursor, and keeps these blocks for ever: with those alone that are recent, one that a reorg had replaced long
    ago would look like one that stands.
    """
    if chain_scope.mode == "sandbox":  # what is simulated is always found
        return None
    moved = {one.tx_id: (one.tx_id, one.height, one.block_hash) for one in result.transfers}
    if not moved:
        return {}
    noted = await conn.exec_driver_sql(_NOTE, (*chain_scope.key, *transposed(list(moved.values()))))
    return {row.tx_id: Sent(row.read_height, row.kind) for row in noted}
