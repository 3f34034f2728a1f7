"""The door to PostgreSQL: transactions that commit at their edge, and single statements that are their own."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar

import asyncpg
import msgspec
from sqlalchemy import URL, exc, make_url
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from .connection import TextEngine
from .direct import OF_DATABASE, TLS_OPTIONS, Direct, opened, tls_of
from .known_types import KnowingConnection
from .pool import Pool

IDLE_IN_TRANSACTION_MS_MAX = 60_000
STATEMENT_MS_MAX = 60_000
PREPARED_STATEMENTS_MAX = 500
RECYCLE_S = 900
KEEPALIVE_S = 60
"""After which a connection that nobody uses says that it is there, to whatever lies between and would forget it."""

BusyError = exc.TimeoutError
"""No connection became free in time. The pool alone raises it, and the fast lane: the server was told nothing."""

_CANCELED = "57014"
_DISK_FULL = "53100"
_READ_ONLY = "25006"

has_committed: ContextVar[bool] = ContextVar("has_committed", default=False)
"""Whether this task has ended a transaction since who began its work set this to False.

Who then waits in vain for another connection cannot say that nothing happened.
"""


class Database:
    """A pool of connections. Only ``transaction`` commits, and it does so in one place: its end."""

    def __init__(self, engine: TextEngine, direct: Direct) -> None:
        """``close`` ends both."""
        self.engine = engine
        self.fetch_row = direct.fetch_row
        self._direct = direct
        self._autocommit = TextEngine(engine.execution_options(isolation_level="AUTOCOMMIT").sync_engine)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Yield a connection whose work is committed when the block ends, and undone when it raises.

        Raises BusyError, as ``autocommit`` does.
        """
        async with self.engine.opened(transaction=True) as conn:
            yield conn
        has_committed.set(True)

    def autocommit(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Return a connection on which every statement is a transaction: no BEGIN and COMMIT on the way."""
        return self._autocommit.opened(transaction=False)

    async def close(self) -> None:
        await self._direct.close()
        await self.engine.dispose()


def connect(
    url: str,
    *,
    application_name: str,
    pool_size: int = 10,
    pool_overflow: int = 10,
    pool_timeout_s: float = 10.0,
) -> Database:
    """Return the database at a ``postgresql://`` address. Nothing is opened before it is used.

    As many connections as ``pool_size`` are kept, and ``pool_overflow`` others while they are needed now and then.
    """
    options = {
        "timeout": pool_timeout_s,
        "connection_class": KnowingConnection,
        "server_settings": {
            "application_name": application_name,
            "timezone": "UTC",
            "jit": "off",
            # Whatever is asked: to start others that help takes longer than to find the rows of a list, and for a long
            # sum they would take the cores from what is paid meanwhile.
            "max_parallel_workers_per_gather": "0",
            # Rows stand in memory or on flash. For a disk that turns, which PostgreSQL is set for, it would rather read
            # a whole table than look up some thousands of its rows, and a list be four times as slow now and then.
            "random_page_cost": "1.1",
            "statement_timeout": str(STATEMENT_MS_MAX),
            "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_MS_MAX),
            "tcp_keepalives_idle": str(KEEPALIVE_S),
        },
    }
    engine = create_async_engine(
        driver_url(url),
        poolclass=Pool,
        pool_size=pool_size,
        max_overflow=pool_overflow,
        pool_timeout=pool_timeout_s,
        # Whatever lies between may have forgotten one that nobody used.
        pool_recycle=RECYCLE_S,
        # The fewer of them work, the fewer keep plans and what they know of tables: ten megabytes each in the server.
        pool_use_lifo=True,
        # They would be in the text of every error, and so in logs: names, addresses, hashes of passwords.
        hide_parameters=True,
        json_serializer=lambda value: msgspec.json.encode(value).decode(),
        json_deserializer=msgspec.json.decode,
        connect_args={
            **options,
            **tls_of(url),
            "prepared_statement_cache_size": PREPARED_STATEMENTS_MAX,
            "async_creator_fn": opened,
        },
    )
    # What the address says is read once, by SQLAlchemy, for both ways in.
    _, address = engine.dialect.create_connect_args(engine.url)
    return Database(
        TextEngine(engine.sync_engine), Direct({**address, **options, **tls_of(url)}, timeout_s=pool_timeout_s)
    )


def took_too_long(error: BaseException) -> bool:
    """Say whether this is the server's word that a statement was given up, as ``statement_timeout`` has it do."""
    return _state(error) == _CANCELED


def had_no_room(error: BaseException) -> bool:
    """Say whether this is the server's word that its disk is full."""
    return _state(error) == _DISK_FULL


def is_away(error: BaseException) -> bool:
    """Say whether the database was not reached, was lost, or takes no writes: the same may go well later.

    Also whatever else is not reached raises OSError, and TimeoutError: only the database's says so in a note.
    """
    state = _state(error) or ""
    if state == _READ_ONLY or state.startswith(_OF_THE_SERVER):
        return True
    return getattr(error, "connection_invalidated", False) or OF_DATABASE in getattr(error, "__notes__", ())


def _state(error: BaseException) -> str | None:
    state: str | None = getattr(getattr(error, "orig", error), "sqlstate", None)
    return state


def why_unreached(error: BaseException) -> str | None:
    """Return why the database was not reached, without secrets; None where the error is another one."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, asyncpg.PostgresError):
            return str(found).rstrip(".") if (found.sqlstate or "").startswith(_OF_THE_SERVER) else None
        if isinstance(found, OSError) and found.filename is None and found.errno not in _OF_FILES:
            if found.errno is None or found.errno <= 0:  # several addresses, or a name that nobody knows
                return found.strerror or str(found) or type(found).__name__
            return os.strerror(found.errno)
        found = found.__cause__
    return None


_OF_THE_SERVER = ("08", "28", "3D", "53", "57P")
"""What PostgreSQL's errors begin with that are about the connection, who asks for it, and the server itself."""
_OF_FILES = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
"""Errors of writing to a file, which name none."""


def driver_url(url: str) -> URL:
    """Turn an operator's ``postgres://`` or ``postgresql://`` address into one for the driver."""
    parsed = make_url(url)
    if parsed.drivername not in {"postgres", "postgresql", "postgresql+asyncpg"}:
        scheme = f"{parsed.drivername}://"
        raise ValueError(f"The database address starts with {scheme}, but only postgresql:// is supported.")
    return parsed.set(drivername="postgresql+asyncpg").difference_update_query(TLS_OPTIONS)
