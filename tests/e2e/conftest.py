"""A gateway, two real nodes and a receiver, shared by the stories of one file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace

import aiohttp
import pytest

from cambist.db.engine import Database, connect
from cambist.testing.fixtures import fresh_database
from cambist_evm.testing import Anvil, Contract
from tests.support.gateway import GatewayProcess, Merchant, settings_text
from tests.support.onlooker import DECIMALS, Customer, Onlooker
from tests.support.receiver import Receiver

CONFIRMATIONS = 3
STATION_WEI = 5 * 10**18
BLOCK_S = 0.25


@pytest.fixture(scope="module")
def story_database_url(servers, _numbers):
    """Give the address of a fresh, migrated database for all stories of the file."""
    with fresh_database(servers, _numbers) as url:
        yield url


@pytest.fixture(scope="module")
def story_redis_url(servers, _numbers) -> str:
    return servers.redis(_numbers.redis)


@pytest.fixture(scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield session


@pytest.fixture(scope="module")
async def node() -> AsyncIterator[Anvil]:
    """Run Ethereum, mined by hand."""
    async with Anvil(chain_id=1, automine=False) as node:
        yield node


@pytest.fixture(scope="module")
async def other_node() -> AsyncIterator[Anvil]:
    """Run Base, mined by hand."""
    async with Anvil(chain_id=8453, automine=False) as node:
        yield node


@pytest.fixture(scope="module")
async def usdx(node) -> Contract:
    return await token_on(node)


@pytest.fixture(scope="module")
async def other_usdx(other_node) -> Contract:
    return await token_on(other_node)


async def token_on(node: Anvil) -> Contract:
    token = await node.deploy("TestToken", "USDX", 6)
    await token.send("mint", node.accounts[0], 10**15)
    await node.mine()
    return token


def chain_settings(url: str, token: Contract) -> dict:
    return {
        "rpc_urls": [url],
        "confirmations": CONFIRMATIONS,
        "poll_interval_ms": 100,
        "l1_fee": False,  # anvil charges for gas alone, whichever chain it plays
        "tokens": [{"symbol": "USDX", "contract": token.address, "decimals": 6, "label": "Example dollar"}],
    }


@pytest.fixture(scope="module")
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver
        assert receiver.rejected == []


@pytest.fixture(scope="module")
async def gateway(
    tmp_path_factory, story_database_url, story_redis_url, node, usdx, other_node, other_usdx
) -> AsyncIterator[GatewayProcess]:
    settings = settings_text(
        database_url=story_database_url,
        redis_url=story_redis_url,
        chains={"ethereum": chain_settings(node.url, usdx), "base": chain_settings(other_node.url, other_usdx)},
    )
    async with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def station(gateway, story_db, node, other_node) -> str:
    """Fund the gas station on both chains, as the operator does, and return its address."""
    async with story_db.transaction() as conn:
        found = await conn.exec_driver_sql(
            "SELECT address FROM addresses WHERE purpose = 'gas' AND mode = 'live' AND family = 'evm'"
        )
        address: str = found.scalar_one()
    for chain in (node, other_node):
        await chain.send_native(address, STATION_WEI)
        await chain.mine(CONFIRMATIONS + 1)
    return address


@pytest.fixture(scope="module")
async def blocks(node, other_node) -> AsyncIterator[None]:
    """Mine both chains all the time, as the world does."""

    async def mine() -> None:
        while True:
            await node.mine()
            await other_node.mine()
            await asyncio.sleep(BLOCK_S)

    mining = asyncio.create_task(mine())
    yield
    assert not mining.done(), mining
    mining.cancel()


@pytest.fixture(scope="module")
def onlooker(node, usdx) -> Onlooker:
    """Look at Ethereum with web3.py."""
    return Onlooker(node.url, usdx.address)


@pytest.fixture(scope="module")
def other_onlooker(other_node, other_usdx) -> Onlooker:
    """Look at Base with web3.py."""
    return Onlooker(other_node.url, other_usdx.address)


@pytest.fixture
async def customer(node, usdx, onlooker) -> Customer:
    """Make a customer who has a hundred of everything on Ethereum."""
    return await rich_customer(node, usdx, onlooker)


@pytest.fixture
async def other_customer(other_node, other_usdx, other_onlooker) -> Customer:
    """Make a customer who has a hundred of everything on Base."""
    return await rich_customer(other_node, other_usdx, other_onlooker)


async def rich_customer(node: Anvil, token: Contract, onlooker: Onlooker) -> Customer:
    customer = Customer(onlooker)
    await node.send_native(customer.address, 100 * 10 ** DECIMALS["ETH"])
    await token.send("transfer", customer.address, 100 * 10 ** DECIMALS["USDX"])
    await node.mine()
    return customer


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
async def books(story_db):
    """Ways to look behind the API: let time pass for one payment, and check the ledger against deposits."""

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
                "SELECT a.asset, sum(-a.balance) AS custody, (SELECT coalesce(sum(units), 0) FROM deposits d WHERE"
                " d.status = 'settled' AND d.chain || '/' || coalesce(d.contract, 'native') = a.asset) AS settled"
                " FROM ledger_accounts a WHERE a.purpose = 'custody_deposits' GROUP BY a.asset"
            )
            assert all(row.custody == row.settled for row in rows)

    yield SimpleNamespace(expire=expire, check=check)
    await check()
