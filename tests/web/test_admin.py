"""The operator's door: settings that hold at once, and credits that are granted once."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.platform import PlatformSettings
from tests.support.web import ADMIN_KEY, Merchant, refused

SETTINGS = "/api/admin/settings"
ADMIN = {"X-Admin-Key": ADMIN_KEY}
ALLOWANCE = PlatformSettings().cpt.initial_allowance


async def put(client, **body):
    return await client.put(SETTINGS, json=body, headers=ADMIN)


async def version(client):
    return (await client.get(SETTINGS, headers=ADMIN)).json()["version"]


async def test_only_the_admin_key_opens_it(client, merchant):
    for headers in ({}, merchant.key, merchant.bearer, {"X-Admin-Key": "no"}):
        code = "INVALID_TOKEN" if headers == merchant.bearer else "ADMIN_KEY_INVALID"
        refused(await client.get(SETTINGS, headers=headers), 401, code)
        refused(await client.put(SETTINGS, json={}, headers=headers), 401, code)
        path = f"/api/admin/merchants/{merchant.merchant_id}/credits"
        refused(await client.post(path, json={}, headers=headers), 401, code)


async def test_settings_are_told_whole_with_their_defaults(client):
    answer = (await client.get(SETTINGS, headers=ADMIN)).json()
    assert answer["success"] is True
    assert (answer["payoutEnabled"], answer["payoutSwapEnabled"], answer["limits"]) == (True, False, {})
    assert answer["collection"]["minValueUsd"] == "5"
    assert set(answer["cpt"]) == {"initialAllowance", "floor", "weights", "tiers", "packs"}
    assert set(answer["cpt"]["tiers"][0]) == {"name", "minCpt", "maxCpt", "pricePer10kUsd"}


async def test_a_change_keeps_the_rest_and_answers_the_whole(client):
    first = (await put(client, version=0, payoutEnabled=False, limits={"memory/USDX": {"perDay": "10"}})).json()
    assert (first["payoutEnabled"], first["limits"]) == (False, {"memory/USDX": {"perDay": "10"}})
    second = (await put(client, payoutSwapEnabled=True)).json()
    assert (first["version"], second) == (1, {**first, "version": 2, "payoutSwapEnabled": True})
    assert (await client.get(SETTINGS, headers=ADMIN)).json() == second
    assert (await put(client)).json() == second


async def test_minimums_that_were_derived_are_told_with_what_they_are_derived_from(client, gateway):
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO payout_minimums (chain, symbol, units, fee_units, native_price, token_price, derived_at)"
            " VALUES ('memory', 'USDX', 3600000, 1200000000000000000, 3, 1.00, $1),"
            " ('memory', 'MEM', 7, 7, NULL, NULL, $1), ('gone', 'MEM', 7, 7, NULL, NULL, $1)",
            (gateway.clock.now(),),
        )
    told = (await put(client, payoutMinimumFees=2)).json()
    assert set(told["derivedMinimums"]) == {"memory/USDX", "memory/MEM"}
    usdx = dict(told["derivedMinimums"]["memory/USDX"])
    assert usdx.pop("derivedAt").endswith("Z")
    assert usdx == {"minimum": "7.2", "fee": "1.2", "nativePrice": "3", "tokenPrice": "1"}
    assert told["derivedMinimums"]["memory/MEM"]["nativePrice"] is None
    assert (await client.get(SETTINGS, headers=ADMIN)).json() == told
    told = (await put(client, version=told["version"], limits={"memory/USDX": {"minimum": "1"}})).json()
    assert set(told["derivedMinimums"]) == {"memory/MEM"}
    assert (await put(client, payoutMinimumFees=0)).json()["derivedMinimums"] == {}
    refused(await put(client, payoutMinimumFees=1001), 400, "VALIDATION_ERROR")


async def test_changes_at_once_lose_no_field(client):
    answers = await asyncio.gather(
        put(client, payoutEnabled=False),
        put(client, collection={"batched": True}),
        put(client, collection={"maxAgeHours": 5}),
        put(client, cpt={"floor": -7}),
    )
    assert {answer.status_code for answer in answers} == {200}
    found = (await client.get(SETTINGS, headers=ADMIN)).json()
    assert (found["payoutEnabled"], found["cpt"]["floor"]) == (False, -7)
    assert (found["collection"]["batched"], found["collection"]["maxAgeHours"]) == (True, 5)


@pytest.mark.parametrize(
    "whole, name",
    [
        ({"limits": {"memory/USDX": {"perDay": "1"}}}, "limits"),
        ({"allowedAddresses": {}}, "allowedAddresses"),
        ({"nativeGasMax": {}}, "nativeGasMax"),
        ({"exchanges": {"leastRates": {}}}, "exchanges.leastRates"),
        ({"exchanges": {"providers": {}}}, "exchanges.providers"),
        ({"cpt": {"weights": {"chains": {}}}}, "cpt.weights.chains"),
        ({"cpt": {"tiers": [{"name": "a", "minCpt": 0, "maxCpt": None, "pricePer10kUsd": "1"}]}}, "cpt.tiers"),
        ({"cpt": {"packs": []}}, "cpt.packs"),
    ],
)
async def test_a_list_or_a_map_is_replaced_by_whoever_says_which_one_was_read(client, whole, name):
    answer = refused(await put(client, **whole), 400, "VALIDATION_ERROR", "version")
    assert name in answer["error"]
    refused(await put(client, **whole, version=1), 409, "VERSION_MISMATCH")
    assert (await put(client, **whole, version=0)).status_code == 200


async def test_of_two_owners_who_change_the_same_at_once_one_is_told(client):
    read = await version(client)
    ways = [{"memory/USDX": {"perDay": str(day)}} for day in range(1, 9)]
    answers = await asyncio.gather(*(put(client, version=read, limits=limits) for limits in ways))
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 7]
    (kept,) = [limits for limits, answer in zip(ways, answers, strict=True) if answer.status_code == 200]
    found = (await client.get(SETTINGS, headers=ADMIN)).json()
    assert (found["limits"], found["version"]) == (kept, read + 1)
    refused(await put(client, version=read, payoutEnabled=False), 409, "VERSION_MISMATCH")
    assert (await put(client, payoutEnabled=False)).status_code == 200, "a switch alone needs no version"
    for bad in (-1, 2**53, "1", None):
        refused(await put(client, version=bad), 400, "VALIDATION_ERROR", "version")


@pytest.mark.parametrize(
    "body, field",
    [
        ({"payoutsEnabled": True}, "payoutsEnabled"),
        ({"payoutEnabled": "yes"}, "payoutEnabled"),
        ({"collection": {"maxFeeShareBps": 10_001}}, "collection.maxFeeShareBps"),
        ({"collection": {"minValue": "5"}}, "collection.minValue"),
        ({"cpt": {"floor": 1}}, "cpt.floor"),
        ({"cpt": {"initialAllowance": -1}}, "cpt.initialAllowance"),
        ({"cpt": {"weights": {"webhookDelivery": -1}}}, "cpt.weights.webhookDelivery"),
        ({"cpt": {"weights": {"apiMethod": 1}}}, "cpt.weights.apiMethod"),
        (
            {"cpt": {"tiers": [{"name": "a", "minCpt": 1, "maxCpt": None, "pricePer10kUsd": "1"}]}},
            "cpt.tiers[0].minCpt",
        ),
        ({"limits": {"memory/USDX": {"perDay": 5}}}, "limits[...].perDay"),
        ({"limits": {"memory/USDX": {"perDay": "5.5.5"}}}, "limits.memory/USDX.perDay"),
        ({"limits": {"memory/USDX": {"perDays": "5"}}}, "limits[...].perDays"),
        ({"cpt": {"weights": {"chains": {"memory": {"payuot": 9}}}}}, "cpt.weights.chains[...].payuot"),
    ],
)
async def test_what_cannot_be_meant_is_refused_by_its_field(client, body, field):
    refused(await client.put(SETTINGS, json={"version": 0, **body}, headers=ADMIN), 400, "VALIDATION_ERROR", field)


async def test_a_switch_holds_for_what_merchants_see_at_once_in_the_process_that_changed_it(client, merchant):
    await client.get("/api/merchant/wallet", headers=merchant.key)
    await put(client, cpt={"floor": -3})
    wallet = (await client.get("/api/merchant/wallet", headers=merchant.key)).json()
    assert wallet["systemCredit"]["floor"] == -3


async def test_credits_are_granted_once_for_each_reference(client, merchant):
    path = f"/api/admin/merchants/{merchant.merchant_id}/credits"
    body = {"amount": 500, "mode": "live", "reference": "order 17"}
    first = await client.post(path, json=body, headers=ADMIN)
    assert first.status_code == 201
    assert first.json() == {
        "success": True,
        "merchantId": merchant.merchant_id,
        "systemCredit": {
            "balance": ALLOWANCE + 500,
            "floor": PlatformSettings().cpt.floor,
            "currency": "CPT",
            "mode": "live",
        },
    }
    again = await client.post(path, json=body, headers=ADMIN)
    assert (again.status_code, again.json()) == (200, {**first.json(), "idempotent": True})
    refused(await client.post(path, json={**body, "amount": 501}, headers=ADMIN), 409, "CREDIT_REFERENCE_REUSED")
    corrected = await client.post(path, json={**body, "amount": -500, "reference": "order 17 undone"}, headers=ADMIN)
    assert corrected.json()["systemCredit"]["balance"] == ALLOWANCE


@pytest.mark.parametrize(
    "body, field",
    [
        ({"amount": 0}, "amount"),
        ({"amount": "5"}, "amount"),
        ({"mode": "test"}, "mode"),
        ({"reference": ""}, "reference"),
    ],
)
async def test_credits_that_cannot_be_meant_are_refused(client, merchant, body, field):
    path = f"/api/admin/merchants/{merchant.merchant_id}/credits"
    whole = {"amount": 1, "mode": "live", "reference": "a", **body}
    refused(await client.post(path, json=whole, headers=ADMIN), 400, "VALIDATION_ERROR", field)


async def test_nobody_is_granted_nothing(client):
    body = {"amount": 1, "mode": "live", "reference": "a"}
    answer = await client.post("/api/admin/merchants/mer_none/credits", json=body, headers=ADMIN)
    refused(answer, 404, "MERCHANT_NOT_FOUND")


async def test_a_merchant_whom_the_operator_lets_in_sets_the_password_by_a_link_that_works_once(client):
    made = await client.post("/api/admin/merchants", json={"email": "Eve@Shop.example", "name": "Eve"}, headers=ADMIN)
    assert made.status_code == 201, made.text
    merchant, link = made.json()["merchant"], made.json()["link"]
    assert (merchant["email"], merchant["name"]) == ("eve@shop.example", "Eve")
    page, _, token = link.removeprefix("http://gateway.example").partition("#")
    assert page == "/dashboard/set-password"
    body = {"token": token, "password": "a password that Eve has chosen"}
    assert (await client.post("/api/auth/password-reset/confirm", json=body)).status_code == 200
    refused(await client.post("/api/auth/password-reset/confirm", json=body), 400, "RESET_TOKEN_INVALID")
    sign_in = {"email": "eve@shop.example", "password": body["password"]}
    assert (await client.post("/api/auth/login", json=sign_in)).json()["merchant"] == merchant
    again = await client.post("/api/admin/merchants", json={"email": "eve@shop.example", "name": "E"}, headers=ADMIN)
    refused(again, 409, "EMAIL_TAKEN")


async def test_the_operator_ends_every_session_of_a_merchant_and_of_nobody_else(client, merchant):
    other = await Merchant(client).open("bob@shop.example")
    path, here = f"/api/admin/merchants/{merchant.merchant_id}/sessions", "/api/merchant/projects"
    assert (await client.delete(path, headers=ADMIN)).json() == {"success": True}
    refused(await client.get(here, headers=merchant.bearer), 401, "SESSION_ENDED")
    cookie = {"Cookie": f"cambist_refresh={merchant.refresh_token}"}
    refused(await client.post("/api/auth/refresh", headers=cookie), 401, "SESSION_ENDED")
    assert (await client.get("/api/merchant/wallet", headers=merchant.key)).is_success
    assert (await client.get(here, headers=other.bearer)).is_success
    refused(await client.delete(path.replace(merchant.merchant_id, "mer_no"), headers=ADMIN), 404, "MERCHANT_NOT_FOUND")
