"""How far a chain was read: a row for each chain and scope, which whoever stores a scan compares and sets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Block, Head
from cambist.services.chain_scope import ChainScope
from cambist.services.chains.setups import lock_tokens

from .blocks import insert_blocks


class Cursor(Struct, frozen=True):
    """The last block whose transfers are all stored."""

    height: int
    hash: str


class CursorMovedError(Exception):
    """Another watcher was faster: what this one read is already stored, or will be read again."""


class TokensUnknownError(CursorMovedError):
    """A token was added that this process does not know yet: what it read is read again with it."""


async def load_cursor(conn: AsyncConnection, chain_scope: ChainScope) -> Cursor | None:
    """Return where the chain was read to, or None before the first poll."""
    found = await conn.exec_driver_sql(
        "SELECT height, hash FROM chain_cursors WHERE chain = $1 AND scope = $2", chain_scope.key
    )
    row = found.first()
    return None if row is None else Cursor(row.height, row.hash)


async def create_cursor(
    conn: AsyncConnection, chain_scope: ChainScope, block: Block, earlier: Sequence[Block], now: datetime
) -> Cursor:
    """Remember where reading begins: this block counts as read, and the earlier ones for finding a fork.

    The first of several callers decides.
    """
    if chain_scope.scope == 0:
        await lock_tokens(conn, chain_scope.info.id)
    begun = await conn.exec_driver_sql(
        "INSERT INTO chain_cursors (chain, scope, height, hash, head, updated_at, tokens_revision)"
        " VALUES ($1, $2::bigint, $3, $4, $3, $5,"
        " (SELECT coalesce(max(revision), 0) FROM chain_tokens WHERE chain = $1 AND $2::bigint = 0))"
        " ON CONFLICT DO NOTHING",
        (*chain_scope.key, block.height, block.hash, now),
    )
    if begun.rowcount:
        await insert_blocks(conn, chain_scope, [block, *earlier], kept=set())
    cursor = await load_cursor(conn, chain_scope)
    if cursor is None:
        raise AssertionError("the cursor was just created")
    return cursor


async def move_cursor(  # noqa: PLR0913  a compare-and-set names both sides
    conn: AsyncConnection,
    chain_scope: ChainScope,
    *,
    old: Cursor,
    new: Cursor,
    head: Head,
    now: datetime,
    tokens_revision: int | None = None,
) -> None:
    """Compare and set the cursor. Raises CursorMovedError when it no longer stands where it was read.

    ``tokens_revision`` says which tokens a scan knew that is stored with it. Raises TokensUnknownError where others
    have to be looked for by now.
    """
    moved = await conn.exec_driver_sql(
        "UPDATE chain_cursors SET height = $3, hash = $4, head = $5, finalized = $6, updated_at = $7"
        " WHERE chain = $1 AND scope = $2 AND height = $8 AND hash = $9"
        " AND ($10::bigint IS NULL OR tokens_revision <= $10)",
        (
            *chain_scope.key,
            *(new.height, new.hash, head.height, head.finalized_height, now, old.height, old.hash),
            tokens_revision,
        ),
    )
    if moved.rowcount == 1:
        return
    if tokens_revision is not None and await load_cursor(conn, chain_scope) == old:
        raise TokensUnknownError(f"{chain_scope.info.id}: a token was added that was not looked for")
    raise CursorMovedError(f"{chain_scope.info.id}: another watcher moved the cursor")
