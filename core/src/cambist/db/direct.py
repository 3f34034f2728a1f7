"""The way past SQLAlchemy, for the few statements that are sent most: a third of the cost for this process.

Also past asyncpg's pool, which starts a task to take a connection back: 35 µs, when a statement takes this process 60.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg

from .known_types import KnowingConnection

CONNECTIONS_MAX = 8
"""Each is busy for a millisecond at a time; SQLAlchemy's pool has its own besides."""

IDLE_S_MAX = 300
"""What stands between may have forgotten a connection that was idle for longer, and then nothing ever answers on it."""


OF_DATABASE = "The database was not reached, or was lost."
"""The note on an OSError that says so: others may come of anything else that a request does."""

TLS_OPTIONS = ("sslmode", "ssl", "sslrootcert")


class Record(Protocol):
    """A row by its columns' names."""

    def __getitem__(self, name: str, /) -> Any: ...  # noqa: ANN401  columns differ in type


class Direct:
    """The driver's own connections, opened as they are needed and kept."""

    def __init__(self, options: dict[str, Any], *, timeout_s: float) -> None:
        """Connect with these options of the driver, and wait so long for a free connection."""
        self._options = options
        self._timeout_s = timeout_s
        self._room = asyncio.Semaphore(CONNECTIONS_MAX)
        self._idle: deque[tuple[float, Any]] = deque()  # since when; asyncpg ships no types
        self._closed = False

    async def fetch_row(self, statement: str, *arguments: object) -> Record | None:
        """Run one statement as its own transaction, and return its first row.

        Raises SQLAlchemy's TimeoutError where no connection becomes free in time, as its pool does, TimeoutError where
        none opens, OSError, and the driver's errors.
        """
        await self._wait_for_room()
        try:
            connection = self._idle_connection() or await opened(**self._options)
            try:
                row: Record | None = await connection.fetchrow(statement, *arguments)
            except BaseException as error:
                is_lost = connection.is_closed()
                # Whatever state it is in, nobody else shall meet it. What still runs is cancelled at the server too:
                # it would hold its locks and a connection there.
                with suppress(TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    await connection.close(timeout=self._timeout_s)
                if is_lost and isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError):
                    # The driver says so of what is done wrong as well.
                    lost = ConnectionError("The connection to the database was lost.")
                    lost.add_note(OF_DATABASE)
                    raise lost from error
                raise
            if self._closed:
                await connection.close()
            else:
                self._idle.append((time.monotonic(), connection))
            return row
        finally:
            self._room.release()

    async def close(self) -> None:
        """Close every connection; what is under way closes its own when it is done."""
        self._closed = True
        while self._idle:
            _, connection = self._idle.pop()
            await connection.close()

    async def _wait_for_room(self) -> None:
        if self._room.locked():
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._room.acquire()
            except TimeoutError:
                # Who asks once does without (see connect_once), and never waits.
                from sqlalchemy.exc import TimeoutError as BusyError  # noqa: PLC0415

                raise BusyError("No connection became free in time.") from None
        else:
            await self._room.acquire()

    def _idle_connection(self) -> Any:  # noqa: ANN401  asyncpg ships no types
        while self._idle and time.monotonic() - self._idle[0][0] > IDLE_S_MAX:
            self._idle.popleft()[1].terminate()
        while self._idle:
            _, connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None


async def opened(*address: Any, **options: Any) -> Any:  # noqa: ANN401  asyncpg ships no types
    """Return a new connection of the driver's. Raises OSError, noted as ``OF_DATABASE``, and the driver's errors."""
    try:
        return await asyncpg.connect(*address, **options)
    except OSError as error:
        error.add_note(OF_DATABASE)
        raise


async def connect_once(url: str, *, timeout_s: float) -> Any:  # noqa: ANN401  asyncpg ships no types
    """Return one connection to the operator's address of the database, to be closed by the caller.

    For processes that ask once: to import SQLAlchemy takes longer. Raises OSError and the driver's errors.
    """
    parsed = urlsplit(url)
    options = [(name, value) for name, value in parse_qsl(parsed.query) if name not in TLS_OPTIONS]
    bare = parsed._replace(scheme="postgresql", query=urlencode(options)).geturl()
    return await asyncpg.connect(bare, timeout=timeout_s, connection_class=KnowingConnection, **tls_of(url))


def tls_of(url: str) -> dict[str, Any]:
    """Return what the driver is told of TLS, of the address's ``sslmode`` and ``sslrootcert``, as libpq knows them.

    Without ``sslrootcert`` the machine's own authorities are believed; the driver would look for a file of its own.
    Raises OSError and ssl.SSLError for certificates that cannot be read.
    """
    query = dict(parse_qsl(urlsplit(url).query))
    mode, authority = query.get("sslmode") or query.get("ssl"), query.get("sslrootcert")
    if mode not in {"verify-ca", "verify-full"}:
        return {} if mode is None else {"ssl": mode}
    context = ssl.create_default_context(cafile=None if authority in {None, "system"} else authority)
    context.check_hostname = mode == "verify-full"
    return {"ssl": context}
