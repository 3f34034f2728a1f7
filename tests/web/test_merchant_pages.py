"""Merchants as operators see them: found by what a person knows of them, and read whole."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.payouts.limits import limits_of
from cambist.services.pricing.quotes import Asset
from tests.support.web import ADMIN_KEY, Merchant, refused

ADMIN = {"X-Admin-Key": ADMIN_KEY}
MERCHANTS = "/api/admin/merchants"


@pytest.fixture
async def eve(client, merchant):
    eve = Merchant(client)
    await eve.register("eve_1@other.example")
    return eve


async def found(client, **query):
    answer = await client.get(MERCHANTS, params=query, headers=ADMIN)
    assert answer.status_code == 200, answer.text
    return [one["email"] for one in answer.json()["merchants"]]


async def test_merchants_are_found_by_ids_names_and_addresses_and_what_is_true_of_them(client, merchant, eve):
    ada = merchant.email
    assert await found(client) == [eve.email, ada]
    for text in (merchant.merchant_id, merchant.project_id, "ADA@SHOP"):
        assert await found(client, search=text) == [ada]
    assert await found(client, search="e_1@") == [eve.email]
    assert await found(client, search="%") == []
    assert await found(client, search="shop") == [eve.email, ada]
    await client.post(f"{MERCHANTS}/{eve.merchant_id}/suspend", json={"reason": "fraud"}, headers=ADMIN)
    assert await found(client, isSuspended=True) == [eve.email]
    assert await found(client, isSuspended=False) == [ada]
    assert await found(client, isLive=False) == []
    made = {"name": "Small", "hasTracker": True, "maxWebhooks": 1, "maxAddresses": 1}
    plan = (await client.post("/api/admin/plans", json=made, headers=ADMIN)).json()["plan"]["planId"]
    await client.put(f"{MERCHANTS}/{merchant.merchant_id}/plan", json={"planId": plan}, headers=ADMIN)
    assert await found(client, plan=plan) == [ada]
    first = (await client.get(MERCHANTS, params={"limit": 1}, headers=ADMIN)).json()
    after = await client.get(MERCHANTS, params={"limit": 1, "cursor": first["nextCursor"]}, headers=ADMIN)
    assert [one["email"] for one in after.json()["merchants"]] == [ada]
    assert (after.json()["total"], after.json()["nextCursor"]) == (2, None)


async def test_a_merchant_is_read_with_people_projects_plan_money_and_what_is_the_matter(client, gateway, merchant):
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE api_keys SET expires_at = $1", (gateway.clock.now().replace(year=2999),))
        await conn.exec_driver_sql(
            "INSERT INTO payouts (payout_id, kind, project_pk, merchant_pk, mode, chain, scope, token, decimals,"
            " to_address, units, status, created_at, updated_at, finished_at) SELECT 'po_' || s, 'payout', id,"
            " merchant_pk, mode, 'memory', 0, 'USDX', 6, 'x', 1, s, $1::timestamptz - e, $1, CASE s WHEN 'failed'"
            " THEN $1 END FROM projects, (VALUES ('failed', interval '9 days'), ('processing', '0')) AS v (s, e)",
            (gateway.clock.now(),),
        )
    path = f"{MERCHANTS}/{merchant.merchant_id}"
    page = (await client.get(path, headers=ADMIN)).json()
    assert page["merchant"].items() >= {"email": merchant.email, "projects": 1, "members": 1, "planId": None}.items()
    assert page["merchant"]["lastActiveAt"] is not None
    assert [one["email"] for one in page["members"]] == [merchant.email]
    assert [one["projectId"] for one in page["projects"]] == [merchant.project_id]
    assert page["limits"] == {}
    live, sandbox = page["modes"]
    assert (live["mode"], sandbox["mode"]) == ("live", "sandbox")
    assert live["credits"]["balance"] == sandbox["credits"]["balance"] > 0
    assert [(one["code"], one["count"]) for one in live["attention"]] == [("PAYOUTS_FAILED", 1)]
    assert sandbox["attention"] == []
    gateway.clock.advance(seconds=3_601)
    page = (await client.get(path, headers=ADMIN)).json()
    assert [one["code"] for one in page["modes"][0]["attention"]] == ["PAYOUTS_WAITING", "PAYOUTS_FAILED"]
    refused(await client.get(f"{MERCHANTS}/mer_none", headers=ADMIN), 404, "MERCHANT_NOT_FOUND")


async def test_a_merchants_own_limits_hold_in_the_place_of_everybodys(client, gateway, merchant):
    everybodys = {"memory/USDX": {"perTransaction": "10", "perDay": "100", "minimum": "2"}}
    await client.put("/api/admin/settings", json={"limits": everybodys, "version": 0}, headers=ADMIN)
    path = f"{MERCHANTS}/{merchant.merchant_id}/limits"
    own = {"memory/USDX": {"perTransaction": "50"}}
    answer = await client.put(path, json={"limits": own, "version": 0}, headers=ADMIN)
    assert answer.json() == {"success": True, "merchantId": merchant.merchant_id, "limits": own, "version": 1}
    chain = gateway.registry.chains["memory"]

    async def in_force():
        async with gateway.db.transaction() as conn:
            pk = (await conn.exec_driver_sql("SELECT id FROM merchants")).scalar_one()
            settings = await client._transport.app.state.web.platform.get()
            asset = Asset(chain, chain.token("USDX"))
            return await limits_of(conn, settings, pk, "live", asset, gateway.clock.now())

    gateway.clock.advance(seconds=3)
    limits = await in_force()
    assert (limits.per_transaction, limits.per_day, limits.minimum) == (50 * 10**6, 100 * 10**6, 2 * 10**6)
    assert (await client.put(path, json={"limits": {}, "version": 1}, headers=ADMIN)).json()["version"] == 2
    assert (await in_force()).per_transaction == 10 * 10**6
    for bad in ({"memory/NONE": {}}, {"memory/USDX": {"perDay": "x"}}, {"memory/USDX": {"minimum": "1"}}):
        refused(await client.put(path, json={"limits": bad, "version": 2}, headers=ADMIN), 400, "VALIDATION_ERROR")
    none = {"limits": {}, "version": 0}
    refused(await client.put(f"{MERCHANTS}/mer_none/limits", json=none, headers=ADMIN), 404, "MERCHANT_NOT_FOUND")


async def test_a_merchant_is_left_no_limits_between_which_nothing_can_be_paid_out(client, merchant):
    everybodys = {"memory/USDX": {"minimum": "2"}}
    here, path = "/api/admin/settings", f"{MERCHANTS}/{merchant.merchant_id}/limits"
    assert (await client.put(here, json={"limits": everybodys, "version": 0}, headers=ADMIN)).status_code == 200
    for name in ("perTransaction", "perDay"):
        own = {"limits": {"memory/USDX": {name: "1.5"}}, "version": 0}
        told = await client.put(path, json=own, headers=ADMIN)
        refused(told, 400, "VALIDATION_ERROR", f"limits.memory/USDX.{name}")
    own = {"memory/USDX": {"perTransaction": "2"}, "memory/MEM": {"perDay": "0"}}
    assert (await client.put(path, json={"limits": own, "version": 0}, headers=ADMIN)).status_code == 200
    everybodys = {"memory/USDX": {"minimum": "2.1"}, "memory/MEM": {"minimum": "1"}}
    told = await client.put(here, json={"limits": everybodys, "version": 1}, headers=ADMIN)
    refused(told, 400, "VALIDATION_ERROR", "limits.memory/USDX.minimum")
    assert merchant.merchant_id in told.text
    everybodys["memory/USDX"] = {"minimum": "2", "perTransaction": "7"}
    assert (await client.put(here, json={"limits": everybodys, "version": 1}, headers=ADMIN)).status_code == 200


async def test_limits_that_two_owners_set_at_once_do_not_overwrite_each_other(client, gateway, merchant):
    path = f"{MERCHANTS}/{merchant.merchant_id}"
    refused(await client.put(f"{path}/limits", json={"limits": {}}, headers=ADMIN), 400, "VALIDATION_ERROR", "version")
    read = (await client.get(path, headers=ADMIN)).json()["limitsVersion"]
    ways = [{"memory/USDX": {"perDay": str(day)}} for day in range(1, 9)]
    answers = await asyncio.gather(
        *(client.put(f"{path}/limits", json={"limits": own, "version": read}, headers=ADMIN) for own in ways)
    )
    for answer in answers:
        if answer.status_code != 200:
            refused(answer, 409, "VERSION_MISMATCH")
    (kept,) = [own for own, answer in zip(ways, answers, strict=True) if answer.status_code == 200]
    page = (await client.get(path, headers=ADMIN)).json()
    assert (page["limits"], page["limitsVersion"]) == (kept, read + 1)
    async with gateway.db.autocommit() as conn:
        told = await conn.exec_driver_sql("SELECT details FROM audit_entries WHERE action = 'merchant.limits_set'")
        assert [row["changed"] for row in told.scalars()] == [{"limits": kept}]
