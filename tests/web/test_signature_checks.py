"""Whether a merchant's server checks signatures: what it is sent, what its answers show, and how long that holds."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
import stripe
from aiohttp import web

from cambist.domain.webhooks import SignatureCheck, judge_signature_check
from tests.support.web import Merchant, refused
from tests.support.webhooks import receiver


@pytest.fixture
async def shop():
    async with receiver() as shop:
        yield shop


@pytest.fixture
async def merchant(stepped_up_merchant, shop):
    merchant = stepped_up_merchant
    await merchant.ask("PATCH", path_of(merchant), {"paymentWebhookUrl": shop.url})
    return merchant


def path_of(merchant):
    return f"/api/merchant/projects/{merchant.project_id}"


def checking(shop, secret, forged=401):
    """Let the server check as the page for merchants says, by this secret."""

    async def answer(request):
        del request
        try:
            shop.received[-1].verify(secret)
        except stripe.SignatureVerificationError:
            return web.Response(status=forged, text="who are you?")
        return web.Response(status=204)

    shop.answer = answer


async def check(merchant, path="check-webhook"):
    return await merchant.ask("POST", f"{path_of(merchant)}/{path}")


async def kept(merchant):
    return (await merchant.ask("GET", path_of(merchant)))["project"]["signatureCheck"]


@pytest.mark.parametrize(
    "genuine, forged, result",
    [
        (200, 401, "verified"),
        (204, 400, "verified"),
        (299, 499, "verified"),
        (200, 200, "unchecked"),
        (200, 204, "unchecked"),
        (401, 401, "refused"),
        (404, 200, "refused"),
        (302, 401, "refused"),
        (500, None, "refused"),
        (None, None, "unreachable"),
        (None, 200, "unreachable"),
        (200, 500, "unclear"),
        (200, 302, "unclear"),
        (200, None, "unclear"),
        (200, 429, "unclear"),
        (200, 408, "unclear"),
        (200, 425, "unclear"),
    ],
)
def test_both_answers_together_say_what_a_server_does(genuine, forged, result):
    assert judge_signature_check(genuine, forged) is SignatureCheck(result)


async def test_a_server_that_checks_is_verified_and_that_is_kept_with_the_project(client, merchant, shop):
    assert await kept(merchant) is None
    checking(shop, merchant.webhook_secret)
    found = await check(merchant)
    assert (found["result"], found["kept"]) == ("verified", True)
    assert (found["genuine"]["statusCode"], found["genuine"]["error"]) == (204, None)
    assert (found["forged"]["statusCode"], found["forged"]["responseBody"]) == (401, "who are you?")
    assert await kept(merchant) == {"result": "verified", "checkedAt": found["checkedAt"]}
    (listed,) = (await merchant.ask("GET", "/api/merchant/projects"))["projects"]
    assert listed["signatureCheck"]["result"] == "verified"


async def test_what_is_forged_looks_like_the_genuine_one_and_like_nothing_that_happened(merchant, shop):
    await check(merchant)
    by_signature = {json.loads(one.body)["data"]["signature"]: one for one in shop.received}
    assert sorted(by_signature) == ["forged", "genuine"]
    genuine, forged = by_signature["genuine"], by_signature["forged"]
    genuine.verify(merchant.webhook_secret)
    with pytest.raises(stripe.SignatureVerificationError):
        forged.verify(merchant.webhook_secret)
    assert len(forged.headers["X-Webhook-Signature"]) == len(genuine.headers["X-Webhook-Signature"]) == 64
    assert set(forged.headers) == set(genuine.headers)
    for one in (genuine, forged):
        body = json.loads(one.body)
        assert (one.headers["X-Webhook-Event"], one.headers["X-Webhook-Test"]) == ("webhook.test", "true")
        assert (body["event"], body["webhookId"]) == ("webhook.test", merchant.project_id)
        assert (body["data"]["resource"], body["data"]["isTest"]) == ("webhook", True)
        assert not [name for name in body["data"] if name.endswith("Id") or name == "status"]
    assert "on purpose" in json.loads(forged.body)["data"]["message"]
    assert genuine.headers["X-Webhook-Id"] != forged.headers["X-Webhook-Id"]


async def test_a_server_that_takes_everything_or_nothing_is_told_so(merchant, shop):
    assert (await check(merchant))["result"] == "unchecked"
    shop.statuses = [403, 403]
    assert (await check(merchant))["result"] == "refused"
    checking(shop, merchant.webhook_secret, forged=500)
    assert (await check(merchant))["result"] == "unclear"
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{nobody.getsockname()[1]}/hook"
        await merchant.ask("PATCH", path_of(merchant), {"paymentWebhookUrl": away})
        found = await check(merchant)
    assert (found["result"], found["genuine"]["statusCode"]) == ("unreachable", None)
    assert found["genuine"]["error"].startswith("cannot connect")
    assert (await kept(merchant))["result"] == "unreachable"


async def test_an_endpoint_is_checked_by_its_own_secret_also_while_it_is_paused_and_overlaps(merchant, shop):
    path = f"{path_of(merchant)}/webhook-endpoints"
    made = await merchant.ask("POST", path, {"url": shop.url, "paused": True})
    one = f"webhook-endpoints/{made['endpoint']['endpointId']}"
    assert made["endpoint"]["signatureCheck"] is None
    checking(shop, made["webhookSecret"])
    assert (await check(merchant, f"{one}/check"))["result"] == "verified"
    endpoint = (await merchant.ask("GET", f"{path_of(merchant)}/{one}"))["endpoint"]
    assert endpoint["signatureCheck"]["result"] == "verified"
    assert await kept(merchant) is None
    rotated = await merchant.ask("POST", f"{path_of(merchant)}/{one}/rotate-secret", {"overlapMinutes": 60})
    assert (await merchant.ask("GET", f"{path_of(merchant)}/{one}"))["endpoint"]["signatureCheck"] is None
    # While it overlaps, the secret before is good for deliveries, but who knows no other is not ready for its end.
    shop.received.clear()
    checking(shop, made["webhookSecret"])
    assert (await check(merchant, f"{one}/check"))["result"] == "refused"
    checking(shop, rotated["webhookSecret"])
    assert (await check(merchant, f"{one}/check"))["result"] == "verified"
    assert len(shop.received) == 4
    assert not [request for request in shop.received if "X-Webhook-Signature-Previous" in request.headers]
    await merchant.ask("PATCH", f"{path_of(merchant)}/{one}", {"url": shop.url, "events": ["payment.paid"]})
    assert (await merchant.ask("GET", f"{path_of(merchant)}/{one}"))["endpoint"]["signatureCheck"] is not None
    await merchant.ask("PATCH", f"{path_of(merchant)}/{one}", {"url": f"{shop.url}/2"})
    assert (await merchant.ask("GET", f"{path_of(merchant)}/{one}"))["endpoint"]["signatureCheck"] is None


async def test_it_holds_until_url_or_secret_are_others(merchant, shop):
    project = path_of(merchant)
    for change in (
        lambda: merchant.ask("PATCH", project, {"paymentWebhookUrl": f"{shop.url}/2"}),
        lambda: merchant.ask("PATCH", project, {"paymentWebhookUrl": None}),
        lambda: merchant.ask("POST", f"{project}/rotate-webhook-secret"),
        lambda: merchant.ask("PATCH", project, {"webhookSigning": False}),
    ):
        await merchant.ask("PATCH", project, {"paymentWebhookUrl": shop.url, "webhookSigning": True})
        await check(merchant)
        await merchant.ask("PATCH", project, {"name": "Another", "paymentWebhookUrl": shop.url, "webhookSigning": True})
        assert await kept(merchant) is not None
        await change()
        assert await kept(merchant) is None


async def test_what_changed_while_it_was_asked_is_not_what_was_checked(merchant, shop):
    begun, changed = asyncio.Event(), asyncio.Event()

    async def answer(request):
        del request
        begun.set()
        await changed.wait()
        return web.Response(status=200)

    shop.answer = answer
    checked = asyncio.create_task(check(merchant))
    await begun.wait()
    await merchant.ask("POST", f"{path_of(merchant)}/rotate-webhook-secret")
    changed.set()
    found = await checked
    assert (found["result"], found["kept"]) == ("unchecked", False)
    assert await kept(merchant) is None


async def test_both_are_in_the_log_are_no_events_and_are_never_sent_again(client, merchant, shop):
    checking(shop, merchant.webhook_secret)
    found = await check(merchant)
    log = f"/api/dashboard/projects/{merchant.project_id}/deliveries"
    listed = await merchant.ask("GET", f"{log}?status=tested&event=webhook.test")
    by_id = {one["deliveryId"]: one for one in listed["deliveries"]}
    assert set(by_id) == {found["genuine"]["deliveryId"], found["forged"]["deliveryId"]}
    forged = by_id[found["forged"]["deliveryId"]]
    assert (forged["payload"]["data"]["signature"], forged["url"], forged["eventId"]) == ("forged", shop.url, None)
    assert [one["statusCode"] for one in forged["attempts"]] == [401]
    again = f"{log}/{forged['deliveryId']}/redeliver"
    refused(await client.post(again, headers=merchant.bearer), 409, "DELIVERY_WAS_TEST")
    events = f"/api/dashboard/projects/{merchant.project_id}/events"
    assert (await merchant.ask("GET", events))["events"] == []
    since = {"since": "2020-01-01T00:00:00Z"}
    assert (await merchant.ask("POST", f"{events}/redeliver", since))["queued"] == 0
    attention = (await merchant.ask("GET", "/api/dashboard/overview?mode=sandbox"))["attention"]
    assert "WEBHOOKS_FAILED" not in {one["code"] for one in attention}
    assert len(shop.received) == 2


async def test_it_is_written_down_and_bounded(client, merchant, shop):
    for _ in range(10):
        await check(merchant)
    answer = await client.post(f"{path_of(merchant)}/check-webhook", headers=merchant.bearer)
    refused(answer, 429, "RATE_LIMITED")
    assert len(shop.received) == 20
    entries = (await merchant.ask("GET", "/api/dashboard/audit?action=webhook_signature.checked"))["entries"]
    assert {(one["subject"], one["details"]["result"]) for one in entries} == {(merchant.project_id, "unchecked")}


async def test_there_is_nothing_to_check_without_url_or_secret_or_of_others(client, merchant, shop):
    project = path_of(merchant)
    unknown = f"{project}/webhook-endpoints/whe_1/check"
    refused(await client.post(unknown, headers=merchant.bearer), 404, "ENDPOINT_NOT_FOUND")
    await merchant.ask("PATCH", project, {"webhookSigning": False})
    refused(await client.post(f"{project}/check-webhook", headers=merchant.bearer), 409, "WEBHOOKS_NOT_SIGNED")
    await merchant.ask("PATCH", project, {"paymentWebhookUrl": None})
    refused(await client.post(f"{project}/check-webhook", headers=merchant.bearer), 400, "NO_WEBHOOK_TARGET")
    stranger = await Merchant(client).open("eve@shop.example")
    refused(await client.post(f"{project}/check-webhook", headers=stranger.bearer), 403, "PROJECT_NOT_OWNED")
    assert shop.received == []
