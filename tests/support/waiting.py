"""Having a request wait for a lock, so that something else happens meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection


async def waits_for_a_lock(conn: AsyncConnection, act: asyncio.Task[Any]) -> None:
    """Return as soon as somebody waits for a lock in this connection's database, or the act is done without."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with asyncio.timeout(30):
        # A lock of PostgreSQL's, which sets no event.
        while not act.done() and not (await conn.exec_driver_sql(query)).scalar_one():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
