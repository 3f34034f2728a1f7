"""What browsers and programs send twice is done once under a key, and answered alike, secrets included."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime

import pytest

from cambist.services import retention
from cambist.services.identity import projects
from cambist.settings import RetentionSettings
from cambist_web.openapi.pages import whole_description
from tests.support.team import Teammate
from tests.support.tracker_api import CREATE, URL, make
from tests.support.web import ADMIN_KEY, Merchant, refused
from tests.support.webhooks import paid, put

ADMIN = {"X-Admin-Key": ADMIN_KEY}
KEY = "0191f6f6-0000-7000-8000-000000000000"
SINCE = {"since": "2020-01-01"}
TRACKER = {"url": URL, "name": "Desk", "chain": "memory"}


@pytest.fixture
def merchant(sandbox_merchant):
    return sandbox_merchant


@pytest.fixture
async def stored(gateway):
    async def stored(query):
        async with gateway.db.autocommit() as conn:
            return (await conn.exec_driver_sql(query)).all()

    return stored


@pytest.fixture
async def acts(client, gateway, merchant, clock, stored):
    """Give every act under a key: its route's template, path, body and credentials."""
    await merchant.ask("PATCH", f"/api/merchant/projects/{merchant.project_id}", {"paymentWebhookUrl": URL})
    tracker = await make(client, merchant.key)
    async with gateway.db.transaction() as conn:
        project_pk = await projects.find_pk(conn, merchant.project_id, None)
    told = paid((project_pk, merchant.project_id), URL)
    await put(gateway.db, [told], ids=gateway.ids, clock=clock)
    payment = await client.post(
        "/api/payment",
        json={"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"},
        headers=merchant.key,
    )
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE webhook_deliveries SET status = 'dropped'")
        await conn.exec_driver_sql(
            "INSERT INTO chain_cursors (chain, scope, height, hash, head, finalized, books_from, updated_at)"
            " VALUES ('memory', 0, 4, 'hash', 4, 4, 0, now())"
        )
    [(event_id, delivery_id)] = await stored(
        "SELECT e.event_id, d.delivery_id FROM webhook_deliveries d JOIN webhook_events e ON e.id = d.event_pk"
    )
    own, mine = f"/api/merchant/projects/{merchant.project_id}", f"/api/dashboard/projects/{merchant.project_id}"
    tok = tracker.token
    sandbox = {
        "deposit": {"paymentId": payment.json()["payment"]["paymentId"], "amount": "1"},
        "mine": {"chain": "memory", "blocks": 1},
        "reorg": {"chain": "memory", "depth": 1},
        "advance-time": {"seconds": 1},
    }
    return [
        ("/api/merchant/projects", {"name": "Shop", "mode": "sandbox"}, merchant.bearer),
        (f"{own}/api-keys", {"name": "Till"}, merchant.bearer),
        (f"{own}/api-keys", None, merchant.bearer),
        (f"{own}/webhook-endpoints", {"url": URL}, merchant.bearer),
        (CREATE, TRACKER, merchant.key),
        (CREATE, TRACKER, merchant.bearer),
        (CREATE, TRACKER | {"projectId": merchant.project_id}, ADMIN),
        (f"{mine}/trackers", TRACKER, merchant.bearer),
        (f"{mine}/trackers/{tracker.webhook_id}/redeliver", SINCE, merchant.bearer),
        ("/api/webhook/redeliver", SINCE, tok),
        ("/api/webhook/regenerate-secret", None, tok),
        (f"{mine}/deliveries/{delivery_id}/redeliver", None, merchant.bearer),
        (f"/api/admin/webhooks/deliveries/{delivery_id}/redeliver", None, ADMIN),
        (f"/api/events/{event_id}/redeliver", None, merchant.key),
        (f"{mine}/events/{event_id}/redeliver", {}, merchant.bearer),
        ("/api/events/redeliver", SINCE, merchant.key),
        (f"{mine}/events/redeliver", SINCE, merchant.bearer),
        *((f"/api/sandbox/{name}", body, merchant.key) for name, body in sandbox.items()),
        *((f"{mine}/sandbox/{name}", body, merchant.bearer) for name, body in sandbox.items()),
        ("/api/admin/jobs", {"kind": "statement_export", "merchantId": merchant.merchant_id}, ADMIN),
        ("/api/admin/reconcile", {}, ADMIN),
        ("/api/admin/audit/verify", None, ADMIN),
        ("/api/admin/chains/memory/rescan", {"fromHeight": 1, "reason": "order 4711"}, ADMIN),
        ("/api/admin/webhooks/redeliver", SINCE, ADMIN),
        ("/api/admin/merchants", {"email": "new@shop.example", "name": "New"}, ADMIN),
        ("/api/admin/operators", {"email": "new@ops.example", "name": "New", "role": "support"}, ADMIN),
        ("/api/admin/plans", {"name": "Small", "hasTracker": True, "maxWebhooks": 1, "maxAddresses": 1}, ADMIN),
    ]


async def test_what_arrives_twice_is_done_once_and_answered_alike(client, gateway, acts, clock, stored):
    """Every route that takes ``once`` is among them. Of each, two arrive at once, and another one later."""
    for number, (path, body, credentials) in enumerate(acts):
        if "redeliver" in path:
            await stored("UPDATE webhook_deliveries SET status = 'dropped' RETURNING 1")
        headers = credentials | {"Idempotency-Key": f"{KEY}-{number}"}
        before = await counts(stored)
        first, twin = await asyncio.gather(*[client.post(path, json=body, headers=headers) for _ in range(2)])
        assert first.status_code in {200, 201, 202}, (path, first.text)
        done = await counts(stored)
        assert all(0 <= now - then <= 1 for now, then in zip(done, before, strict=True)), (path, before, done)
        clock.advance(10)
        later = await client.post(path, json=body, headers=headers)
        for again in (twin, later):
            assert (again.status_code, again.content) == (first.status_code, first.content), path
        assert await counts(stored) == done, path
    described = json.loads(whole_description(client._transport.app))["paths"]
    once = {
        re.sub(r"\{\w+\}", "{}", path)
        for path, item in described.items()
        for one in item.get("post", {}).get("parameters", ())
        if one["name"] == "Idempotency-Key" and "does it once" in one["description"]
    }
    assert {re.sub(r"(prj|whk|evt|dlv)_\w+|(?<=chains/)memory", "{}", path) for path, _, _ in acts} == once


async def counts(stored):
    """Return how many there are of what must not be made twice."""
    [row] = await stored(
        "SELECT (SELECT count(*) FROM audit_entries), (SELECT count(*) FROM sandbox_transfers),"
        " (SELECT count(*) FROM jobs)"
    )
    return tuple(row)


async def test_a_key_is_its_askers_and_says_one_thing(client, gateway, merchant, stored):
    """What it keeps is sealed, gone after a day, and given to nobody who does not ask for the same as the same."""
    path, keyed = f"/api/merchant/projects/{merchant.project_id}/api-keys", {"Idempotency-Key": KEY}
    issue = {"json": {"name": "Till"}, "headers": merchant.bearer | keyed}
    first = await client.post(path, **issue)
    [(sealed,)] = await stored("SELECT answer_encrypted FROM kept_answers")
    assert first.json()["apiKey"].encode() not in sealed
    refused(await client.post(path, **issue | {"json": {"name": "Desk"}}), 409, "IDEMPOTENCY_KEY_REUSED")
    refused(await client.post(path, headers=issue["headers"]), 409, "IDEMPOTENCY_KEY_REUSED")
    for bad in ("", "x" * 256, b"\xe9"):
        headers = merchant.bearer | {"Idempotency-Key": bad}
        refused(await client.post(path, headers=headers), 400, "VALIDATION_ERROR", "Idempotency-Key")
    twice = [*issue["headers"].items(), ("Idempotency-Key", "another")]
    refused(await client.post(path, json={}, headers=twice), 400, "VALIDATION_ERROR", "Idempotency-Key")
    # Nothing was done under a key whose request was refused.
    unknown, named = {"scopes": ["nothing"]}, merchant.bearer | {"Idempotency-Key": "free"}
    refused(await client.post(path, json=unknown, headers=named), 400, "VALIDATION_ERROR")
    assert (await client.post(path, json={"name": "Free"}, headers=named)).status_code == 201
    # Another person, and another project's program, do something of their own.
    zoe = await Merchant(client).open("zoe@shop.example", mode="sandbox")
    made = [
        await client.post(CREATE, json=TRACKER, headers=headers | keyed)
        for headers in (merchant.key, merchant.bearer, zoe.key, zoe.bearer)
    ]
    assert len({answer.json()["webhook"]["webhookId"] for answer in made}) == 4
    for hours, gone in ((23, 0), (25, 6)):
        await stored(f"UPDATE kept_answers SET created_at = now() - interval '{hours} hours' RETURNING 1")  # noqa: S608
        deleted = await retention.delete_batch(gateway.db, RetentionSettings(), datetime.now(UTC))
        assert deleted["kept_answers"] == gone


async def test_whoever_lost_a_trackers_new_token_gets_it_by_the_old_one_and_a_random_key(client, merchant):
    tracker, path = await make(client, merchant.key), "/api/webhook/regenerate-secret"
    short = await client.post(path, headers=tracker.token | {"Idempotency-Key": "1"})
    refused(short, 400, "VALIDATION_ERROR", "Idempotency-Key")
    keyed = tracker.token | {"Idempotency-Key": KEY}
    fresh = await client.post(path, headers=keyed)
    assert (await client.post(path, headers=keyed)).content == fresh.content
    # The old token is good for nothing else, and for nobody who guesses.
    for other in ({}, {"Idempotency-Key": KEY[::-1]}):
        refused(await client.post(path, headers=tracker.token | other), 401, "AUTH_TOKEN_INVALID")
    refused(await client.post("/api/webhook/test", headers=keyed), 401, "AUTH_TOKEN_INVALID")
    new = {"X-Auth-Token": fresh.json()["webhook"]["authToken"]}
    assert (await client.get("/api/webhook/get", headers=new)).status_code == 200
    # Who has the new one and asks again wants another one.
    again = await client.post(path, headers=new | {"Idempotency-Key": KEY})
    assert again.json()["webhook"]["authToken"] != fresh.json()["webhook"]["authToken"]


async def test_a_trackers_credentials_are_not_repeated_to_whom_its_project_was_closed(client, merchant):
    await merchant.step_up()
    zoe = await Teammate(client, merchant).sign_in("developer")
    body = TRACKER | {"projectId": merchant.project_id}
    asked = {"json": body, "headers": zoe.bearer | {"Idempotency-Key": KEY}}
    assert (await client.post(CREATE, **asked)).status_code == 201
    await merchant.add_project(mode="sandbox")
    change = {"version": 0, "projectIds": [merchant.project_id]}
    await merchant.ask("PATCH", f"/api/dashboard/members/{zoe.member_id}", change)
    refused(await client.post(CREATE, **asked), 403, "PROJECT_NOT_OPEN")
