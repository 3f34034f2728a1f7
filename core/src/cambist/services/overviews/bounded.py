"""An overview sums up rows, however many there are: it is given up before it keeps others waiting."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.errors import UnavailableError

STATEMENT_MS_MAX = 10_000
_CANCELED = "57014"


@asynccontextmanager
async def bounded(conn: AsyncConnection) -> AsyncIterator[None]:
    """Let no statement of this transaction take longer than ``STATEMENT_MS_MAX``.

    Raises UnavailableError for one that would.
    """
    await conn.exec_driver_sql(f"SET LOCAL statement_timeout = {STATEMENT_MS_MAX}")
    try:
        yield
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _CANCELED:
            raise
        words = "There is too much in this time to sum it up at once. Ask for a shorter one."
        raise UnavailableError("OVERVIEW_TOO_SLOW", words) from error
