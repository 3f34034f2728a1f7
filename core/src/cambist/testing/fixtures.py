"""Fixtures for everything that tests against the real PostgreSQL and Valkey: a database of its own per test."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import redis
from sqlalchemy import NullPool, text
from sqlalchemy.ext.asyncio import create_async_engine

from cambist.bootstrap import Gateway, Parts, open_gateway
from cambist.db.engine import Database, connect, driver_url
from cambist.ports import Ids
from cambist.services.addresses.account_keys import fill_stock
from cambist.settings import (
    AuthSettings,
    DatabaseSettings,
    KeySettings,
    RedisSettings,
    Settings,
    WebhookSettings,
)
from cambist.signer.keystore import Keystore
from cambist.signer.local import KeystoreXpubs

from .clock import ManualClock, seeded_ids
from .network import forbid_network
from .servers import REDIS_DATABASES, TEMPLATE, TestServers, shared_servers

TEST_MNEMONIC = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
"""The mnemonic of everybody's test vectors: never for money."""


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> None:
    forbid_network()


@pytest.fixture(scope="session")
def servers() -> Iterator[TestServers]:
    """Give the servers of this run, shared by all its processes."""
    with shared_servers(os.environ.get("PYTEST_XDIST_TESTRUNUID")) as found:
        yield found


class _Numbers:
    """Names databases: a number of its own for each test of this process, and a share of Valkey's databases."""

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self.used = 0

    def next_database(self) -> str:
        self.used += 1
        return f"test_{self.worker}_{self.used}"

    @property
    def redis(self) -> int:
        number = int(self.worker.removeprefix("gw") or 0) if self.worker != "main" else 0
        return (1 + number) % REDIS_DATABASES


@pytest.fixture(scope="session")
def _numbers() -> _Numbers:
    return _Numbers(os.environ.get("PYTEST_XDIST_WORKER", "main"))


async def _execute(url: str, statement: str) -> None:
    engine = create_async_engine(driver_url(url), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        await connection.execute(text(statement))
    await engine.dispose()


@contextmanager
def fresh_database(servers: TestServers, numbers: _Numbers) -> Iterator[str]:
    """Make a migrated database that nobody else uses, yield its address, and drop it."""
    name = numbers.next_database()
    _run(_execute(servers.database_url, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY FILE_COPY"))
    yield servers.database(name)
    _run(_execute(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
def database_url(servers: TestServers, _numbers: _Numbers) -> Iterator[str]:
    """Give the address of a fresh, migrated database that nobody else uses."""
    with fresh_database(servers, _numbers) as url:
        yield url


@pytest.fixture
def empty_database_url(servers: TestServers, _numbers: _Numbers) -> Iterator[str]:
    """Give the address of a fresh database with nothing in it."""
    name = _numbers.next_database()
    _run(_execute(servers.database_url, f"CREATE DATABASE {name}"))
    yield servers.database(name)
    _run(_execute(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    """Give the door to a fresh, migrated database."""
    database = connect(database_url, application_name="cambist-tests", pool_size=5, pool_overflow=20, pool_timeout_s=60)
    yield database
    await database.close()


@pytest.fixture
def redis_url(servers: TestServers, _numbers: _Numbers) -> str:
    """Give the address of an empty Valkey database that no other process of the run uses."""
    url = servers.redis(_numbers.redis)
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


@pytest.fixture
def clock() -> ManualClock:
    """Give a clock that stands still until the test advances it."""
    return ManualClock()


@pytest.fixture
def ids() -> Ids:
    """Give identifiers that are the same in every run."""
    return seeded_ids(0)


@pytest.fixture
def plugin_tables() -> dict[str, dict[str, Any]]:
    """Give the operator's ``[plugins]``. A module whose tests need plugins overrides this."""
    return {}


@pytest.fixture
def gateway_settings(
    database_url: str, redis_url: str, tmp_path: Path, plugin_tables: dict[str, dict[str, Any]]
) -> Settings:
    """Give complete settings for the servers of this test."""
    return Settings(
        data_dir=tmp_path / "data",
        database=DatabaseSettings(url=database_url, pool_timeout_s=60),
        redis=RedisSettings(url=redis_url),
        webhooks=WebhookSettings(allow_private_targets=True, base_delay_ms=10),
        keys=KeySettings(application_key="00" * 32, stock=5),
        auth=AuthSettings(jwt_secret="a secret for tests that is long enough"),  # noqa: S106  made for tests
        plugins=plugin_tables,
    )


@pytest.fixture
def gateway_parts(clock: ManualClock, ids: Ids) -> Parts:
    """Give what a test decides on itself: time, chance, and a keystore that all tests share."""
    return Parts(clock=clock, ids=ids, random=Random(0), keystore=Keystore(TEST_MNEMONIC))


@pytest.fixture
async def gateway(gateway_settings: Settings, gateway_parts: Parts) -> AsyncIterator[Gateway]:
    """Give the web side's gateway, with account keys in stock."""
    async with open_gateway(gateway_settings, role="web", parts=gateway_parts) as opened:
        await stock_keys(opened, gateway_parts)
        yield opened


@pytest.fixture
async def worker_gateway(gateway_settings: Settings, gateway_parts: Parts) -> AsyncIterator[Gateway]:
    """Give the worker's gateway, with its chains connected and account keys in stock."""
    async with open_gateway(gateway_settings, role="worker", parts=gateway_parts) as opened:
        await stock_keys(opened, gateway_parts)
        yield opened


async def stock_keys(gateway: Gateway, parts: Parts) -> None:
    """Derive the account keys that a worker would have derived by now."""
    coin_types = {family.coin_type for family in gateway.registry.families.values()}
    if coin_types and parts.keystore is not None:
        signer, stock = KeystoreXpubs(parts.keystore), gateway.settings.keys.stock
        await fill_stock(gateway.db, signer, gateway.secrets, coin_types=coin_types, stock=stock)


def _run(coroutine: object) -> None:
    # In a thread of its own: the test's loop may be current in this one.
    failures: list[BaseException] = []

    def work() -> None:
        try:
            asyncio.run(coroutine)  # type: ignore[arg-type]
        except BaseException as error:  # noqa: BLE001  handed over to the waiting thread
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
