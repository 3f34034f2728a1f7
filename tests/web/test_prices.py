"""Operators see what price sources say, and set one aside."""

from __future__ import annotations

import pytest

from tests.support.web import ADMIN_KEY, refused
from tests.web.test_payments import open_with_prices

PATH = "/api/admin/prices"
ADMIN = {"X-Admin-Key": ADMIN_KEY}
WHY = {"reason": "it tells the price of yesterday"}


@pytest.fixture
def opening():
    return open_with_prices


async def test_a_source_is_shown_set_aside_and_taken_back(client, gateway, merchant):
    shown = (await client.get(PATH, headers=ADMIN)).json()
    assert (shown["currency"], shown["maxDeviationPercent"]) == ("usd", "10")
    (name,) = [one["name"] for one in shown["sources"]]
    coin = next(one for one in shown["prices"] if one["rate"] is not None)
    assert (coin["source"], coin["refused"], coin["refusedCode"]) == (name, None, None)
    assert (coin["sources"][0]["source"], coin["sources"][0]["status"]) == (name, "used")
    path = f"{PATH}/sources/{name}"
    answer = await client.post(f"{path}/set-aside", headers=ADMIN, json=WHY)
    assert answer.json()["source"] == {
        "name": name,
        "isSetAside": True,
        "reason": WHY["reason"],
        "setAsideBy": "admin key",
        "setAsideAt": answer.json()["source"]["setAsideAt"],
    }
    asked = {"chain": "memory", "token": coin["token"], "pricingMode": "fiat", "amount": "10", "fiatCurrency": "usd"}
    refused(await client.post("/api/payment", headers=merchant.key, json=asked), 503, "RATE_UNAVAILABLE")
    shown = (await client.get(PATH, headers=ADMIN)).json()
    coin = next(one for one in shown["prices"] if one["token"] == coin["token"])
    assert (coin["rate"], coin["sources"][0]["status"]) == (None, "set_aside")
    assert (coin["refused"], coin["refusedCode"]) == ("no source has a price", "NO_PRICE")
    refused(await client.post(f"{path}/set-aside", headers=ADMIN, json=WHY), 409, "SET_ASIDE_ALREADY")
    assert (await client.post(f"{path}/take-back", headers=ADMIN, json=WHY)).status_code == 200
    refused(await client.post(f"{path}/take-back", headers=ADMIN, json=WHY), 409, "NOT_SET_ASIDE")
    assert (await client.post("/api/payment", headers=merchant.key, json=asked)).status_code == 201
    other = f"{PATH}/sources/nobody/set-aside"
    refused(await client.post(other, headers=ADMIN, json=WHY), 404, "PRICE_SOURCE_NOT_FOUND")


async def test_a_price_that_jumps_with_nobody_to_confirm_it_is_told_so(client, gateway, merchant, clock):
    asked = {"chain": "memory", "token": "MEM", "pricingMode": "fiat", "amount": "10", "fiatCurrency": "usd"}
    assert (await client.post("/api/payment", headers=merchant.key, json=asked)).status_code == 201
    (source,) = gateway.rates._sources
    source._prices["MEM", "usd"] *= 5
    clock.advance(60)
    refused(await client.post("/api/payment", headers=merchant.key, json=asked), 503, "RATE_UNAVAILABLE")
    shown = (await client.get(PATH, headers=ADMIN)).json()
    coin = next(one for one in shown["prices"] if one["token"] == "MEM")
    assert (coin["rate"], coin["refusedCode"]) == (None, "JUMP")
    assert "just before" in coin["refused"]
