"""The blocks of a chain as rows: all recent ones, and for ever those that hold something of ours."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import transposed
from cambist.plugin import Block, ChainView
from cambist.services.chain_scope import ChainScope

CLOCKS_DIFFER_MAX = timedelta(minutes=10)
"""A block's time is its maker's word: it may come after a moment by our clock and tell an earlier one."""

PRUNE = "DELETE FROM chain_blocks WHERE chain = $1 AND scope = $2 AND height < $3 AND NOT kept"
_STORE = """
INSERT INTO chain_blocks (chain, scope, height, hash, parent_hash, mined_at, kept)
SELECT $1, $2, * FROM unnest($4::bigint[], $5::text[], $6::text[], $7::timestamptz[], $8::bool[]) {where}
ON CONFLICT DO NOTHING
"""
_APPEND = f"WITH pruned AS ({PRUNE}) {_STORE.format(where='')}"
_IF_MOVED = "EXISTS (SELECT FROM moved)"
APPEND_IF_MOVED = f"pruned AS ({PRUNE} AND {_IF_MOVED}), stored AS ({_STORE.format(where=f'WHERE {_IF_MOVED}')})"
"""The same as parts of a statement that moves the cursor in ``moved``; nothing where it has not moved."""
_APART = """
SELECT max(mined_at) - min(mined_at) FROM chain_blocks WHERE chain = $1 AND scope = $2 AND height IN ($3, $4)
HAVING count(*) = 2
"""
_KEEP = "UPDATE chain_blocks SET kept = true WHERE chain = $1 AND scope = $2 AND height = ANY($3::bigint[])"


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


async def height_before(view: ChainView, head: int, since: datetime) -> int:
    """Find a block that was surely made before a moment: down from the head by ever longer steps, then by halving.

    Times of blocks never decrease. No block is asked for that is much older, as most nodes have forgotten theirs.
    """
    since -= CLOCKS_DIFFER_MAX
    low = high = head
    while low > 0 and moment((await view.block(low)).time) >= since:
        high = low - 1
        low = max(0, high - (head - high) // 2)
    while low < high:
        middle = (low + high + 1) // 2
        if moment((await view.block(middle)).time) < since:
            low = middle
        else:
            high = middle - 1
    return low


async def insert_blocks(
    conn: AsyncConnection, chain_scope: ChainScope, blocks: Sequence[Block], kept: Collection[int]
) -> None:
    """Store blocks that are not stored yet; those at the heights in ``kept`` are never forgotten."""
    await conn.exec_driver_sql(_APPEND, (*chain_scope.key, 0, *_columns(blocks, kept)))


async def append_blocks(
    conn: AsyncConnection, chain_scope: ChainScope, blocks: Sequence[Block], kept: Collection[int]
) -> None:
    """Store what was read on, and forget what is now so far below that no reorg is expected to reach it."""
    await conn.exec_driver_sql(_APPEND, (*chain_scope.key, *appended(chain_scope, blocks, kept)))


def appended(chain_scope: ChainScope, blocks: Sequence[Block], kept: Collection[int]) -> Sequence[Any]:
    """Return what stands for $3 to $8 where blocks are appended."""
    lowest = blocks[-1].height - chain_scope.info.hashes_kept
    recent = [one for one in blocks if one.height >= lowest or one.height in kept]
    return lowest, *_columns(recent, kept)


def _columns(blocks: Sequence[Block], kept: Collection[int]) -> Sequence[list[Any]]:
    return transposed([(one.height, one.hash, one.parent_hash, moment(one.time), one.height in kept) for one in blocks])


async def time_between(conn: AsyncConnection, chain_scope: ChainScope, low: int, high: int) -> timedelta | None:
    """Return how much time lies between two blocks that were read, None where one of them is forgotten."""
    apart: timedelta | None = (await conn.exec_driver_sql(_APART, (*chain_scope.key, low, high))).scalar()
    return apart


async def keep_blocks(conn: AsyncConnection, chain_scope: ChainScope, heights: Collection[int]) -> None:
    """Never forget these blocks, which are stored already."""
    await conn.exec_driver_sql(_KEEP, (*chain_scope.key, sorted(heights)))
