"""Fixtures for everything that tests against the real PostgreSQL and Valkey: an empty database for each test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.util import LRUCache

from cambist.bootstrap import Gateway, Parts, open_gateway
from cambist.db.engine import Database
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
from .databases import Databases, KeptDatabase
from .network import forbid_network
from .servers import TestServers, shared_servers

TEST_MNEMONIC = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
"""The mnemonic of everybody's test vectors: never for money."""


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> None:
    forbid_network()


class _Compiled(LRUCache[Any, Any]):
    """Statements compiled for one engine, for all of them: they differ in nothing but the database's name."""

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401  as SQLAlchemy's own
        return super().__getitem__((type(key[0]), *key[1:]))

    def __setitem__(self, key: Any, value: Any) -> None:  # noqa: ANN401  likewise
        super().__setitem__((type(key[0]), *key[1:]), value)

    def get(self, key: Any, default: Any = None) -> Any:  # noqa: ANN401  likewise
        return super().get((type(key[0]), *key[1:]), default)


@pytest.fixture(scope="session", autouse=True)
def _learn_once() -> Iterator[None]:
    """Keep what SQLAlchemy has compiled, and found out of PostgreSQL, when a test's engine goes.

    The next test says the same in another database, of a server of the same kind.
    """
    compiled, known = _Compiled(5_000), dict[str, Any]()

    def create(*url: Any, **options: Any) -> AsyncEngine:  # noqa: ANN401  as SQLAlchemy's own
        engine = create_async_engine(*url, **options)
        engine.sync_engine._compiled_cache = compiled  # noqa: SLF001  it takes a size alone
        dialect = engine.sync_engine.dialect
        asks = dialect.initialize

        def initialize(connection: Connection) -> None:
            """Take what the first engine was told: it is four questions, in a transaction of their own."""
            if not known:
                before = dict(vars(dialect))
                asks(connection)
                after = vars(dialect).items()
                known.update((name, value) for name, value in after if value is not before.get(name, before))
            vars(dialect).update(known)

        dialect.initialize = initialize  # type: ignore[method-assign]
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cambist.db.engine.create_async_engine", create)
        yield


@pytest.fixture(scope="session")
def servers() -> Iterator[TestServers]:
    """Give the servers of this run, shared by all its processes."""
    with shared_servers(os.environ.get("PYTEST_XDIST_TESTRUNUID")) as found:
        yield found


@pytest.fixture(scope="session")
def databases(servers: TestServers) -> Iterator[Databases]:
    """Give what makes this process's databases."""
    databases = Databases(servers, os.environ.get("PYTEST_XDIST_WORKER", "gw0"))
    yield databases
    databases.close()


@pytest.fixture(scope="session")
async def kept_database(databases: Databases) -> AsyncIterator[KeptDatabase]:
    """Give what lends one database to the tests that use ``db``."""
    kept = KeptDatabase(databases)
    yield kept
    await kept.close()


@pytest.fixture
def database_url(request: pytest.FixtureRequest, databases: Databases) -> Iterator[str]:
    """Give the address of a migrated database that nobody else uses, with nothing in it."""
    if "db" in request.fixturenames:
        kept: KeptDatabase = request.getfixturevalue("kept_database")
        yield kept.lend()
        return
    with databases.fresh() as url:
        yield url


@pytest.fixture
def empty_database_url(databases: Databases) -> Iterator[str]:
    """Give the address of a fresh database with nothing in it."""
    with databases.fresh("template1") as url:
        yield url


@pytest.fixture
async def db(database_url: str, kept_database: KeptDatabase) -> AsyncIterator[Database]:
    """Give the door to a migrated database with nothing in it."""
    database = kept_database.open(database_url)
    yield database
    await kept_database.take_back(database)


@pytest.fixture
def redis_url(databases: Databases) -> str:
    """Give the address of an empty Valkey database that no other process of the run uses."""
    databases.empty_redis()
    return databases.redis_url


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


@cache
def _test_keystore() -> Keystore:
    """Return what all tests of a process share: its seeds take as long as a short test, and it keeps keys in mind."""
    return Keystore(TEST_MNEMONIC)


@pytest.fixture
def gateway_parts(clock: ManualClock, ids: Ids) -> Parts:
    """Give what a test decides on itself: time, chance, and a keystore that all tests share."""
    return Parts(clock=clock, ids=ids, random=Random(0), keystore=_test_keystore())


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
