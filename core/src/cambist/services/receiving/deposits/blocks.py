"""The blocks of a chain as rows: all recent ones, and for ever those that hold something of ours."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import transposed
from cambist.plugin import Block
from cambist.services.chain_scope import ChainScope

PRUNE = "DELETE FROM chain_blocks WHERE chain = $1 AND scope = $2 AND height < $3 AND NOT kept"
_KEEP = "UPDATE chain_blocks SET kept = true WHERE chain = $1 AND scope = $2 AND height = ANY($3::bigint[])"


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


async def insert_blocks(
    conn: AsyncConnection, chain_scope: ChainScope, blocks: Sequence[Block], kept: Collection[int]
) -> None:
    """Store blocks that are not stored yet; those at the heights in ``kept`` are never forgotten."""
    rows = [(one.height, one.hash, one.parent_hash, moment(one.time), one.height in kept) for one in blocks]
    await conn.exec_driver_sql(
        "INSERT INTO chain_blocks (chain, scope, height, hash, parent_hash, mined_at, kept)"
        " SELECT $1, $2, * FROM unnest($3::bigint[], $4::text[], $5::text[], $6::timestamptz[], $7::bool[])"
        " ON CONFLICT DO NOTHING",
        (*chain_scope.key, *transposed(rows)),
    )


async def keep_blocks(conn: AsyncConnection, chain_scope: ChainScope, heights: Collection[int]) -> None:
    """Never forget these blocks, which are stored already."""
    await conn.exec_driver_sql(_KEEP, (*chain_scope.key, sorted(heights)))


async def prune_blocks(conn: AsyncConnection, chain_scope: ChainScope, height: int) -> None:
    """Forget what is so far below this height that no reorg is expected to reach it."""
    await conn.exec_driver_sql(PRUNE, (*chain_scope.key, height - chain_scope.info.hashes_kept))
