"""The way past SQLAlchemy, for the few statements that are sent most: a third of the cost for this process."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import asyncpg

CONNECTIONS_MAX = 8
"""Each is busy for a millisecond at a time; SQLAlchemy's pool has its own besides."""


class Record(Protocol):
    """A row by its columns' names."""

    def __getitem__(self, name: str, /) -> Any: ...  # noqa: ANN401  columns differ in type


class _Connection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg ships no types
    """A connection on which nothing is ever left behind, since every statement is its own transaction."""

    def get_reset_query(self) -> str:
        """Spare the round trip that would clean up."""
        return ""


class Direct:
    """A pool of the driver's own connections, opened when it is first used."""

    def __init__(self, options: dict[str, Any], *, timeout_s: float) -> None:
        """Connect with these options of the driver, and wait so long for a free connection."""
        self._options = options
        self._timeout_s = timeout_s
        self._opening = asyncio.Lock()
        self._pool: Any = None

    async def fetch_row(self, statement: str, *arguments: object) -> Record | None:
        """Run one statement as its own transaction, and return its first row."""
        pool = self._pool or await self._open()
        # A timeout costs a task of its own, so there is one only where there is something to wait for.
        timeout_s = None if pool.get_idle_size() else self._timeout_s
        async with pool.acquire(timeout=timeout_s) as connection:
            row: Record | None = await connection.fetchrow(statement, *arguments)
        return row

    async def close(self) -> None:
        """Close every connection."""
        if self._pool is not None:
            await self._pool.close()

    async def _open(self) -> Any:  # noqa: ANN401  asyncpg ships no types
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    **self._options, min_size=1, max_size=CONNECTIONS_MAX, connection_class=_Connection
                )
        return self._pool
