"""Having a request wait for a lock, so that something else happens meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection


async def waits_for_a_lock(conn: AsyncConnection, act: asyncio.Task[Any], *, number: int = 1) -> None:
    """Return as soon as so many wait for a lock in this connection's database, or the act is done without."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with asyncio.timeout(30):
        # A lock of PostgreSQL's, which sets no event.
        while not act.done():
            # A transaction goes on seeing those who were connected when it looked first.
            await conn.exec_driver_sql("SELECT pg_stat_clear_snapshot()")
            if (await conn.exec_driver_sql(query)).scalar_one() >= number:
                return
            await asyncio.sleep(0.02)
