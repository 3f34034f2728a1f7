"""What reads as much as there is, such as sums and counts for files: given up before it keeps others waiting."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import took_too_long

from .errors import UnavailableError

STATEMENT_MS_MAX = 10_000


@asynccontextmanager
async def bounded(conn: AsyncConnection, refusal: UnavailableError) -> AsyncIterator[None]:
    """Let no statement of this transaction take longer than ``STATEMENT_MS_MAX``.

    Raises ``refusal`` for one that would.
    """
    await conn.exec_driver_sql(f"SET LOCAL statement_timeout = {STATEMENT_MS_MAX}")
    try:
        yield
    except DBAPIError as error:
        if not took_too_long(error):
            raise
        raise refusal from error
