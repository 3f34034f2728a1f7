"""How far a chain was read: a row for each chain and scope, which whoever stores a scan compares and sets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Block, Head
from cambist.services.chain_scope import ChainScope
from cambist.services.chains.setups import lock_tokens

from .blocks import APPEND_IF_MOVED, appended, insert_blocks


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
        return Cursor(block.height, block.hash)
    cursor = await load_cursor(conn, chain_scope)
    if cursor is None:
        raise AssertionError("somebody else has just created the cursor")
    return cursor


_MOVE = (
    "UPDATE chain_cursors SET height = ${0}, hash = ${1}, head = ${2}, finalized = ${3}, updated_at = ${4}"
    " WHERE chain = $1 AND scope = $2 AND height = ${5} AND hash = ${6}"
    " AND (${7}::bigint IS NULL OR tokens_revision <= ${7})"
)
_MOVE_ALONE = f"{_MOVE.format(*range(3, 11))} RETURNING histories_begun"
# All of it sees the rows as they were when it began, and may then have waited for the cursor: what others did with it
# meanwhile must show in the cursor's row, which alone is looked at anew.
_ADVANCE = f"""
WITH moved AS (
    {_MOVE.format(*range(9, 17))} AND ($17::bigint IS NULL OR histories_begun = $17) RETURNING chain
), {APPEND_IF_MOVED}
SELECT FROM moved
"""


async def advance(  # noqa: PLR0913  a compare-and-set names both sides
    conn: AsyncConnection,
    chain_scope: ChainScope,
    *,
    old: Cursor,
    blocks: Sequence[Block],
    head: Head,
    now: datetime,
    tokens_revision: int,
    histories_begun: int | None,
) -> bool:
    """Move the cursor to the last of some blocks without a transfer, and store them: a single statement.

    ``histories_begun`` is what the cursor said before the addresses were known that the blocks were scanned for, None
    where that is no matter. Where it is another one by now, where the cursor has moved, and where a token was added,
    nothing is done and False returned: ``move_cursor`` tells which it is.
    """
    new = blocks[-1]
    moved = await conn.exec_driver_sql(
        _ADVANCE,
        (
            *(*chain_scope.key, *appended(chain_scope, blocks, kept=())),
            *(new.height, new.hash, head.height, head.finalized_height, now, old.height, old.hash),
            *(tokens_revision, histories_begun),
        ),
    )
    return moved.rowcount == 1


async def move_cursor(  # noqa: PLR0913  a compare-and-set names both sides
    conn: AsyncConnection,
    chain_scope: ChainScope,
    *,
    old: Cursor,
    new: Cursor,
    head: Head,
    now: datetime,
    tokens_revision: int | None = None,
) -> int:
    """Compare and set the cursor. Raises CursorMovedError when it no longer stands where it was read.

    Returns how often pasts of trackers were begun by now. ``tokens_revision`` says which tokens a scan knew that is
    stored with it. Raises TokensUnknownError where others have to be looked for by now.
    """
    moved = await conn.exec_driver_sql(
        _MOVE_ALONE,
        (
            *chain_scope.key,
            *(new.height, new.hash, head.height, head.finalized_height, now, old.height, old.hash),
            tokens_revision,
        ),
    )
    histories_begun: int | None = moved.scalar()
    if histories_begun is not None:
        return histories_begun
    if tokens_revision is not None and await load_cursor(conn, chain_scope) == old:
        raise TokensUnknownError(f"{chain_scope.info.id}: a token was added that was not looked for")
    raise CursorMovedError(f"{chain_scope.info.id}: another watcher moved the cursor")
