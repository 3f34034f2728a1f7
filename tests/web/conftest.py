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
