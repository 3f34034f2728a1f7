"""Webhooks and held deposits of all merchants, as operators see them, and what operators do about them."""

from __future__ import annotations

import pytest

from cambist.services.audit.entries import newest
from cambist.services.jobs import requests
from cambist_tasks.requested import JobRunner
from tests.support.operators import Officer
from tests.support.web import ADMIN_KEY, Merchant, refused

ADMIN = {"X-Admin-Key": ADMIN_KEY}
WEBHOOKS, RESOLUTIONS = "/api/admin/webhooks", "/api/admin/resolutions"
EVERY = {"since": "2000-01-01"}


async def change(gateway, statement, *values):
    async with gateway.db.transaction() as conn:
        return await conn.exec_driver_sql(statement, values)


async def listed(client, **wanted):
    response = await client.get(f"{WEBHOOKS}/deliveries", params={"limit": 100, **wanted}, headers=ADMIN)
    assert response.status_code == 200, response.text
    return response.json()["deliveries"]


@pytest.mark.slow
async def test_what_was_dropped_is_sent_again_in_bulk_with_the_same_ids(client, gateway, two_merchants):
    ada, officer = two_merchants.ada, await Officer(client).sign_in("support")
    untold = await listed(client, status="no_target")
    assert len(untold) > 5
    assert {one["merchantId"] for one in untold} == {ada.merchant_id}
    await change(
        gateway,
        "UPDATE projects SET payment_webhook_url = 'https://shop.example/hook' WHERE project_id = $1",
        ada.project_id,
    )
    await change(
        gateway,
        "UPDATE webhook_deliveries SET status = 'dropped', attempts = 6, url = 'https://old.example/'"
        " WHERE delivery_id = $1",
        untold[0]["deliveryId"],
    )
    few = await officer.ask("POST", f"{WEBHOOKS}/redeliver", {**EVERY, "limit": 2, "merchantId": ada.merchant_id})
    job = few.json()["job"]
    again = await officer.ask("POST", f"{WEBHOOKS}/redeliver", {**EVERY, "limit": 2, "merchantId": ada.merchant_id})
    assert again.json()["job"]["jobId"] == job["jobId"]
    assert await run(gateway, job) == {"queued": 2, "more": True}
    oldest = sorted(one["deliveryId"] for one in untold[-2:])
    assert sorted(one["deliveryId"] for one in await listed(client, status="pending")) == oldest
    nobody = await officer.ask("POST", f"{WEBHOOKS}/redeliver", {**EVERY, "events": ["payout.failed"]})
    assert await run(gateway, nobody.json()["job"]) == {"queued": 0, "more": False}
    rest = await officer.ask("POST", f"{WEBHOOKS}/redeliver", {**EVERY, "projectId": ada.project_id})
    assert await run(gateway, rest.json()["job"]) == {"queued": len(untold) - 2, "more": False}
    pending = await listed(client, status="pending", merchantId=ada.merchant_id)
    assert {one["deliveryId"] for one in pending} >= {one["deliveryId"] for one in untold}
    refused(
        await officer.ask("POST", f"{WEBHOOKS}/redeliver", {**EVERY, "merchantId": "mer_x"}), 404, "MERCHANT_NOT_FOUND"
    )
    bob = await Merchant(client).open("zoe@shop.example", mode="sandbox")
    for named, code in (
        ({"projectId": ada.project_id + "x"}, "PROJECT_NOT_FOUND"),
        ({"projectId": bob.project_id, "merchantId": ada.merchant_id}, "PROJECT_NOT_FOUND"),
        ({"endpointId": "whe_x"}, "ENDPOINT_NOT_FOUND"),
        ({"endpointId": "whe_x", "projectId": ada.project_id}, "ENDPOINT_NOT_FOUND"),
    ):
        refused(await officer.ask("POST", f"{WEBHOOKS}/redeliver", {**EVERY, **named}), 404, code)
    misspelt = {**EVERY, "events": ["payment.paid", "payout.complete"]}
    refused(await officer.ask("POST", f"{WEBHOOKS}/redeliver", misspelt), 400, "INVALID_EVENT", "events")
    refused(await officer.ask("POST", f"{WEBHOOKS}/redeliver", {}), 400, "VALIDATION_ERROR")


async def test_one_delivery_is_sent_again_for_its_merchant_and_the_log_says_by_whom(client, gateway, two_merchants):
    ada, officer = two_merchants.ada, await Officer(client).sign_in("support")
    path = f"{WEBHOOKS}/deliveries/{(await listed(client, status='no_target'))[0]['deliveryId']}"
    refused(await officer.ask("POST", f"{path}/redeliver"), 409, "NO_WEBHOOK_TARGET")
    hook = "https://shop.example/hook"
    await change(gateway, "UPDATE projects SET payment_webhook_url = $1 WHERE project_id = $2", hook, ada.project_id)
    again = await officer.ask("POST", f"{path}/redeliver")
    assert again.status_code == 200, again.text
    told = again.json()["delivery"]
    assert (told["status"], told["url"]) == ("pending", hook)
    assert (told["merchantId"], told["merchantName"]) == (ada.merchant_id, "Ada's Shop")
    assert (told["projectId"], told["mode"]) == (ada.project_id, "sandbox")
    assert (await officer.ask("GET", path)).json()["delivery"] == told
    async with gateway.db.autocommit() as conn:
        (entry,) = await newest(conn, action="webhook_delivery.sent_again", limit=5)
    assert (entry.actor, entry.subject) == (officer.made.operator_id, told["deliveryId"])
    assert (entry.merchant_id, entry.project_id) == (ada.merchant_id, ada.project_id)
    assert entry.details["event"] == told["event"]
    refused(await officer.ask("POST", f"{path}/redeliver"), 409, "DELIVERY_PENDING")
    refused(await officer.ask("POST", f"{WEBHOOKS}/deliveries/dlv_x/redeliver"), 404, "DELIVERY_NOT_FOUND")


async def run(gateway, job):
    async with gateway.db.autocommit() as conn:
        await JobRunner(gateway, "here").run((await requests.get(conn, job["jobId"])).pk)
        ended = await requests.get(conn, job["jobId"])
    assert ended.state == "succeeded", ended.error
    return ended.result


async def test_deliveries_of_all_merchants_are_found_and_receivers_that_fail_are_told(client, gateway, two_merchants):
    ada = two_merchants.ada
    first, second, *_ = await listed(client)
    await change(
        gateway,
        "UPDATE webhook_deliveries SET status = 'pending', attempts = 2, attempts_total = 2, url = 'https://a.example/'"
        " WHERE delivery_id = ANY ($1)",
        [first["deliveryId"], second["deliveryId"]],
    )
    await change(
        gateway,
        "INSERT INTO webhook_attempts (delivery_pk, number, attempted_at, duration_ms, status_code, error)"
        " SELECT id, n, now(), 5, 500 + n, NULL FROM webhook_deliveries, generate_series(1, 2) n"
        " WHERE delivery_id = $1",
        first["deliveryId"],
    )
    failing = await listed(client, status="failing")
    assert {one["deliveryId"] for one in failing} == {first["deliveryId"], second["deliveryId"]}
    told = next(one for one in failing if one["deliveryId"] == first["deliveryId"])
    assert (told["status"], told["attempts"], told["lastAttempt"]["statusCode"]) == ("failing", 2, 502)
    assert (told["merchantName"], told["projectId"], told["mode"]) == ("Ada's Shop", ada.project_id, "sandbox")
    (receiver,) = (await client.get(f"{WEBHOOKS}/failing", headers=ADMIN)).json()["endpoints"]
    assert (receiver["url"], receiver["failing"], receiver["lastAttempt"]["statusCode"]) == (
        "https://a.example/",
        2,
        502,
    )
    assert receiver["failingSince"] == min(first["createdAt"], second["createdAt"])
    nobody = await client.get(f"{WEBHOOKS}/failing?merchantId={two_merchants.bob.merchant_id}", headers=ADMIN)
    assert nobody.json()["endpoints"] == []
    assert await listed(client, event="payment.paid", projectId=ada.project_id)
    assert await listed(client, to="2000-01-01") == await listed(client, projectId="prj_x") == []
    detail = await client.get(f"{WEBHOOKS}/deliveries/{first['deliveryId']}", headers=ADMIN)
    assert [one["statusCode"] for one in detail.json()["delivery"]["attempts"]] == [501, 502]
    refused(await client.get(f"{WEBHOOKS}/deliveries/dlv_x", headers=ADMIN), 404, "DELIVERY_NOT_FOUND")


@pytest.mark.slow
async def test_deliveries_of_a_time_are_found_behind_however_many_newer_ones(client, gateway, two_merchants):
    day = "2030-01-0"
    for name, at, count in (
        ("before", "2T23:59:59", 5_000),
        ("first", "3T00:00", 2),
        # One of the next day may stand before one of this, as what is dated by a transaction's start does.
        ("between", "4T00:04", 4_000),
        ("last", "3T23:59", 1),
        ("after", "5T00:00", 20_000),
        # What a merchant has sent again has its event's date.
        ("again", "3T12:00", 1),
    ):
        await change(
            gateway,
            "INSERT INTO webhook_deliveries (delivery_id, project_pk, event_pk, event, resource_id, status, due_at,"
            " created_at) SELECT 'dlv_' || $1::text || n, d.project_pk, d.event_pk, d.event, 'pay_1', 'delivered',"
            " $2::text::timestamptz, $2::text::timestamptz FROM generate_series(1, $3::int) n,"
            " (SELECT * FROM webhook_deliveries WHERE event_pk IS NOT NULL LIMIT 1) d",
            *(name, f"{day}{at}Z", count),
        )
    wanted = {"from": f"{day}3", "to": f"{day}4"}
    expected = ["dlv_again1", "dlv_last1", "dlv_first2", "dlv_first1"]
    for more in ({}, {"status": "delivered"}, {"merchantId": two_merchants.ada.merchant_id}):
        found = await client.get(f"{WEBHOOKS}/deliveries", params={**wanted, **more}, headers=ADMIN)
        page = found.json()
        assert [one["deliveryId"] for one in page["deliveries"]] == expected
        assert (page["total"], page["totalIsExact"], page["nextCursor"]) == (4, True, None)
    oldest = await listed(client, **wanted, sort="createdAt")
    assert [one["deliveryId"] for one in oldest] == expected[::-1]
    since = await listed(client, **{"from": f"{day}5"}, to=f"{day}6", limit=10)
    assert [one["deliveryId"] for one in since] == [f"dlv_after{n}" for n in range(20_000, 19_990, -1)]


@pytest.mark.slow
async def test_a_late_payment_is_accepted_by_an_operator_and_the_log_says_for_whom(client, gateway, two_merchants):
    ada, deposit_id = two_merchants.ada, two_merchants.ids["deposit_id"]
    support = await Officer(client).sign_in("support", stepped_up=True)
    auditor = await Officer(client).sign_in("auditor", stepped_up=True)
    (waiting,) = (await auditor.ask("GET", f"{RESOLUTIONS}?reason=surplus&mode=sandbox")).json()["resolutions"]
    assert (waiting["merchantId"], waiting["projectId"], waiting["mode"]) == (
        ada.merchant_id,
        ada.project_id,
        "sandbox",
    )
    assert (waiting["canRelease"], waiting["deposit"]["canAccept"]) == (True, True)
    assert waiting["deposit"]["depositId"] == deposit_id
    assert (await auditor.ask("GET", f"{RESOLUTIONS}?mode=live")).json()["resolutions"] == []
    refused(await auditor.ask("POST", f"{RESOLUTIONS}/{deposit_id}/accept"), 403, "ROLE_NOT_ALLOWED")
    refused(await support.ask("POST", f"{RESOLUTIONS}/dep_x/release"), 404, "DEPOSIT_NOT_FOUND")
    before = await balances(two_merchants)
    accepted = (await support.ask("POST", f"{RESOLUTIONS}/{deposit_id}/accept")).json()["resolution"]
    assert (accepted["deposit"]["resolution"], accepted["canRelease"]) == ("accepted", False)
    after = await balances(two_merchants)
    assert (float(after["available"]) - float(before["available"]), after["held"]) == (3.0, "0")
    refused(await support.ask("POST", f"{RESOLUTIONS}/{deposit_id}/release"), 409, "ALREADY_RESOLVED")
    assert (await auditor.ask("GET", RESOLUTIONS)).json()["resolutions"] == []
    async with gateway.db.autocommit() as conn:
        (entry,) = await newest(conn, action="deposit.accepted", limit=5)
    assert (entry.actor, entry.actor_kind, entry.subject) == (support.made.operator_id, "operator", deposit_id)
    assert (entry.merchant_id, entry.details["project"]) == (ada.merchant_id, ada.project_id)


async def balances(two_merchants):
    tokens = (await two_merchants.get("/api/merchant/wallet"))["balances"]
    return next(one for one in tokens if one["token"] == "USDX")
