"""The PostgreSQL and Valkey that a test run shares: started by whoever needs them first, gone with the last user.

``python -m cambist.testing.servers FOLDER`` is the process that holds them. Users keep a shared lock on
``FOLDER/users``, which ends with their process however that ends; when nobody holds it, the servers stop.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from sqlalchemy import make_url, text

from cambist.db import engine as db_engine
from cambist.db.migrations import migrate
from cambist.embedded import EmbeddedServers, own_data_dir

TEMPLATE = "cambist_template"
REDIS_DATABASES = 512
START_TIMEOUT_S = 90

# A test's data need not survive a power cut.
_FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    # Each has its place in what is gone through when locks and sessions are counted, as after each test. Of a run on
    # two cores 221 were open at once.
    "max_connections": str(200 + 100 * (os.cpu_count() or 1)),
    "shared_buffers": "64MB",
    "wal_compression": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
    # Planned once for each connection: what there is to plan for is a handful of rows.
    "plan_cache_mode": "force_generic_plan",
    "scram_iterations": "1",
}


class TestServers(msgspec.Struct, frozen=True):
    """Where the servers of this run are. The database is the administrative one; make others from the template."""

    __test__ = False

    database_url: str
    redis_url: str

    def database(self, name: str) -> str:
        """Return the address of another database on the same server."""
        return make_url(self.database_url).set(database=name).render_as_string(hide_password=False)

    def redis(self, number: int) -> str:
        """Return the address of another of Valkey's databases."""
        return (
            self.redis_url.replace("?db=0", f"?db={number}")
            if "?db=" in self.redis_url
            else f"{self.redis_url[:-1]}{number}"
        )


@contextmanager
def shared_servers(run: str | None) -> Iterator[TestServers]:
    """Yield the servers of a test run; all processes with the same run share them."""
    folder = Path(tempfile.gettempdir()) / f"cambist-tests-{run or f'{os.getpid()}-{time.time_ns()}'}"
    folder.mkdir(mode=0o711, exist_ok=True)
    users = _lock(folder / "users", fcntl.LOCK_SH)
    try:
        starter = _lock(folder / "starter", fcntl.LOCK_EX)
        try:
            if not (folder / "ready.json").exists():
                _start_holder(folder)
        finally:
            os.close(starter)
        yield msgspec.json.decode((folder / "ready.json").read_bytes(), type=TestServers)
    finally:
        os.close(users)


def _lock(path: Path, kind: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, kind)
    return descriptor


def _start_holder(folder: Path) -> None:
    log = os.open(folder / "holder.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    argv = [sys.executable, "-W", "ignore", "-m", "cambist.testing.servers", str(folder)]
    # Spawned, not kept: it outlives whoever happened to be first.
    pid = os.posix_spawn(
        sys.executable, argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    )
    os.close(log)
    deadline = time.monotonic() + START_TIMEOUT_S
    while not (folder / "ready.json").exists():
        if os.waitpid(pid, os.WNOHANG)[0] or time.monotonic() > deadline:
            raise RuntimeError(f"the test servers did not start: {(folder / 'holder.log').read_text()[-3000:]}")
        time.sleep(0.02)


def _keep_open(folder: Path) -> None:
    with own_data_dir(folder / "servers") as data_dir:
        servers = EmbeddedServers(data_dir, os.urandom, postgres_settings=_FAST, valkey_databases=REDIS_DATABASES)
        with servers:
            found = TestServers(servers.database_url or "", servers.redis_url or "")
            _make_template(found)
            partial = folder / "ready.json.partial"
            partial.touch(mode=0o600)
            partial.write_bytes(msgspec.json.encode(found))
            partial.rename(folder / "ready.json")
            _wait_for_the_last_user(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _make_template(servers: TestServers) -> None:
    async def statement(sql: str, url: str = servers.database_url) -> None:
        database = db_engine.connect(url, application_name="cambist-tests")
        async with database.autocommit() as connection:
            await connection.execute(text(sql))
        await database.close()

    # Its password anew, with as few rounds as set above: each of a run's ten thousand connections goes through them.
    asyncio.run(statement(f"ALTER ROLE CURRENT_USER PASSWORD '{make_url(servers.database_url).password}'"))
    asyncio.run(statement(f"CREATE DATABASE {TEMPLATE}"))
    migrate(servers.database(TEMPLATE))
    # The first connection after a migration writes down what catalogues say: each copy's first would do it again.
    asyncio.run(statement("SELECT 1", servers.database(TEMPLATE)))
    asyncio.run(statement(f"ALTER DATABASE {TEMPLATE} WITH is_template true allow_connections false"))


def _wait_for_the_last_user(folder: Path) -> None:
    descriptor = os.open(folder / "users", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.close(descriptor)


if __name__ == "__main__":
    os.setsid()
    _keep_open(Path(sys.argv[1]))
