"""Webhook endpoints as a merchant in person manages them."""

from __future__ import annotations

import pytest

from cambist.services.webhooks.endpoints import ENDPOINTS_MAX
from cambist.services.webhooks.outbox import NewEvent, enqueue
from tests.support.payloads import payment_data
from tests.support.web import refused
from tests.support.webhooks import deliverer, receiver

BOOKS = "https://books.example/hook"


@pytest.fixture
async def shop():
    async with receiver() as shop:
        yield shop


@pytest.fixture
def merchant(stepped_up_merchant):
    return stepped_up_merchant


@pytest.fixture
def path(merchant):
    return f"/api/merchant/projects/{merchant.project_id}/webhook-endpoints"


async def told(gateway, merchant, number, event="payment.paid"):
    async with gateway.db.transaction() as conn:
        row = await conn.exec_driver_sql("SELECT id FROM projects WHERE project_id = $1", (merchant.project_id,))
        one = NewEvent(
            project_pk=row.scalar_one(),
            project_id=merchant.project_id,
            event=event,
            resource_id=f"pay_{number}",
            url=None,
            data=payment_data(number, event),
        )
        await enqueue(conn, [one], ids=gateway.ids, now=gateway.clock.now())


async def test_an_endpoint_is_made_shown_changed_and_deleted_and_its_secret_is_shown_once(client, merchant, path):
    made = await merchant.ask("POST", path, {"url": BOOKS, "events": ["payment.paid", "payment.paid"]})
    endpoint = made["endpoint"]
    assert len(made["webhookSecret"]) == 64
    assert endpoint["endpointId"].startswith("whe_")
    assert (endpoint["url"], endpoint["events"], endpoint["paused"]) == (BOOKS, ["payment.paid"], False)
    one = f"{path}/{endpoint['endpointId']}"
    assert await merchant.ask("GET", one) == {"success": True, "endpoint": endpoint}
    assert (await merchant.ask("GET", path))["endpoints"] == [endpoint]
    assert made["webhookSecret"] not in (await client.get(path, headers=merchant.bearer)).text
    changed = await merchant.ask("PATCH", one, {"events": [], "paused": True})
    assert changed["endpoint"] == {**endpoint, "events": [], "paused": True}
    assert await merchant.ask("DELETE", one) == {"success": True}
    refused(await client.get(one, headers=merchant.bearer), 404, "ENDPOINT_NOT_FOUND")
    assert (await merchant.ask("GET", path))["total"] == 0


async def test_what_cannot_be_meant_is_refused_and_there_are_ten_at_most(client, merchant, path):
    async def make(body):
        return await client.post(path, json=body, headers=merchant.bearer)

    refused(await make({}), 400, "VALIDATION_ERROR", "url")
    refused(await make({"url": "ftp://books.example"}), 400, "VALIDATION_ERROR", "url")
    refused(await make({"url": BOOKS, "events": ["payment.stolen"]}), 400, "INVALID_EVENT", "events")
    for _ in range(ENDPOINTS_MAX):
        assert (await make({"url": BOOKS})).status_code == 201
    refused(await make({"url": BOOKS}), 409, "TOO_MANY_ENDPOINTS")
    unknown = f"{path}/whe_1"
    refused(await client.patch(unknown, json={"paused": True}, headers=merchant.bearer), 404, "ENDPOINT_NOT_FOUND")
    refused(await client.post(f"{unknown}/rotate-secret", headers=merchant.bearer), 404, "ENDPOINT_NOT_FOUND")
    body = {"event": "payment.paid"}
    refused(await client.post(f"{unknown}/test", json=body, headers=merchant.bearer), 404, "ENDPOINT_NOT_FOUND")


async def test_where_else_events_go_is_decided_after_a_step_up_in_a_live_project(client, live_merchant):
    path = f"/api/merchant/projects/{live_merchant.project_id}/webhook-endpoints"
    refused(await client.post(path, json={"url": BOOKS}, headers=live_merchant.bearer), 403, "TWO_FACTOR_REQUIRED")


async def test_a_test_goes_to_the_endpoint_signed_by_its_secret_also_while_it_is_paused(client, merchant, path, shop):
    made = await merchant.ask("POST", path, {"url": shop.url, "paused": True})
    one = f"{path}/{made['endpoint']['endpointId']}"
    result = await merchant.ask("POST", f"{one}/test", {"event": "payment.paid"})
    assert (result["delivered"], result["statusCode"]) == (True, 200)
    shop.received[0].verify(made["webhookSecret"])
    assert shop.received[0].headers["X-Webhook-Test"] == "true"
    refused(
        await client.post(f"{one}/test", json={"event": "x"}, headers=merchant.bearer), 400, "INVALID_EVENT", "event"
    )


async def test_a_secret_rotates_at_once_or_with_an_overlap(client, merchant, path, shop, clock):
    made = await merchant.ask("POST", path, {"url": shop.url})
    one = f"{path}/{made['endpoint']['endpointId']}"
    project = f"/api/merchant/projects/{merchant.project_id}"
    for old, rotate, test, body in (
        (made["webhookSecret"], f"{one}/rotate-secret", f"{one}/test", {"event": "payment.paid"}),
        (
            merchant.webhook_secret,
            f"{project}/rotate-webhook-secret",
            f"{project}/test-webhook",
            {"event": "payment.paid", "url": shop.url},
        ),
    ):
        new = await merchant.ask("POST", rotate, {"overlapMinutes": 60})
        assert new["previousSecretUntil"] > new["rotatedAt"]
        shown = await merchant.ask("GET", rotate.rpartition("/")[0])
        assert (shown.get("project") or shown["endpoint"])["previousSecretUntil"] == new["previousSecretUntil"]
        result = await merchant.ask("POST", test, body)
        both = shop.received[-1]
        both.verify(new["webhookSecret"])
        assert result["signature"] == both.headers["X-Webhook-Signature"]
        both.headers["X-Webhook-Signature"] = both.headers["X-Webhook-Signature-Previous"]
        both.verify(old)
        newest = await merchant.ask("POST", rotate)
        assert "previousSecretUntil" not in newest
        await merchant.ask("POST", test, body)
        shop.received[-1].verify(newest["webhookSecret"])
        assert "X-Webhook-Signature-Previous" not in shop.received[-1].headers
        for minutes in (-1, 1441):
            answer = await client.post(rotate, json={"overlapMinutes": minutes}, headers=merchant.bearer)
            refused(answer, 400, "VALIDATION_ERROR", "overlapMinutes")


async def test_an_endpoint_has_a_log_of_its_own_and_gets_what_it_missed_while_it_was_paused(
    client, merchant, gateway, path, shop, clock
):
    made = await merchant.ask("POST", path, {"url": shop.url, "events": ["payment.paid"], "paused": True})
    await merchant.ask("POST", path, {"url": BOOKS, "events": ["payment.expired"]})
    endpoint_id = made["endpoint"]["endpointId"]
    for number, event in enumerate(("payment.paid", "payment.expired", "payment.paid")):
        await told(gateway, merchant, number, event)
    log = await merchant.ask("GET", f"{path}/{endpoint_id}/deliveries")
    assert [(one["resourceId"], one["status"]) for one in log["deliveries"]] == [
        ("pay_2", "paused"),
        ("pay_0", "paused"),
    ]
    assert {one["endpointId"] for one in log["deliveries"]} == {endpoint_id}
    assert {one["nextAttemptAt"] for one in log["deliveries"]} == {None}
    everything = await merchant.ask("GET", f"/api/dashboard/projects/{merchant.project_id}/deliveries")
    assert everything["total"] == 3
    await merchant.ask("PATCH", f"{path}/{endpoint_id}", {"paused": False})
    async with deliverer(gateway.db, clock, secrets=client._transport.app.state.web.secrets) as worker:
        assert await worker.deliver_due() == 3
    assert len(shop.received) == 2
    for request in shop.received:
        request.verify(made["webhookSecret"])
    log = await merchant.ask("GET", f"{path}/{endpoint_id}/deliveries?status=delivered")
    assert [one["attempts"][0]["statusCode"] for one in log["deliveries"]] == [200, 200]
    assert {one["url"] for one in log["deliveries"]} == {shop.url}
