"""Webhooks as a merchant in person sees them: trying a receiver out, the log, and sending again."""

from __future__ import annotations

import pytest

from cambist.domain.webhooks import EVENTS
from cambist.services.webhooks.outbox import NewEvent, enqueue
from tests.support.payloads import payment_data
from tests.support.web import Merchant, refused
from tests.support.webhooks import receiver


def path_of(merchant):
    return f"/api/merchant/projects/{merchant.project_id}/test-webhook"


def log_of(merchant):
    return f"/api/dashboard/projects/{merchant.project_id}/deliveries"


@pytest.fixture
async def shop():
    async with receiver() as shop:
        yield shop


async def test_every_event_can_be_tried_out_and_verifies_with_the_real_secret(merchant, client, shop):
    for event, resource in EVENTS.items():
        answer = await client.post(path_of(merchant), json={"event": event, "url": shop.url}, headers=merchant.bearer)
        assert answer.status_code == 200, answer.text
        result = answer.json()
        assert {"delivered": True, "statusCode": 200, "responseBody": "noted", "error": None}.items() <= result.items()
        received = shop.received[-1]
        received.verify(merchant.webhook_secret)
        assert received.headers["X-Webhook-Test"] == "true"
        assert received.headers["X-Webhook-Event"] == event
        assert received.headers["X-Webhook-Timestamp"] == result["timestamp"]
        assert received.headers["X-Webhook-Signature"] == result["signature"]
        assert received.body in answer.content
        body = result["payload"]
        assert body["event"] == event
        assert body["webhookId"] == merchant.project_id
        assert body["data"]["resource"] == resource
        assert body["data"]["isTest"] is True
        assert any("_test_" in str(value) for name, value in body["data"].items() if name.endswith("Id"))


async def test_the_projects_own_url_is_used_where_none_is_given(client, shop):
    merchant = await Merchant(client).open(webhook_url=shop.url)
    answer = await client.post(path_of(merchant), json={"event": "payment.paid"}, headers=merchant.bearer)
    assert answer.json()["delivered"] is True
    assert len(shop.received) == 1


async def test_a_receiver_that_fails_is_a_result_and_no_error(merchant, client, shop):
    shop.statuses = [500]
    body = {"event": "payment.paid", "url": shop.url}
    failed = (await client.post(path_of(merchant), json=body, headers=merchant.bearer)).json()
    assert (failed["success"], failed["delivered"], failed["statusCode"]) == (True, False, 500)
    body["url"] = "http://127.0.0.1:1025/nobody"
    nobody = (await client.post(path_of(merchant), json=body, headers=merchant.bearer)).json()
    assert (nobody["success"], nobody["delivered"], nobody["statusCode"]) == (True, False, None)
    assert nobody["error"]


async def test_a_project_without_a_secret_sends_an_empty_signature(merchant, client, shop):
    project = f"/api/merchant/projects/{merchant.project_id}"
    await merchant.step_up()
    await client.patch(project, json={"webhookSigning": False}, headers=merchant.bearer)
    body = {"event": "payment.paid", "url": shop.url}
    assert (await client.post(path_of(merchant), json=body, headers=merchant.bearer)).json()["signature"] == ""
    assert shop.received[0].headers["X-Webhook-Signature"] == ""


async def test_a_test_that_cannot_be_meant_is_refused(merchant, client, shop):
    async def send(body):
        return await client.post(path_of(merchant), json=body, headers=merchant.bearer)

    refused(await send({"event": "payment.stolen", "url": shop.url}), 400, "INVALID_EVENT", "event")
    refused(await send({"event": "payment.paid"}), 400, "NO_WEBHOOK_TARGET")
    refused(await send({"event": "payment.paid", "url": "file:///etc/passwd"}), 400, "VALIDATION_ERROR", "url")
    refused(await send({"url": shop.url}), 400, "VALIDATION_ERROR", "event")
    assert shop.received == []


async def _add_event(gateway, merchant, url):
    async with gateway.db.transaction() as conn:
        row = await conn.exec_driver_sql("SELECT id FROM projects WHERE project_id = $1", (merchant.project_id,))
        event = NewEvent(
            project_pk=row.scalar_one(),
            project_id=merchant.project_id,
            event="payment.paid",
            resource_id="pay_1",
            url=url,
            data=payment_data(1),
        )
        await enqueue(conn, [event], ids=gateway.ids, now=gateway.clock.now())


async def test_the_log_shows_events_and_a_dropped_one_can_be_sent_again(merchant, client, gateway):
    await _add_event(gateway, merchant, "https://shop.example/hook")
    listed = (await client.get(log_of(merchant), headers=merchant.bearer)).json()
    assert (listed["page"], listed["limit"], listed["total"]) == (1, 25, 1)
    delivery = listed["deliveries"][0]
    assert delivery["status"] == "pending"
    assert delivery["payload"]["data"]["paymentId"] == "pay_1"
    assert delivery["attempts"] == []

    one = f"{log_of(merchant)}/{delivery['deliveryId']}"
    refused(await client.post(f"{one}/redeliver", headers=merchant.bearer), 409, "DELIVERY_PENDING")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE webhook_deliveries SET status = 'dropped', attempts = 6")
        await conn.exec_driver_sql("UPDATE projects SET payment_webhook_url = 'https://shop.example/hook'")
    again = await client.post(f"{one}/redeliver", headers=merchant.bearer)
    assert again.status_code == 200, again.text
    assert again.json()["delivery"]["status"] == "pending"
    assert (await client.get(one, headers=merchant.bearer)).json()["delivery"] == again.json()["delivery"]


async def test_the_log_is_filtered_and_belongs_to_one_project(merchant, client, gateway):
    for _ in range(3):
        await _add_event(gateway, merchant, None)
    path = log_of(merchant)

    async def total(query):
        return (await client.get(f"{path}?{query}", headers=merchant.bearer)).json()["total"]

    assert await total("status=no_target") == 3
    assert await total("status=pending") == 0
    wrong = await client.get(f"{path}?status=failed", headers=merchant.bearer)
    refused(wrong, 400, "VALIDATION_ERROR", "status")
    assert wrong.json()["error"].startswith('status must be one of "cancelled", "delivered", "dropped"')
    assert await total("event=payment.paid&resourceId=pay_1") == 3
    assert await total("resourceId=pay_2") == 0
    page = (await client.get(f"{path}?page=2&limit=2", headers=merchant.bearer)).json()
    assert (len(page["deliveries"]), page["total"]) == (1, 3)
    delivery_id = page["deliveries"][0]["deliveryId"]
    refused(await client.post(f"{path}/{delivery_id}/redeliver", headers=merchant.bearer), 409, "NO_WEBHOOK_TARGET")
    await merchant.add_project()
    refused(await client.get(f"{log_of(merchant)}/{delivery_id}", headers=merchant.bearer), 404, "DELIVERY_NOT_FOUND")
