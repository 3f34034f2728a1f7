"""Whether the database's disk has room: whoever reads is answered as ever, so it takes writing to see."""

from __future__ import annotations

import structlog
from sqlalchemy.exc import DBAPIError

from .engine import Database, had_no_room

log = structlog.get_logger(__name__)

_SOME_ROOM = """
    CREATE TEMPORARY TABLE room_tried ON COMMIT DROP AS SELECT md5(i::text) FROM generate_series(1, 20000) AS i
"""


async def is_full(db: Database) -> bool:
    """Say whether there is no room for a megabyte of a table, which is gone at the end."""
    try:
        async with db.transaction() as conn:
            await conn.exec_driver_sql(_SOME_ROOM)
    except DBAPIError as error:
        if had_no_room(error):
            return True
        log.warning("room_not_tried", error=repr(error.orig))  # by an account that may make no such table, say
    return False
