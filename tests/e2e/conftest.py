"""A gateway and two networks, shared by the stories of one file or folder, which are told on each kind of chain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from cambist.db.engine import Database, connect
from cambist.testing.fixtures import Databases
from tests.support.gateway import GatewayProcess, Merchant, settings_text
from tests.support.networks import (
    CONFIRMATIONS,
    NETWORKS,
    POLL_BESIDE_MS,
    AnvilNetwork,
    Coin,
    Customer,
    Network,
    Onlooker,
)
from tests.support.opened import Opened
from tests.support.receiver import Receiver

BLOCK_S = 0.25
KEPT_S = 5
"""How long a client keeps a connection at rest: less than the gateway, or it would ask just when that one ends it."""


@pytest.fixture(scope="module")
async def opened() -> AsyncIterator[Opened]:
    """Keep what is opened for the stories of this file."""
    async with Opened() as opened:
        yield opened


@pytest.fixture(scope="module")
def network_options() -> Mapping[str, Any]:
    """Say what the network has to be for the stories of a file, which overrides this where it matters."""
    return {}


@pytest.fixture(scope="module", params=NETWORKS)
async def network(request, opened, network_options) -> Network:
    """Run the chain that the story is told on."""
    return await opened.once(request.param, lambda: NETWORKS[request.param](**network_options))


@pytest.fixture(scope="module")
def has_another(network) -> bool:
    """Say whether the gateway watches another chain beside the story's, as some of the stories take."""
    return True


@pytest.fixture(scope="module")
async def beside(opened, network, has_another) -> Sequence[Network]:
    """Run what the gateway watches beside the story's chain: Base, if anything."""
    return [await opened.once(("beside", network), lambda: AnvilNetwork("base"))] if has_another else []


@pytest.fixture(scope="module")
def other(beside) -> Network:
    """Give the chain beside it."""
    (other,) = beside
    return other


@pytest.fixture(scope="module")
def usdx(network) -> Coin:
    return network.usdx


@pytest.fixture(scope="module")
def native(network) -> Coin:
    return network.native


@pytest.fixture(scope="module")
def onlooker(network) -> Onlooker:
    return network.onlooker


@pytest.fixture(scope="module")
async def story_database_url(databases, opened, network) -> str:
    """Give the address of a fresh, migrated database for all stories on one network."""
    return await opened.once(("database", network), lambda: _database(databases))


@asynccontextmanager
async def _database(databases: Databases) -> AsyncIterator[str]:
    with databases.fresh() as url:
        yield url


@pytest.fixture(scope="module")
def story_redis_url(databases) -> str:
    return databases.redis_url


@pytest.fixture(scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with client_session() as session:
        yield session


def client_session() -> aiohttp.ClientSession:
    """Return what talks to a gateway for several people, none of whose cookies it keeps."""
    connector = aiohttp.TCPConnector(keepalive_timeout=KEPT_S)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


@pytest.fixture(scope="module")
async def receiver(network) -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver
        assert receiver.rejected == []


@pytest.fixture(scope="module")
def tables(network, beside) -> Mapping[str, Mapping[str, Any]]:
    """Give the tables of the chains in the operator's file."""
    found = dict(network.settings())
    for chain in beside:
        found |= chain.settings(poll_interval_ms=POLL_BESIDE_MS)
    return found


@pytest.fixture(scope="module")
def more_settings() -> Sequence[str]:
    """Give further lines of the operator's file."""
    return []


@pytest.fixture(scope="module")
def settings(story_database_url, story_redis_url, tables, more_settings) -> str:
    return settings_text(database_url=story_database_url, redis_url=story_redis_url, tables=tables, more=more_settings)


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory, opened, network, settings) -> GatewayProcess:
    return await opened.once(("gateway", network), lambda: GatewayProcess(tmp_path_factory.mktemp("gateway"), settings))


@pytest.fixture(scope="module")
async def station(gateway, story_db, opened, network, beside) -> str:
    """Fund the gas station once on each chain, as the operator does, and return its address on that of the story."""
    return await opened.once(("station", network), lambda: _funded_station(story_db, network, beside))


@asynccontextmanager
async def _funded_station(db: Database, network: Network, beside: Sequence[Network]) -> AsyncIterator[str]:
    for chain in (*beside, network):
        address = await station_address(db, chain)
        await chain.native.send(address, chain.station_float)
        await chain.mine(CONFIRMATIONS + 1)
    yield address


async def station_address(db: Database, network: Network) -> str:
    async with db.transaction() as conn:
        found = await conn.exec_driver_sql(
            "SELECT address FROM addresses WHERE purpose = 'gas' AND mode = 'live' AND family = $1", (network.family,)
        )
        address: str = found.scalar_one()
    return address


class Blocks:
    """Mines chains all the time, as the world does, unless it is held."""

    def __init__(self, *networks: Network) -> None:
        self._networks = networks
        self._mining = asyncio.Lock()

    async def mine(self) -> None:
        while True:
            async with self._mining:
                for network in self._networks:
                    await network.mine()
            await asyncio.sleep(BLOCK_S)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        async with self._mining:
            yield


@pytest.fixture(scope="module")
async def blocks(network, beside) -> AsyncIterator[Blocks]:
    """Mine all chains."""
    blocks = Blocks(network, *beside)
    mining = asyncio.create_task(blocks.mine())
    yield blocks
    assert not mining.done(), mining
    mining.cancel()


@pytest.fixture
async def customer(network) -> Customer:
    return await network.rich_customer()


@pytest.fixture
async def other_customer(other) -> Customer:
    return await other.rich_customer()


@pytest.fixture(scope="module")
async def merchant(gateway, session, receiver) -> Merchant:
    merchant = await Merchant(gateway.url, session).open(webhook_url=receiver.url)
    receiver.secret = merchant.project["webhookSecret"]
    return merchant


@pytest.fixture(scope="module")
async def story_db(story_database_url) -> AsyncIterator[Database]:
    database = connect(story_database_url, application_name="cambist-stories", pool_size=2)
    yield database
    await database.close()


@pytest.fixture
async def books(story_db, merchant):
    """Ways to look behind the API: let time pass for one payment, and check the ledger against the merchant's deposits.

    For a merchant of whose money nothing was paid out.
    """

    async def expire(payment) -> None:
        async with story_db.transaction() as conn:
            await conn.exec_driver_sql(
                "UPDATE payments SET expires_at = now() - interval '1 second' WHERE payment_id = $1",
                (payment["paymentId"],),
            )

    async def check() -> None:
        async with story_db.transaction() as conn:
            total = (await conn.exec_driver_sql("SELECT coalesce(sum(balance), 0) FROM ledger_accounts")).scalar_one()
            assert total == 0
            rows = await conn.exec_driver_sql(
                "SELECT a.asset, sum(-a.balance) AS custody, (SELECT coalesce(sum(d.units), 0) FROM deposits d"
                " WHERE d.merchant_pk = p.merchant_pk AND d.status = 'confirmed'"
                " AND d.chain || '/' || coalesce(d.contract, 'native') = a.asset) AS brought"
                " FROM ledger_accounts a JOIN projects p ON p.merchant_pk = a.merchant_pk WHERE p.project_id = $1"
                " AND a.purpose IN ('custody_deposits', 'custody_wallet') GROUP BY a.asset, p.merchant_pk",
                (merchant.project["projectId"],),
            )
            assert all(row.custody == row.brought for row in rows)

    yield SimpleNamespace(expire=expire, check=check)
    await check()
