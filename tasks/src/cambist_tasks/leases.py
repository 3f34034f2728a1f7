"""Leases: advisory locks that keep two workers from watching, or sending on, the same chain.

All leases of a worker are on one connection of its own. When the worker dies, PostgreSQL closes the connection and
another worker can take the leases. They only save work: every commit is safe against a second worker.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import AsyncExitStack

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database

log = structlog.get_logger(__name__)

CHECK_S = 2.0
"""How long a lease is trusted without asking the connection."""
ANSWER_S_MAX = 10.0
"""A server that takes longer is stuck. Waiting for it, this worker would say that it watches, and do nothing."""

# A machine that vanished without a word is noticed within seconds, not within the two hours of the default.
_KEEPALIVE = (
    "SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false),"
    " set_config('tcp_keepalives_count', '3', false)"
)
_TROUBLE = (SQLAlchemyError, OSError)


def _key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"cambist lease {name}".encode(), digest_size=8).digest(), "big", signed=True)


class Leases:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._held: set[str] = set()
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._connection: AsyncConnection | None = None
        self._checked_at = 0.0

    async def take(self, name: str) -> bool:
        """Try to take the lease; return True if this worker holds it now."""
        async with self._lock:
            if name in self._held:
                return True
            try:
                async with asyncio.timeout(ANSWER_S_MAX):
                    connection = await self._connected()
                    taken = await connection.exec_driver_sql("SELECT pg_try_advisory_lock($1)", (_key(name),))
                if not taken.scalar_one():
                    return False
            except _TROUBLE as error:
                await self._lose(error)
                return False
            self._held.add(name)
            return True

    async def holds(self, name: str) -> bool:
        """Return True while this worker holds the lease, which ends with its connection."""
        async with self._lock:
            loop = asyncio.get_running_loop()
            if name in self._held and self._connection is not None and loop.time() - self._checked_at >= CHECK_S:
                try:
                    async with asyncio.timeout(ANSWER_S_MAX):
                        await self._connection.exec_driver_sql("SELECT 1")
                    self._checked_at = loop.time()
                except _TROUBLE as error:
                    await self._lose(error)
            return name in self._held

    async def release(self, name: str) -> None:
        async with self._lock:
            if name not in self._held or self._connection is None:
                return
            self._held.discard(name)
            try:
                async with asyncio.timeout(ANSWER_S_MAX):
                    await self._connection.exec_driver_sql("SELECT pg_advisory_unlock($1)", (_key(name),))
            except _TROUBLE as error:
                await self._lose(error)

    async def aclose(self) -> None:
        async with self._lock:
            await self._close()

    async def _connected(self) -> AsyncConnection:
        if self._connection is None:
            connection = await self._stack.enter_async_context(self._db.autocommit())
            await connection.exec_driver_sql(_KEEPALIVE)
            self._connection = connection
        return self._connection

    async def _lose(self, error: Exception) -> None:
        log.warning("leases_lost", leases=sorted(self._held), error=repr(error))
        await self._close()

    async def _close(self) -> None:
        self._held.clear()
        connection, self._connection = self._connection, None
        stack, self._stack = self._stack, AsyncExitStack()
        try:
            if connection is not None:
                # Locks belong to the session, so it must not go back into the pool.
                await connection.invalidate()
            await stack.aclose()
        except _TROUBLE as error:
            log.warning("leases_connection_not_closed", error=repr(error))
