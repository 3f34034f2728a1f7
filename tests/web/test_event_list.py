"""Events as receivers catch up with them: listed as they were sent, filtered, and sent again."""

from __future__ import annotations

import json

import pytest

from cambist.services.webhooks.outbox import NewEvent, enqueue
from tests.support.payloads import payment_data
from tests.support.web import refused

EVENTS = "/api/events"


@pytest.fixture
def tell(gateway, merchant):
    """Return what writes an event of a payment into the outbox."""

    async def add(number, event="payment.paid", url=None):
        async with gateway.db.transaction() as conn:
            row = await conn.exec_driver_sql("SELECT id FROM projects WHERE project_id = $1", (merchant.project_id,))
            told = NewEvent(
                project_pk=row.scalar_one(),
                project_id=merchant.project_id,
                event=event,
                resource_id=f"pay_{number}",
                url=url,
                data=payment_data(number, event, order_id="5 € – \x1f"),
            )
            await enqueue(conn, [told], ids=gateway.ids, now=gateway.clock.now())

    return add


@pytest.fixture
def ask(client, merchant):
    async def send(query=""):
        answer = await client.get(f"{EVENTS}{query}", headers=merchant.key)
        assert answer.status_code == 200, answer.text
        return answer

    return send


async def test_events_are_read_on_from_a_cursor_newest_first_each_byte_for_byte(ask, tell, gateway):
    for number in range(5):
        await tell(number)
    seen, query = [], "?limit=2"
    for _ in range(3):
        answer = await ask(query)
        page = answer.json()
        seen += page["events"]
        query = f"?limit=2&cursor={page['nextCursor']}"
        await tell(99)
    assert page["nextCursor"] is None
    assert [event["resourceId"] for event in seen] == [f"pay_{number}" for number in (4, 3, 2, 1, 0)]
    assert len({event["eventId"] for event in seen}) == 5
    async with gateway.db.transaction() as conn:
        stored = (
            await conn.exec_driver_sql("SELECT body FROM webhook_events WHERE resource_id = 'pay_0'")
        ).scalar_one()
    assert bytes(stored) in answer.content
    assert seen[4]["payload"] == json.loads(stored)
    (delivery,) = seen[4]["deliveries"]
    assert (delivery["status"], delivery["endpointId"], delivery["url"]) == ("no_target", None, None)


async def test_events_are_filtered_by_name_resource_and_time(ask, tell, clock):
    await tell(1, "payment.detected")
    clock.advance(60)
    later = clock.now().isoformat().replace("+00:00", "Z")
    await tell(1)
    await tell(2, "payment.expired")

    async def found(query):
        return [(one["event"].partition(".")[2], one["resourceId"][4:]) for one in (await ask(query)).json()["events"]]

    assert await found("?event=payment.paid") == [("paid", "1")]
    assert await found("?event=payment.paid,payment.detected") == [("paid", "1"), ("detected", "1")]
    assert await found("?resourceId=pay_1") == [("paid", "1"), ("detected", "1")]
    assert await found(f"?from={later}") == [("expired", "2"), ("paid", "1")]
    assert await found(f"?to={later}") == [("detected", "1")]
    assert await found("?event=payment.unheard") == []


async def test_what_cannot_be_meant_is_refused_by_field(client, merchant):
    for query, name in (
        ("from=yesterday", "from"),
        ("from=2026-01-02&to=2026-01-01", "to"),
        ("event=", "event"),
        ("event=a,,b", "event"),
    ):
        refused(await client.get(f"{EVENTS}?{query}", headers=merchant.key), 400, "VALIDATION_ERROR", name)
    for body, name in (
        ({}, "since"), ({"since": "x"}, "since"), ({"since": "2026-01-02", "until": "2026-01-01"}, "until"),
        ({"since": "2026-01-01", "endpointId": ""}, "endpointId"),
    ):  # fmt: skip
        answer = await client.post(f"{EVENTS}/redeliver", json=body, headers=merchant.key)
        refused(answer, 400, "VALIDATION_ERROR", name)
    unknown = {"since": "2026-01-01", "endpointId": "whe_1"}
    refused(await client.post(f"{EVENTS}/redeliver", json=unknown, headers=merchant.key), 404, "ENDPOINT_NOT_FOUND")


async def test_an_event_is_sent_again_and_so_is_all_that_failed_once_however_often_it_is_asked_for(
    client, merchant, gateway, ask, tell
):
    await tell(1, url="https://shop.example/hook")
    await tell(2)
    silent, told = (await ask()).json()["events"]
    one = f"{EVENTS}/{told['eventId']}"
    assert (await client.get(one, headers=merchant.key)).json()["event"] == told
    refused(await client.post(f"{one}/redeliver", headers=merchant.key), 409, "DELIVERY_PENDING")
    nowhere = f"{EVENTS}/{silent['eventId']}/redeliver"
    refused(await client.post(nowhere, headers=merchant.key), 409, "NO_WEBHOOK_TARGET")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE webhook_deliveries SET status = 'dropped', attempts = 6 WHERE url IS NOT NULL"
        )
        await conn.exec_driver_sql("UPDATE projects SET payment_webhook_url = 'https://shop.example/hook'")
    again = (await client.post(f"{one}/redeliver", headers=merchant.key)).json()["event"]
    assert [delivery["status"] for delivery in again["deliveries"]] == ["pending"]
    assert (again["eventId"], again["payload"]) == (told["eventId"], told["payload"])
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE webhook_deliveries SET status = 'dropped', attempts = 6 WHERE url IS NOT NULL"
        )
    asked = {"since": "2020-01-01"}
    answers = [(await client.post(f"{EVENTS}/redeliver", json=asked, headers=merchant.key)).json() for _ in range(2)]
    assert [(answer["queued"], answer["more"]) for answer in answers] == [(2, False), (0, False)]


async def test_what_is_sent_again_goes_where_the_project_has_it_sent_by_now(client, merchant, gateway, ask, tell):
    """The URL that it was dropped at was a mistake, or is somebody else's by now."""
    old, new, own = (f"https://{name}.shop.example/hook" for name in ("old", "new", "own"))
    order = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1", "webhookUrl": own}
    made = await client.post("/api/payment", json=order, headers=merchant.key)
    await tell(1, url=old)
    await tell(made.json()["payment"]["paymentId"].removeprefix("pay_"), url=own)
    project = f"/api/merchant/projects/{merchant.project_id}"
    await merchant.step_up()
    assert (await client.patch(project, json={"paymentWebhookUrl": new}, headers=merchant.bearer)).status_code == 200

    async def drop():
        async with gateway.db.transaction() as conn:
            await conn.exec_driver_sql("UPDATE webhook_deliveries SET status = 'dropped', attempts = 6")

    async def urls():
        return [event["deliveries"][0]["url"] for event in (await ask()).json()["events"]]

    assert await urls() == [own, old]
    await drop()
    answer = await client.post(f"{EVENTS}/redeliver", json={"since": "2020-01-01"}, headers=merchant.key)
    assert answer.json()["queued"] == 2
    assert await urls() == [own, new]
    await drop()
    for event in (await ask()).json()["events"]:
        answer = await client.post(f"{EVENTS}/{event['eventId']}/redeliver", headers=merchant.key)
        assert answer.status_code == 200, answer.text
    assert await urls() == [own, new]
    await drop()
    assert (await client.patch(project, json={"paymentWebhookUrl": None}, headers=merchant.bearer)).status_code == 200
    answer = await client.post(f"{EVENTS}/redeliver", json={"since": "2020-01-01"}, headers=merchant.key)
    assert answer.json()["queued"] == 1
    nowhere = (await ask()).json()["events"][1]["eventId"]
    refused(await client.post(f"{EVENTS}/{nowhere}/redeliver", headers=merchant.key), 409, "NO_WEBHOOK_TARGET")


async def test_events_belong_to_one_project_and_are_seen_by_its_merchant_too(client, merchant, ask, tell):
    await tell(1)
    (event,) = (await ask()).json()["events"]
    here = f"/api/dashboard/projects/{merchant.project_id}/events"
    assert (await client.get(here, headers=merchant.bearer)).json()["events"] == [event]
    mine = merchant.key
    await merchant.add_project()
    assert (await ask()).json()["total"] == 0
    refused(await client.get(f"{EVENTS}/{event['eventId']}", headers=merchant.key), 404, "EVENT_NOT_FOUND")
    refused(await client.post(f"{EVENTS}/{event['eventId']}/redeliver", headers=merchant.key), 404, "EVENT_NOT_FOUND")
    assert (await client.get(EVENTS, headers=mine)).json()["total"] == 1
