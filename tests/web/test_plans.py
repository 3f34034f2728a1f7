"""Plans over HTTP: the operator makes and gives them, merchants and calculators are told."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.accounting import usage
from cambist.services.accounting.usage import Metered
from cambist.services.platform import PlatformSettings
from cambist_web.context import KEY_CACHE_TTL_S
from tests.support.statements import statements
from tests.support.web import ADMIN_KEY, UNLIMITED, Merchant, memory_gateway, refused, web_client, web_settings

PLANS = "/api/admin/plans"
PLAN = "/api/merchant/plan"
CALCULATOR = "/api/public/cpt-calculator-config"
ADMIN = {"X-Admin-Key": ADMIN_KEY}
STANDARD = {
    "planId": "pln_standard",
    "name": "Standard",
    "hasTracker": True,
    "chains": None,
    "maxWebhooks": 10,
    "maxAddresses": 1000,
    "requestsPerMinute": None,
    "cptPerMonth": None,
    "priceUsd": None,
}
GROWTH = {"name": "Growth", "hasTracker": True, "maxWebhooks": 100, "maxAddresses": 10_000}


async def make(client, **wanted):
    answer = await client.post(PLANS, json=GROWTH | wanted, headers=ADMIN)
    assert answer.status_code == 201, answer.text
    return answer.json()["plan"]


async def change(client, plan, **wanted):
    if "chains" in wanted:
        wanted.setdefault("version", plan["version"])
    return await client.patch(f"{PLANS}/{plan['planId']}", json=wanted, headers=ADMIN)


async def give(client, merchant, plan_id):
    path = f"/api/admin/merchants/{merchant.merchant_id}/plan"
    return await client.put(path, json={"planId": plan_id}, headers=ADMIN)


async def own(client, merchant):
    return (await client.get(PLAN, headers=merchant.key)).json()


async def test_without_a_row_everybody_has_trackers_on_every_chain_and_is_told_what_is_used(client, merchant):
    assert await own(client, merchant) == {
        "success": True,
        "mode": "live",
        "plan": STANDARD,
        "used": {
            "webhooks": 0,
            "addresses": 0,
            "addressesMost": 0,
            "month": "2026-01",
            "cpt": 0,
            "cptIncluded": None,
        },
    }
    mirrored = f"/api/dashboard/projects/{merchant.project_id}/plan"
    assert (await client.get(mirrored, headers=merchant.bearer)).json() == await own(client, merchant)
    listed = (await client.get(PLANS, headers=ADMIN)).json()
    counted = {"page": 1, "limit": 25, "total": 0, "totalIsExact": True, "nextCursor": None}
    assert listed == {"success": True, "defaultPlan": STANDARD, "plans": [], **counted}


async def test_a_plan_is_made_given_and_taken_back(client, merchant, gateway):
    made = await make(
        client, chains=["memory", "idle", "memory"], requestsPerMinute=120, cptPerMonth=500_000, priceUsd="49.90"
    )
    assert made == {
        **GROWTH,
        "planId": made["planId"],
        "chains": ["memory", "idle"],
        "requestsPerMinute": 120,
        "cptPerMonth": 500_000,
        "priceUsd": "49.90",
        "isDefault": False,
        "isPublic": True,
        "archivedAt": None,
        "createdAt": "2026-01-01T12:00:00.000Z",
        "version": 0,
        "merchants": 0,
    }
    assert made["planId"].startswith("pln_")
    given = (await give(client, merchant, made["planId"])).json()
    told = {name: made[name] for name in STANDARD}
    assert given == {"success": True, "merchantId": merchant.merchant_id, "plan": told}
    assert (await own(client, merchant))["plan"] == told
    [listed] = (await client.get(PLANS, headers=ADMIN)).json()["plans"]
    assert listed == {**made, "merchants": 1}
    stranger = await Merchant(client).open("eve@shop.example")
    assert (await own(client, stranger))["plan"] == STANDARD
    assert (await give(client, merchant, None)).json()["plan"] == STANDARD
    assert (await own(client, merchant))["plan"] == STANDARD
    async with gateway.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT action, subject, merchant_id FROM audit_entries WHERE action LIKE 'plan.%' ORDER BY id"
        )
        assert [tuple(row) for row in rows] == [
            ("plan.made", made["planId"], None),
            ("plan.given", made["planId"], merchant.merchant_id),
            ("plan.given", "pln_standard", merchant.merchant_id),
        ]


async def test_one_plan_at_a_time_is_the_default_of_all_who_were_given_none(client, merchant):
    first = await make(client, name="First", isDefault=True)
    assert (await own(client, merchant))["plan"]["name"] == "First"
    second = await make(client, name="Second", maxWebhooks=3, isDefault=True)
    plans = (await client.get(PLANS, headers=ADMIN)).json()
    assert [one["isDefault"] for one in plans["plans"]] == [False, True]
    assert plans["defaultPlan"]["name"] == (await own(client, merchant))["plan"]["name"] == "Second"
    refused(await change(client, second, archived=True), 409, "PLAN_IS_DEFAULT")
    assert (await change(client, first, isDefault=True)).json()["plan"]["isDefault"] is True
    assert (await own(client, merchant))["plan"]["name"] == "First"
    assert (await change(client, first, isDefault=False)).status_code == 200
    assert (await own(client, merchant))["plan"] == STANDARD
    answers = await asyncio.gather(*(change(client, one, isDefault=True) for one in (first, second) * 3))
    assert {answer.status_code for answer in answers} == {200}
    plans = (await client.get(PLANS, headers=ADMIN)).json()["plans"]
    assert sorted(one["isDefault"] for one in plans) == [False, True]


async def test_a_change_keeps_the_rest_and_holds_for_who_has_the_plan(client, merchant):
    made = await make(client, requestsPerMinute=120)
    await give(client, merchant, made["planId"])
    changed = (await change(client, made, maxWebhooks=7, requestsPerMinute=None)).json()["plan"]
    assert changed == {**made, "maxWebhooks": 7, "requestsPerMinute": None, "merchants": 1, "version": 1}
    told = (await own(client, merchant))["plan"]
    assert (told["maxWebhooks"], told["requestsPerMinute"]) == (7, None)
    assert (await change(client, made)).json()["plan"] == changed


async def test_chains_that_two_owners_change_at_once_do_not_overwrite_each_other(client):
    made = await make(client, chains=["memory"])
    path = f"{PLANS}/{made['planId']}"
    whole = {"chains": ["memory", "idle"]}
    refused(await client.patch(path, json=whole, headers=ADMIN), 400, "VALIDATION_ERROR", "version")
    answers = await asyncio.gather(*(change(client, made, **whole, maxWebhooks=n) for n in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 5]
    refused(await change(client, made, name="Other", version=0), 409, "VERSION_MISMATCH")
    assert (await change(client, made, name="Other")).json()["plan"]["version"] == 2
    default = await make(client, name="Default", isDefault=True)
    await change(client, made, isDefault=True)
    refused(await change(client, default, name="Mine", version=0), 409, "VERSION_MISMATCH")


async def test_an_archived_plan_stays_with_who_has_it_and_is_given_to_nobody(client, merchant):
    made = await make(client)
    await give(client, merchant, made["planId"])
    archived = (await change(client, made, archived=True)).json()["plan"]
    assert archived["archivedAt"] == "2026-01-01T12:00:00.000Z"
    assert (await own(client, merchant))["plan"]["name"] == "Growth"
    assert (await give(client, merchant, made["planId"])).status_code == 200, "nothing changes by it"
    stranger = await Merchant(client).open("eve@shop.example")
    refused(await give(client, stranger, made["planId"]), 409, "PLAN_ARCHIVED")
    refused(await change(client, made, isDefault=True), 409, "PLAN_IS_DEFAULT")
    assert (await client.delete(f"{PLANS}/{made['planId']}", headers=ADMIN)).status_code == 405
    assert (await change(client, made, archived=False)).json()["plan"]["archivedAt"] is None
    assert (await give(client, stranger, made["planId"])).status_code == 200


async def test_what_does_not_exist_is_told(client, merchant):
    refused(await give(client, merchant, "pln_none"), 404, "PLAN_NOT_FOUND")
    refused(await change(client, {"planId": "pln_none"}, maxWebhooks=1), 404, "PLAN_NOT_FOUND")
    refused(await change(client, {"planId": "pln_standard"}, maxWebhooks=1), 404, "PLAN_NOT_FOUND")
    merchant.merchant_id = "mer_none"
    refused(await give(client, merchant, None), 404, "MERCHANT_NOT_FOUND")


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong, field",
    [
        ({"name": ""}, "name"),
        ({"name": "   "}, "name"),
        ({"maxWebhooks": -1}, "maxWebhooks"),
        ({"maxAddresses": 0}, "maxAddresses"),
        ({"chains": []}, "chains"),
        ({"chains": ["memory", "moon"]}, "chains[1]"),
        ({"requestsPerMinute": 0}, "requestsPerMinute"),
        ({"cptPerMonth": 0}, "cptPerMonth"),
        ({"priceUsd": "1.001"}, "priceUsd"),
        ({"priceUsd": "a lot"}, "priceUsd"),
        ({"maxWebhook": 1}, "maxWebhook"),
    ],
)
async def test_what_cannot_be_meant_is_refused_by_its_field(client, wrong, field):
    refused(await client.post(PLANS, json=GROWTH | wrong, headers=ADMIN), 400, "VALIDATION_ERROR", field)
    made = await make(client)
    refused(await change(client, made, **wrong), 400, "VALIDATION_ERROR", field)
    assert (await client.get(PLANS, headers=ADMIN)).json()["plans"] == [made]


async def test_names_are_plans_own(client):
    made, other = await make(client), await make(client, name="Other")
    refused(await client.post(PLANS, json=GROWTH, headers=ADMIN), 409, "PLAN_NAME_TAKEN")
    refused(await change(client, other, name="Growth"), 409, "PLAN_NAME_TAKEN")
    assert (await change(client, made, name="Growth")).status_code == 200
    answers = await asyncio.gather(
        *(client.post(PLANS, json=GROWTH | {"name": "Race"}, headers=ADMIN) for _ in range(4))
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]


async def test_there_are_no_more_plans_than_a_list_can_show(client, monkeypatch):
    monkeypatch.setattr("cambist.services.identity.plan_catalog.PLANS_MAX", 2)
    await make(client)
    await make(client, name="Other")
    refused(await client.post(PLANS, json=GROWTH | {"name": "Third"}, headers=ADMIN), 409, "TOO_MANY_PLANS")


async def test_the_calculator_tells_the_default_plan_first_and_then_those_that_are_public(client, clock):
    assert (await client.get(CALCULATOR)).json()["plans"] == [STANDARD]
    growth = await make(client, cptPerMonth=5, priceUsd="49")
    await make(client, name="For Eve alone", isPublic=False)
    await change(client, await make(client, name="Old"), archived=True)
    clock.advance(59)
    assert (await client.get(CALCULATOR)).json()["plans"] == [STANDARD]
    clock.advance(1)
    assert (await client.get(CALCULATOR)).json()["plans"] == [STANDARD, {name: growth[name] for name in STANDARD}]
    await change(client, growth, isDefault=True)
    clock.advance(60)
    assert [one["name"] for one in (await client.get(CALCULATOR)).json()["plans"]] == ["Growth"]


async def test_what_was_used_this_month_is_told_by_mode_whether_it_was_posted_or_not(client, merchant, gateway, clock):
    async def meter(*references, mode="live"):
        async with gateway.db.transaction() as conn:
            found = await conn.exec_driver_sql(
                "SELECT id FROM merchants WHERE merchant_id = $1", (merchant.merchant_id,)
            )
            row = found.scalar_one()
            done = [Metered(row, mode, "payout", "memory", one) for one in references]
            await usage.meter(conn, done, PlatformSettings(), clock.now())

    async def roll_up():
        async with gateway.db.transaction() as conn:
            await usage.post_unposted(conn)

    weight = PlatformSettings().cpt.weights.of("payout", "memory")
    await meter("po_1", "po_2")
    await meter("po_3", mode="sandbox")
    assert (await own(client, merchant))["used"]["cpt"] == 2 * weight
    await roll_up()
    await meter("po_4")
    assert (await own(client, merchant))["used"]["cpt"] == 3 * weight
    clock.advance(31 * 86_400)
    used = (await own(client, merchant))["used"]
    assert (used["month"], used["cpt"]) == ("2026-02", 0)
    await meter("po_5")
    await roll_up()
    assert (await own(client, merchant))["used"]["cpt"] == weight


@pytest.mark.slow
async def test_a_plan_limits_the_requests_of_each_key_and_a_change_holds_at_once(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url, rate_limits=UNLIMITED)
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        merchant, other = await Merchant(client).open(), await Merchant(client).open("eve@shop.example")
        made = await make(client, requestsPerMinute=3)
        assert (await give(client, merchant, made["planId"])).status_code == 200

        async def asked(who, times):
            return [(await client.get(PLAN, headers=who.key)).status_code for _ in range(times)]

        assert await asked(merchant, 5) == [200] * 3 + [429] * 2
        assert await asked(other, 5) == [200] * 5, "the operator's own limit is none"
        await merchant.add_key()
        assert await asked(merchant, 4) == [200] * 3 + [429], "each key is counted for itself"
        assert (await change(client, made, requestsPerMinute=None)).status_code == 200
        assert await asked(merchant, 5) == [200] * 5


@pytest.mark.slow
async def test_what_a_plan_says_of_requests_is_read_with_the_key_and_by_other_workers_within_a_second(
    database_url, redis_url, clock, ids
):
    settings = web_settings(database_url, redis_url, rate_limits=UNLIMITED)
    async with (
        memory_gateway(settings, clock, ids) as gateway,
        web_client(gateway) as client,
        memory_gateway(settings, clock, ids, stock=0) as other_gateway,
        web_client(other_gateway) as other_worker,
    ):
        merchant = await Merchant(client).open()
        path = "/api/merchant/wallet/addresses"
        await other_worker.get(path, headers=merchant.key)
        clock.advance(KEY_CACHE_TTL_S)
        with statements(other_gateway.db) as asked:
            for _ in range(5):
                await other_worker.get(path, headers=merchant.key)
        assert sum("plans" in one for one in asked) == 1
        assert [one for one in asked if "plans" in one] == [one for one in asked if "key_hash" in one]
        await give(client, merchant, (await make(client, requestsPerMinute=2))["planId"])
        clock.advance(KEY_CACHE_TTL_S)
        statuses = [(await other_worker.get(path, headers=merchant.key)).status_code for _ in range(4)]
        assert statuses == [200, 200, 429, 429]
