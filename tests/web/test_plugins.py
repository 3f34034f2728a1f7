"""The plugins that operators see."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, version

import pytest
from msgspec import Struct, field

from cambist.plugin import API_VERSION
from cambist.registry import GROUP, Registry
from cambist.registry.brought import shown_settings
from tests.support.operators import Officer
from tests.support.web import MEMORY, memory_gateway, web_settings

TABLES = {
    "memory": {"chains": {"memory": {}, "idle": {"availability": "unconfigured", "least_units": 7}}},
    "prices": {
        "coingecko": {"api_key": "CG-0123456789abcdef", "plan": "pro", "base_url": "https://x:y@prices.example"}
    },
}


@pytest.fixture
def opening():
    return opened


def opened(database_url, redis_url, clock, ids, *, stock):
    prices = EntryPoint("prices", "cambist_prices.plugin", GROUP)
    bridge = EntryPoint("bridge_across", "a_module_that_nobody_imports", GROUP)
    registry = Registry(TABLES, found=[MEMORY, prices, bridge])
    return memory_gateway(web_settings(database_url, redis_url), clock, ids, stock=stock, registry=registry)


async def test_plugins_are_told_with_version_kind_and_what_fails_and_never_a_secret(gateway, client, clock):
    auditor = await Officer(client).sign_in("auditor")
    answer = await client.get("/api/admin/plugins", headers=auditor.bearer)
    found = answer.json()
    assert found["contractVersion"] == API_VERSION
    bridge, memory, prices = found["plugins"]
    assert (bridge["name"], bridge["state"], bridge["contractVersion"], bridge["kinds"]) == (
        *("bridge_across", "disabled"),
        *(None, []),
    )
    assert (memory["state"], memory["kinds"], memory["chains"]) == ("loaded", ["chain"], ["memory", "idle"])
    assert {"name": "chains.idle.least_units", "value": "7"} in memory["settings"]
    assert (prices["name"], prices["kinds"], prices["contractVersion"]) == ("prices", ["price"], API_VERSION)
    assert {one["name"]: one["value"] for one in prices["settings"]} == {
        "coingecko.api_key": None,
        "coingecko.plan": "pro",
        "coingecko.base_url": None,
    }
    for secret in ("CG-0123456789abcdef", "prices.example"):
        assert secret not in answer.text
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO chain_states (chain, problem, quorum, seen_at) VALUES ('memory', 'nobody answers', 1, $1)",
            (clock.now(),),
        )
    memory = (await client.get("/api/admin/plugins", headers=auditor.bearer)).json()["plugins"][1]
    assert (memory["state"], memory["problems"]) == ("failing", ["Memory (memory): nobody answers"])


class Inner(Struct, frozen=True):
    slots: int = 0
    size: int = 0


class Config(Struct):
    api_keys: Mapping[str, int] = field(default_factory=dict)
    secrets: Inner = Inner()
    pool: Inner = Inner()


def test_whatever_is_below_something_secret_is_secret():
    shown = shown_settings([Config(api_keys={"main": 1234}, secrets=Inner(slots=7), pool=Inner(size=3))])
    assert {one.name: one.value for one in shown} == {"api_keys.main": None, "secrets.slots": None, "pool.size": "3"}


def test_versions_are_those_of_the_distributions():
    found = {one.name: one for one in Registry({"prices": {"static": {"USDX": {"usd": "1"}}}}).inventory()}
    assert found["prices"].distribution == "cambist-prices"
    assert found["prices"].version == version("cambist-prices")
    assert (found["tron"].enabled, found["evm"].enabled) == (True, False)
