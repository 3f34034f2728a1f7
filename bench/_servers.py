"""PostgreSQL and Valkey for a benchmark."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
from sqlalchemy import make_url

from cambist.db.engine import connect
from cambist.db.migrations import migrate
from cambist.embedded import EmbeddedServers, own_data_dir
from cambist.testing.servers import TEMPLATE

SHARED_DATABASE = "CAMBIST_BENCH_DATABASE_URL"
SHARED_REDIS = "CAMBIST_BENCH_REDIS_URL"
"""Name servers that run already, for benchmarks at their tiny size: to start servers takes longer than they do."""


@contextmanager
def servers() -> Iterator[EmbeddedServers]:
    """Run PostgreSQL and Valkey as the gateway embeds them: every commit reaches the disk."""
    with tempfile.TemporaryDirectory(prefix="cambist-bench-", ignore_cleanup_errors=True) as folder:
        # As root the servers run under another account, which must get through.
        Path(folder).chmod(0o711)
        with own_data_dir(Path(folder) / "data") as data_dir, EmbeddedServers(data_dir, os.urandom) as running:
            yield running


@contextmanager
def migrated_servers() -> Iterator[tuple[str, str]]:
    """Run both with the gateway's tables in place and nothing in them; yield their URLs."""
    if SHARED_DATABASE in os.environ:
        with _shared_servers(os.environ[SHARED_DATABASE], os.environ[SHARED_REDIS]) as urls:
            yield urls
        return
    with servers() as running:
        if running.database_url is None or running.redis_url is None:
            raise AssertionError("both were started")
        migrate(running.database_url)
        yield running.database_url, running.redis_url


@contextmanager
def _shared_servers(database_url: str, redis_url: str) -> Iterator[tuple[str, str]]:
    """Copy the migrated template of a test run's server into a database for this benchmark alone."""
    name = f"bench_{os.urandom(6).hex()}"
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
    asyncio.run(_execute(database_url, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY FILE_COPY"))
    try:
        yield make_url(database_url).set(database=name).render_as_string(hide_password=False), redis_url
    finally:
        asyncio.run(_execute(database_url, f"DROP DATABASE {name} WITH (FORCE)"))


async def _execute(database_url: str, statement: str) -> None:
    database = connect(database_url, application_name="bench")
    async with database.autocommit() as conn:
        await conn.exec_driver_sql(statement)
    await database.close()
