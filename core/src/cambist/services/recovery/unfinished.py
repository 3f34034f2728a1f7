"""Whether a restore is under way in a database: web and workers ask, who need nothing else of it."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.accounting.ledger import Posting, is_posted, post

KIND = "restore"
"""What a restore posts, and by what it knows how far it came."""
_BEGUN, _FINISHED = "begun", "finished"


async def begin(conn: AsyncConnection) -> None:
    """Note that a restore has begun; again, where it goes on."""
    await _note(conn, _BEGUN)


async def finish(conn: AsyncConnection) -> None:
    """Note that it has come to its end: from now on the database is what web and workers may go on from."""
    await _note(conn, _FINISHED)


async def has_begun(conn: AsyncConnection) -> bool:
    """Say whether a restore has begun in this database, and perhaps ended."""
    return await is_posted(conn, KIND, _BEGUN)


async def is_unfinished(conn: AsyncConnection) -> bool:
    """Say whether a restore has begun in this database and has not come to its end yet."""
    return await has_begun(conn) and not await is_posted(conn, KIND, _FINISHED)


async def _note(conn: AsyncConnection, reference: str) -> None:
    await post(conn, "live", [Posting(mode="live", kind=KIND, reference=reference, movements=[])])
