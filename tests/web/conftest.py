"""The web side on a real database: a gateway, a client of it, and a merchant with a project and a key."""

from __future__ import annotations

import httpx
import pytest

from cambist.testing.databases import KeptDatabases
from cambist.testing.servers import TEMPLATE
from tests.support import scenes
from tests.support.checkout import CheckoutEnv, checkout_app
from tests.support.web import open_door, web_client


@pytest.fixture(scope="session")
def played(databases):
    """Give the scenes that this process's tests begin with."""
    played = scenes.Scenes(databases)
    yield played
    played.close()


@pytest.fixture(scope="session")
async def kept_databases(databases):
    """Give what lends a database of each scene to one test after the other."""
    kept = KeptDatabases(databases)
    yield kept
    await kept.close()


@pytest.fixture
def opening():
    """Give what opens the gateway. A module that needs another overrides this."""
    return scenes.memory_opening


@pytest.fixture
def plays():
    """Give what may be played before a test, by the fixture that asks for it. A module with its own overrides this."""
    names = ("live_merchant", "stepped_up_merchant", "sandbox_merchant", "two_merchants")
    return {name: getattr(scenes, name) for name in names}


@pytest.fixture
async def scene(request, played, opening, plays):
    """Give what this test begins with."""
    asked = [play for name, play in plays.items() if name in request.fixturenames]
    assert len(asked) <= 1, f"a test begins with one scene, not with {asked}"
    return await played.played(opening, *(asked or [scenes.nothing]))


@pytest.fixture
def beginning(request):
    """Give what the test's database is a copy of: of the scene's, or an empty one where it opens its gateway itself."""
    return request.getfixturevalue("scene").database if "scene" in request.fixturenames else TEMPLATE


@pytest.fixture
async def database_url(beginning, kept_databases):
    async with kept_databases.lent(beginning) as (url, door):
        with open_door(url, door):
            yield url


@pytest.fixture
async def gateway(scene, database_url, redis_url, clock, ids, opening):
    scene.begin(clock, ids)
    async with opening(database_url, redis_url, clock, ids, stock=0) as gateway:
        yield gateway


@pytest.fixture
async def client(gateway):
    async with web_client(gateway) as client:
        yield client


@pytest.fixture
def live_merchant(scene, client, clock):
    """Give a merchant with a live project and its key."""
    return scene.copy(client, clock)


@pytest.fixture
def stepped_up_merchant(scene, client, clock):
    """Give a merchant with a live project and its key, whose session has stepped up."""
    return scene.copy(client, clock)


@pytest.fixture
def sandbox_merchant(scene, client, clock):
    """Give a merchant with a sandbox project and its key."""
    return scene.copy(client, clock)


@pytest.fixture
def two_merchants(scene, client, clock):
    return scene.copy(client, clock)


@pytest.fixture
def merchant(live_merchant):
    return live_merchant


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


@pytest.fixture
async def checkout_env(db, clock, ids):
    return await CheckoutEnv(db, clock, ids).open()


@pytest.fixture
async def checkout_client(checkout_env):
    """Give a browser without scripts."""
    transport = httpx.ASGITransport(checkout_app(checkout_env.checkout()))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway.example") as client:
        yield client
