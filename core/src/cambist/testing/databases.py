"""The databases of tests: one for each, or one that is made after each what it was before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from itertools import count
from typing import Any, cast

import asyncpg
import redis

from cambist.db.engine import Database, connect

from .servers import REDIS_DATABASES, TEMPLATE, TestServers

USES_UNTIL_MEASURED = 50
GROWN_BYTES_MAX = 16 * 2**20
"""Deleted rows stay in the files, and who reads a table reads past them. To measure takes as long as a short test."""

KEPT_MAX = 3
"""Databases that one process keeps at once: each has connections of its own, and the server has some hundred."""

# Whoever changes the schema is noticed, whether that is undone or not; and whoever has PostgreSQL count rows (ANALYZE),
# by which it would plan for the next test's.
_WATCH = """
CREATE SCHEMA kept;
CREATE SCHEMA was;
CREATE SEQUENCE kept.changes;
CREATE VIEW kept.counted AS SELECT oid FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND reltuples > 0;
CREATE TABLE kept.counted_before AS TABLE kept.counted;
CREATE FUNCTION kept.note() RETURNS event_trigger SECURITY DEFINER LANGUAGE plpgsql AS
    'BEGIN PERFORM nextval(''kept.changes''); END';
"""
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
SEQUENCES = "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' ORDER BY sequencename"
# Of what a table had, all that can be written again.
COLUMNS = """
SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
"""
# The connections that are left are the pool's, and none is in a transaction or holds a lock.
_EMPTY = """
CREATE FUNCTION kept.empty(pooled bigint) RETURNS boolean LANGUAGE plpgsql AS $body$
BEGIN
    IF (SELECT is_called FROM kept.changes) OR EXISTS (TABLE kept.counted EXCEPT TABLE kept.counted_before) OR EXISTS (
        SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
        WHERE d.datname = current_database() AND l.pid <> pg_backend_pid() AND l.locktype = 'advisory'
    ) OR (
        SELECT count(*) <> pooled OR count(*) FILTER (WHERE state <> 'idle') > 0 FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
    ) THEN
        RETURN false;
    END IF;
    STEPS
    RETURN true;
END
$body$;
CREATE EVENT TRIGGER kept ON ddl_command_start EXECUTE FUNCTION kept.note();
ALTER EVENT TRIGGER kept ENABLE ALWAYS;
SELECT setval('kept.changes', 1, false);
-- Deleting asks no trigger: neither those of foreign keys, nor those that keep the ledger from it.
SET session_replication_role = replica;
"""


class Databases:
    """Makes this process's databases, through one connection each: to connect takes as long as most tests' own work."""

    def __init__(self, servers: TestServers, worker: str) -> None:
        self._servers = servers
        self._worker = worker
        self._numbers = count(1)
        # A loop in a thread of its own: the test's may be current in this one.
        self._thread = ThreadPoolExecutor(1, "databases")
        self._runner = asyncio.Runner()
        self._connection = self.run(asyncpg.connect(servers.database_url))
        self._valkey = redis.Redis.from_url(self.redis_url)

    @contextmanager
    def fresh(self, template: str = TEMPLATE) -> Iterator[str]:
        """Make a database that nobody else uses, migrated unless another template is named; drop it afterwards."""
        name = f"test_{self._worker}_{next(self._numbers)}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        yield self._servers.database(name)
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    @property
    def redis_url(self) -> str:
        """The address of the Valkey database that is this process's."""
        return self._servers.redis((1 + int(self._worker.removeprefix("gw"))) % REDIS_DATABASES)

    def empty_redis(self) -> None:
        """Forget all that is in that Valkey database."""
        self._valkey.flushdb()

    def close(self) -> None:
        """End the connections and the thread."""
        self._valkey.close()
        self.run(self._connection.close())
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401  asyncpg ships no types
        """Do something beside the test's loop, and return its result."""
        return self._thread.submit(self._runner.run, coroutine).result()

    def _execute(self, statement: str) -> None:
        self.run(self._connection.execute(statement))


class KeptDatabase:
    """Lends one database to one test after the other, with a pool whose connections stay warm.

    After each test it gets the rows of its template again, where that makes it what a new one is, and is dropped
    otherwise. To copy the template and to drop the copy takes PostgreSQL 27 ms, and to read the catalogue and plan on
    new connections as long again.
    """

    def __init__(self, databases: Databases, template: str = TEMPLATE) -> None:
        self._databases = databases
        self._template = template
        self._made = ExitStack()
        self._url: str | None = None
        self._connection: Any = None
        self._database: Database | None = None
        self._given_up: list[Database] = []
        self._bytes = 0
        self._uses = 0
        self._is_lent = False

    def lend(self) -> str:
        """Return the address of a database that is as a new one."""
        if self._is_lent:
            self._give_up()  # the test before did not come to give it back
        if self._url is None:
            self._url = self._make()
        self._is_lent = True
        self._uses += 1
        return self._url

    def open(self, url: str) -> Database:
        """Return the door to the database at this address: the one that is kept, where it is the one that was lent."""
        if url != self._url:
            return _open(url)
        self._database = self._database or _open(url)
        return self._database

    async def take_back(self, database: Database) -> None:
        """Empty what was lent for the next test, or drop it. The door to another database is closed."""
        if database is not self._database:
            await database.close()
        elif not self._empty(database) or (self._uses % USES_UNTIL_MEASURED == 0 and self._has_grown()):
            await self.close()
        self._is_lent = False

    async def close(self) -> None:
        """Drop what is kept."""
        if self._database is not None:
            await self._database.close()
            self._database = None
        self._give_up()
        while self._given_up:
            await self._given_up.pop().close()

    def _make(self) -> str:
        url = self._made.enter_context(self._databases.fresh(self._template))
        self._connection = self._databases.run(asyncpg.connect(url))
        self._made.callback(lambda: self._databases.run(self._connection.close()))
        tables = [row[0] for row in self._fetch(TABLES)]
        # Names of the catalogue, all of them.
        asked = [f"SELECT '{name}' WHERE EXISTS (SELECT FROM public.{name})" for name in tables]  # noqa: S608
        found = [row[0] for row in self._fetch(" UNION ALL ".join(asked))]
        filled = {name: self._fetch(COLUMNS, f"public.{name}")[0][0] for name in found}
        steps = [f"DELETE FROM public.{name};" for name in tables]  # noqa: S608
        steps += [
            f"INSERT INTO public.{name} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM was.{name};"  # noqa: S608
            for name, columns in filled.items()
        ]
        asked = [f"SELECT '{row[0]}', last_value, is_called FROM public.{row[0]}" for row in self._fetch(SEQUENCES)]  # noqa: S608
        steps += [
            f"PERFORM setval('public.{name}', {last}, {called}) FROM public.{name}"
            f" WHERE (last_value, is_called) <> ({last}, {called});"
            for name, last, called in self._fetch(" UNION ALL ".join(asked))
        ]
        copies = [f"CREATE TABLE was.{name} AS TABLE public.{name};" for name in filled]
        script = "\n".join([_WATCH, *copies, _EMPTY.replace("STEPS", "\n".join(steps))])
        self._databases.run(self._connection.execute(script))
        self._bytes = self._measured()
        return url

    def _empty(self, database: Database) -> bool:
        """Empty it and return True; False where more than rows is left of the test."""
        try:
            ((emptied,),) = self._fetch("SELECT kept.empty($1)", len(_idle(database)))
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False  # a test ended this connection, too
        return bool(emptied)

    def _has_grown(self) -> bool:
        return self._measured() - self._bytes > GROWN_BYTES_MAX

    def _measured(self) -> int:
        found: int = self._fetch("SELECT pg_database_size(current_database())")[0][0]
        return found

    def _fetch(self, statement: str, *arguments: object) -> Sequence[Any]:
        rows: Sequence[Any] = self._databases.run(self._connection.fetch(statement, *arguments))
        return rows

    def _give_up(self) -> None:
        self._made.close()
        if self._database is not None:
            self._given_up.append(self._database)
        self._url, self._database, self._uses, self._is_lent = None, None, 0, False


class KeptDatabases:
    """Keeps a database of each template that tests asked for last."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._kept: dict[str, KeptDatabase] = {}

    @asynccontextmanager
    async def lent(self, template: str) -> AsyncIterator[tuple[str, Database]]:
        """Yield the address of a database that is as this template, and the door to it, which stays open."""
        kept = self._kept.pop(template, None) or KeptDatabase(self._databases, template)
        self._kept[template] = kept
        if len(self._kept) > KEPT_MAX:
            await self._kept.pop(next(iter(self._kept))).close()
        url = kept.lend()
        database = kept.open(url)
        yield url, database
        await kept.take_back(database)

    async def close(self) -> None:
        """Drop what is kept."""
        while self._kept:
            await self._kept.popitem()[1].close()


def _idle(database: Database) -> Sequence[Any]:
    """Return the connections that are closed with this door. One that was given up leaves its place in the pool."""
    # asyncio's queue, in one of SQLAlchemy's, in the pool; and the fast lane's
    places = cast("Any", database.engine.pool)._pool._queue._queue  # noqa: SLF001
    direct = [connection for _, connection in database._direct._idle]  # noqa: SLF001
    found = [place.driver_connection for place in places if place.dbapi_connection is not None]
    return [connection for connection in (*found, *direct) if not connection.is_closed()]


def _open(url: str) -> Database:
    # None is beyond what the pool keeps: tests do many things at once, and each one beyond would be opened for one of
    # them, learn the catalogue, plan, and be closed again.
    return connect(url, application_name="cambist-tests", pool_size=25, pool_overflow=0, pool_timeout_s=60)
