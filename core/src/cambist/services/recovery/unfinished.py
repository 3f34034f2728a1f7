"""Whether a restore is under way in a database: web and workers ask, who need nothing else of it."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.accounting.ledger import Posting, is_posted, post

KIND = "restore"
"""What a restore posts, and by what it knows how far it came."""
_BEGUN, _FINISHED = "begun", "finished"

_STANDING = """
SELECT EXISTS (SELECT FROM ledger_transactions WHERE kind = $1 AND reference = $2)
    AND NOT EXISTS (SELECT FROM ledger_transactions WHERE kind = $1 AND reference = $3) AS goes_on,
    NOT EXISTS (SELECT FROM merchants) AS may_begin
"""


async def begin(conn: AsyncConnection) -> None:
    """Note that a restore has begun; again, where it goes on."""
    await _note(conn, _BEGUN)


async def finish(conn: AsyncConnection) -> None:
    """Note that it has come to its end: from now on the database is what web and workers may go on from."""
    await _note(conn, _FINISHED)


async def has_begun(conn: AsyncConnection) -> bool:
    """Say whether a restore has begun in this database, and perhaps ended."""
    return await is_posted(conn, KIND, _BEGUN)


class Standing(NamedTuple):
    """Whether a restore goes on in this database, and whether one may begin: where there is no merchant yet."""

    goes_on: bool
    may_begin: bool


async def standing(conn: AsyncConnection) -> Standing:
    """Read both in one statement: a restore that began before there were merchants is not missed."""
    found = (await conn.exec_driver_sql(_STANDING, (KIND, _BEGUN, _FINISHED))).one()
    return Standing(found.goes_on, found.may_begin)


async def is_unfinished(conn: AsyncConnection) -> bool:
    """Say whether a restore has begun in this database and has not come to its end yet."""
    return (await standing(conn)).goes_on


async def _note(conn: AsyncConnection, reference: str) -> None:
    await post(conn, "live", [Posting(mode="live", kind=KIND, reference=reference, movements=[])])
