"""Operators see how old each source's price is, and how far the sources are apart."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import msgspec
import pytest

from cambist.registry import GROUP, Registry
from tests.support.second_prices import AGE_S
from tests.support.web import ADMIN_KEY, MEMORY, memory_gateway, web_settings
from tests.web.test_payments import PRICES

SECOND = EntryPoint("second", "tests.support.second_prices", GROUP)


@pytest.fixture
def opening():
    def open_with_two(database_url, redis_url, clock, ids, *, stock):
        settings = web_settings(database_url, redis_url)
        static = {"static": {"MEM": {"usd": "3"}, "USDX": {"usd": "1"}}}
        plugins = {**settings.plugins, "prices": static, "second": {"usd": {"MEM": "3.0375"}}}
        settings = msgspec.structs.replace(settings, plugins=plugins)
        registry = Registry(plugins, found=[MEMORY, PRICES, SECOND])
        return memory_gateway(settings, clock, ids, stock=stock, registry=registry)

    return open_with_two


async def shown(client):
    found = (await client.get("/api/admin/prices", headers={"X-Admin-Key": ADMIN_KEY})).json()
    return {one["token"]: one for one in found["prices"]}


async def test_prices_are_shown_with_their_age_and_by_how_much_the_sources_differ(client, clock):
    coins = await shown(client)
    mem, usdx = coins["MEM"], coins["USDX"]
    # The highest is above the lowest by 0.0375 of 3.
    assert (mem["rate"], mem["spreadPercent"]) == ("3.01875", "1.25")
    assert [(one["source"], one["price"], one["ageSeconds"], one["status"]) for one in mem["sources"]] == [
        ("second", "3.0375", AGE_S, "used"),
        ("static", "3", 0, "used"),
    ]
    # One alone is apart from nobody.
    assert (usdx["rate"], usdx["spreadPercent"], usdx["sources"][0]["ageSeconds"]) == ("1", None, 0)
    clock.advance(7)
    aged = (await shown(client))["MEM"]
    assert [one["ageSeconds"] for one in aged["sources"]] == [AGE_S + 7, 7]
