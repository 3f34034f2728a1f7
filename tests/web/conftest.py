"""The web side on a real database: a gateway, a client of it, and a merchant with a project and a key."""

from __future__ import annotations

import pytest

from tests.support.web import Merchant, memory_gateway, web_client, web_settings


@pytest.fixture
async def gateway(database_url, redis_url, clock, ids):
    async with memory_gateway(web_settings(database_url, redis_url), clock, ids) as gateway:
        yield gateway


@pytest.fixture
async def client(gateway):
    async with web_client(gateway) as client:
        yield client


@pytest.fixture
async def merchant(client):
    return await Merchant(client).open()


@pytest.fixture
async def station(gateway):
    """Have the worker have seen a gas station that holds and has staked something."""
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, purpose, account_index, change, address_index)"
            " VALUES ('live', 'memory', 'mem1abc', 'gas', 0, 0, 0)"
        )
        await conn.exec_driver_sql(
            "INSERT INTO gas_stations (mode, chain, address, symbol, decimals, balance, staked, lent, lendable,"
            " leaving, withdrawable) VALUES ('live', 'memory', 'mem1abc', 'MEM', 18, $1, $2, $3, 0, 0, $4)",
            (10 * 10**18, 5 * 10**18, 10**18, 2 * 10**18),
        )
