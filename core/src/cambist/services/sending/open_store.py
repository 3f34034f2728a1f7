"""What there is to follow, in one statement: open transactions, and what the database knows of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Units
from cambist.services.chain_scope import ChainScope

from .fee_wishes import FeeWish
from .finality_store import depth_of
from .rows import TX_COLUMNS, TX_JOINS, TxRow, tx_row

OPEN_MAX = 5_000
"""Nonce slots followed in one tick; the rest are followed in the next."""

# Without a cursor nothing is read of the chain yet, and nothing is followed.
# A height that the watcher does not know counts while it would be remembered. One that is kept for longer says it for
# ever.
_OPEN = f"""
WITH open AS MATERIALIZED (
    SELECT {TX_COLUMNS}, t.block_hash, s.raise_asked_at, s.raise_fee_max FROM {TX_JOINS}
    WHERE t.slot_pk IN (
        SELECT id FROM outbound_slots WHERE chain = $1 AND scope = $2 AND state = 'open' ORDER BY id LIMIT $3
    ) AND t.state IN ('stored', 'sent', 'mined')
)
SELECT t.*, c.height AS read_height, c.head, c.finalized, t.state = 'mined'
    AND (b.hash <> t.block_hash OR b.hash IS NULL AND t.height >= c.height - $4) IS TRUE AS is_reorged
FROM open t JOIN chain_cursors c ON c.chain = $1 AND c.scope = $2
    LEFT JOIN chain_blocks b ON b.chain = $1 AND b.scope = $2 AND b.height = t.height
ORDER BY t.id
"""  # noqa: S608  constants


class Open(Struct, frozen=True, kw_only=True):
    """What is not deep in the chain yet, oldest first, with all transactions of each slot: one is mined.

    ``read_height`` is how far the watcher has read, ``deep`` the highest block that counts as deep, ``head`` the newest
    one that was seen. ``reorged`` are those that were mined in a block which is not the one that the watcher knows at
    its height.
    """

    read_height: int
    deep: int
    head: int
    txs: Sequence[TxRow]
    reorged: Collection[int]
    wishes: Sequence[FeeWish]


async def read_open(conn: AsyncConnection, chain_scope: ChainScope) -> Open | None:
    """Return what is followed, or None where that is nothing."""
    found = await conn.exec_driver_sql(_OPEN, (*chain_scope.key, OPEN_MAX, chain_scope.info.hashes_kept))
    rows = found.all()
    if not rows:
        return None
    wishes = {
        row.slot_pk: FeeWish(
            row.slot_pk, row.raise_asked_at, None if row.raise_fee_max is None else Units(int(row.raise_fee_max))
        )
        for row in rows
        if row.raise_asked_at is not None
    }
    return Open(
        read_height=rows[0].read_height,
        deep=depth_of(chain_scope, rows[0].read_height, rows[0].finalized).deep,
        head=rows[0].head,
        txs=[tx_row(row) for row in rows],
        reorged={row.id for row in rows if row.is_reorged},
        wishes=[wish for _, wish in sorted(wishes.items())],
    )
