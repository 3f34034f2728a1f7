"""Projects, their keys and their secrets: whose they are, what can be changed, what is shown once."""

from __future__ import annotations

import asyncio
import re

import pytest
from msgspec.structs import replace

from cambist.services.identity.api_keys import KEYS_MAX
from cambist.services.identity.projects import PROJECTS_MAX
from tests.support.payout_env import person
from tests.support.web import Merchant, memory_gateway, refused, web_client, web_settings

PROJECTS = "/api/merchant/projects"
WALLET = "/api/merchant/wallet"


@pytest.fixture
def merchant(stepped_up_merchant):
    """Give a merchant whose session may change what is live."""
    return stepped_up_merchant


def here(merchant):
    return f"{PROJECTS}/{merchant.project_id}"


async def test_a_project_starts_with_sound_settings_and_shows_its_secret_once(merchant, client):
    assert len(bytes.fromhex(merchant.webhook_secret)) == 32
    answer = (await client.get(here(merchant), headers=merchant.bearer)).json()
    assert "webhookSecret" not in answer
    shown = answer["project"]
    assert shown.pop("createdAt").startswith("2026-01-01T12:00:00")
    assert shown.pop("webhookSecretRotatedAt").startswith("2026-01-01T12:00:00")
    assert shown == {
        "projectId": merchant.project_id,
        "name": "Shop",
        "mode": "live",
        "paymentWebhookUrl": None,
        "webhookSigning": True,
        "previousSecretUntil": None,
        "signatureCheck": None,
        "underpaymentTolerancePercent": 0.0,
        "graceHours": 24,
        "extendedEvents": True,
        "sandboxAutoMine": False,
        "isActive": True,
    }


@pytest.mark.parametrize(
    "change, field",
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"mode": "test"}, "mode"),
        ({"mode": None}, "mode"),
        ({"paymentWebhookUrl": "ftp://shop.example"}, "paymentWebhookUrl"),
        ({"paymentWebhookUrl": "https://user:word@shop.example"}, "paymentWebhookUrl"),
        ({"paymentWebhookUrl": 5}, "paymentWebhookUrl"),
        ({"isActive": True}, "isActive"),
    ],
)
async def test_a_project_that_cannot_be_meant_is_refused_by_field(merchant, client, change, field):
    body = {"name": "Shop", "mode": "live"} | change
    refused(await client.post(PROJECTS, json=body, headers=merchant.bearer), 400, "VALIDATION_ERROR", field)


async def test_in_production_no_webhook_is_set_up_over_http(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url)
    auth = replace(settings.auth, registration=True, grant_live=True)
    settings = replace(settings, environment="production", auth=auth)
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        merchant = await Merchant(client).open()
        url = "http://shop.example/hook"
        new = {"name": "Shop", "mode": "sandbox", "paymentWebhookUrl": url}
        made = await client.post("/api/merchant/projects", json=new, headers=merchant.bearer)
        refused(made, 400, "VALIDATION_ERROR", "paymentWebhookUrl")
        path = f"/api/merchant/projects/{merchant.project_id}"
        await merchant.step_up()
        changed = await client.patch(path, json={"paymentWebhookUrl": url}, headers=merchant.bearer)
        refused(changed, 400, "VALIDATION_ERROR", "paymentWebhookUrl")
        payment = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1", "webhookUrl": url}
        paid = await client.post("/api/payment", json=payment, headers=merchant.key)
        refused(paid, 400, "VALIDATION_ERROR", "webhookUrl")
        new["paymentWebhookUrl"] = "https://shop.example/hook"
        made = await client.post("/api/merchant/projects", json=new, headers=merchant.bearer)
        assert made.status_code == 201, made.text


async def test_what_is_sent_changes_and_the_rest_stays(merchant, client):
    changes = {
        "name": "Shop two",
        "paymentWebhookUrl": "https://shop.example/hook",
        "underpaymentTolerancePercent": 0.5,
        "graceHours": 48,
        "extendedEvents": False,
    }
    answer = await client.patch(here(merchant), json=changes, headers=merchant.bearer)
    assert answer.status_code == 200, answer.text
    assert changes.items() <= answer.json()["project"].items()
    answer = await client.patch(here(merchant), json={"paymentWebhookUrl": None}, headers=merchant.bearer)
    assert (changes | {"paymentWebhookUrl": None}).items() <= answer.json()["project"].items()
    assert (await client.patch(here(merchant), json={}, headers=merchant.bearer)).json() == answer.json()


@pytest.mark.parametrize(
    "body, field",
    [
        ({"underpaymentTolerancePercent": 10.01}, "underpaymentTolerancePercent"),
        ({"underpaymentTolerancePercent": -1}, "underpaymentTolerancePercent"),
        ({"underpaymentTolerancePercent": 0.001}, "underpaymentTolerancePercent"),
        ({"underpaymentTolerancePercent": "NaN"}, "underpaymentTolerancePercent"),
        ({"underpaymentTolerancePercent": "1e-999999999"}, "underpaymentTolerancePercent"),
        ({"underpaymentTolerancePercent": "1e999999999"}, "underpaymentTolerancePercent"),
        ({"graceHours": 721}, "graceHours"),
        ({"graceHours": 1.5}, "graceHours"),
        ({"graceHours": 10**30}, "graceHours"),
        ({"sandboxAutoMine": True}, "sandboxAutoMine"),
        ({"mode": "sandbox"}, "mode"),
        ({"name": "\n"}, "name"),
        ({"webhookSigning": "no"}, "webhookSigning"),
        ({"extendedEvents": None}, "extendedEvents"),
    ],
)
async def test_a_change_that_cannot_be_meant_is_refused_and_nothing_changes(merchant, client, body, field):
    before = (await client.get(here(merchant), headers=merchant.bearer)).json()
    body = body | ({} if "name" in body else {"name": "Lost"})
    refused(await client.patch(here(merchant), json=body, headers=merchant.bearer), 400, "VALIDATION_ERROR", field)
    assert (await client.get(here(merchant), headers=merchant.bearer)).json() == before


async def test_a_rotated_secret_replaces_the_old_one(merchant, client, gateway):
    answer = (await client.post(f"{here(merchant)}/rotate-webhook-secret", headers=merchant.bearer)).json()
    assert answer.keys() == {"success", "message", "webhookSecret", "rotatedAt"}
    assert answer["webhookSecret"] != merchant.webhook_secret
    assert await _stored_secret(merchant, client, gateway) == answer["webhookSecret"]


async def test_a_lost_answer_to_a_rotation_costs_no_overlap(merchant, client, gateway, clock):
    """What the shop still verifies with signs beside the one that is told at last, not one that nobody saw."""
    endpoints = f"{here(merchant)}/webhook-endpoints"
    made = await merchant.ask("POST", endpoints, {"url": "https://books.example/hooks"})
    endpoint = f"{endpoints}/{made['endpoint']['endpointId']}/rotate-secret"
    for path, table, column in (
        (f"{here(merchant)}/rotate-webhook-secret", "projects", "webhook_secret_encrypted"),
        (endpoint, "webhook_endpoints", "secret_encrypted"),
    ):

        async def sealed(column, table=table):
            async with gateway.db.autocommit() as conn:
                found = await conn.exec_driver_sql(f"SELECT {column} FROM {table}")  # noqa: S608  constants
                return found.scalar_one()

        known, body = await sealed(column), {"overlapMinutes": 60, "idempotencyKey": "lost"}
        first = await merchant.ask("POST", path, body)
        clock.advance(60)
        assert await merchant.ask("POST", path, body) == first
        assert await sealed("previous_secret_encrypted") == known
        refused(await client.post(path, json={"idempotencyKey": ""}, headers=merchant.bearer), 400, "VALIDATION_ERROR")
        other = await merchant.ask("POST", path, body | {"idempotencyKey": "another"})
        assert other["webhookSecret"] != first["webhookSecret"]
        # Who replaces a secret may do it because somebody knows it: no key brings it back.
        clock.advance(60)
        later = await merchant.ask("POST", path, body)
        assert later["webhookSecret"] not in {first["webhookSecret"], other["webhookSecret"]}


async def test_a_rotation_of_nothing_overlaps_with_nothing_however_often_it_is_asked_for(merchant, client):
    await client.patch(here(merchant), json={"webhookSigning": False}, headers=merchant.bearer)
    path, body = f"{here(merchant)}/rotate-webhook-secret", {"overlapMinutes": 60, "idempotencyKey": "lost"}
    first = await merchant.ask("POST", path, body)
    assert "previousSecretUntil" not in first
    assert await merchant.ask("POST", path, body) == first


async def test_signing_can_be_switched_off_and_starts_again_with_a_new_secret(merchant, client, gateway):
    async def switch(on):
        return (await client.patch(here(merchant), json={"webhookSigning": on}, headers=merchant.bearer)).json()

    assert "webhookSecret" not in await switch(True)
    off = await switch(False)
    assert off["project"]["webhookSigning"] is False
    assert await _stored_secret(merchant, client, gateway) is None
    new = (await switch(True))["webhookSecret"]
    assert new != merchant.webhook_secret
    assert await _stored_secret(merchant, client, gateway) == new


async def _stored_secret(merchant, client, gateway):
    web = client._transport.app.state.web
    async with gateway.db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT webhook_secret_encrypted FROM projects WHERE project_id = $1", (merchant.project_id,)
        )
        return web.secrets.reveal(merchant.project_id, found.scalar_one())


async def test_a_foreign_project_is_forbidden_and_an_unknown_one_not_found(merchant, client):
    other = await Merchant(client).open("bob@shop.example")
    routes = [
        ("GET", here(merchant)),
        ("PATCH", here(merchant)),
        ("POST", f"{here(merchant)}/rotate-webhook-secret"),
        ("POST", f"{here(merchant)}/test-webhook"),
        ("GET", f"{here(merchant)}/api-keys"),
        ("POST", f"{here(merchant)}/api-keys"),
        ("DELETE", f"{here(merchant)}/api-keys/{merchant.key_id}"),
        ("GET", f"/api/dashboard/projects/{merchant.project_id}/deliveries"),
        ("POST", f"/api/dashboard/projects/{merchant.project_id}/deliveries/evt_1/redeliver"),
        ("GET", f"/api/dashboard/projects/{merchant.project_id}/wallet"),
        ("GET", f"/api/dashboard/projects/{merchant.project_id}/payments"),
    ]
    for method, path in routes:
        refused(await client.request(method, path, headers=other.bearer), 403, "PROJECT_NOT_OWNED")
        unknown = path.replace(merchant.project_id, "prj_unknown")
        refused(await client.request(method, unknown, headers=other.bearer), 404, "PROJECT_NOT_FOUND")


async def test_a_key_of_one_project_is_not_found_in_another_of_the_same_merchant(merchant, client):
    first = merchant.key_id
    await merchant.add_project()
    refused(
        await client.delete(f"{here(merchant)}/api-keys/{first}", headers=merchant.bearer), 404, "API_KEY_NOT_FOUND"
    )


async def test_a_key_acts_for_its_project_until_it_is_taken_back(merchant, client, clock):
    assert merchant.key["X-Api-Key"].startswith("ck_live_")
    assert (await client.get(WALLET, headers=merchant.key)).status_code == 200
    listed = (await client.get(f"{here(merchant)}/api-keys", headers=merchant.bearer)).json()["keys"]
    assert [key["keyId"] for key in listed] == [merchant.key_id]
    assert merchant.key["X-Api-Key"].startswith(listed[0]["hint"])
    assert len(listed[0]["hint"]) < 16

    path = f"{here(merchant)}/api-keys/{merchant.key_id}"
    assert (await client.delete(path, headers=merchant.bearer)).json() == {"success": True}
    refused(await client.get(WALLET, headers=merchant.key), 401, "API_KEY_INVALID")
    refused(await client.delete(path, headers=merchant.bearer), 404, "API_KEY_NOT_FOUND")
    assert (await client.get(f"{here(merchant)}/api-keys", headers=merchant.bearer)).json()["keys"] == []


async def test_a_key_that_another_worker_took_back_is_good_for_a_second_at_most(merchant, client, gateway, clock):
    assert (await client.get(WALLET, headers=merchant.key)).status_code == 200
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE api_keys SET revoked_at = now()")
    clock.advance(1)
    refused(await client.get(WALLET, headers=merchant.key), 401, "API_KEY_INVALID")


@pytest.mark.slow
async def test_a_project_that_is_switched_off_is_read_and_nothing_else_is_done_for_it(merchant, client):
    assert (await client.get(WALLET, headers=merchant.key)).status_code == 200
    await client.patch(here(merchant), json={"isActive": False}, headers=merchant.bearer)
    described = (await client.get("/api/openapi.json")).json()["paths"]
    written = 0
    for template, item in described.items():
        by_key = any("apiKey" in scheme for one in item.values() for scheme in one["security"])
        if not by_key and not template.startswith("/api/dashboard/projects/{projectId}/"):
            continue
        path = re.sub(r"\{\w+\}", "unknown", template.replace("{projectId}", merchant.project_id))
        for method in item:
            answer = await client.request(method, path, headers=merchant.key if by_key else merchant.bearer)
            if method == "get":
                assert answer.status_code in {200, 400, 404}, (method, path, answer.text)
            else:
                refused(answer, 403, "PROJECT_INACTIVE")
                written += 1
    assert written > 25
    await client.patch(here(merchant), json={"isActive": True}, headers=merchant.bearer)
    refused(await client.post("/api/payment/quote", json={}, headers=merchant.key), 400, "VALIDATION_ERROR")


async def test_a_project_that_is_switched_off_meanwhile_sends_no_money(merchant, client, gateway):
    """The key was known a moment ago: what sends money looks again."""
    assert (await client.get(WALLET, headers=merchant.key)).status_code == 200
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE projects SET is_active = false")
    to = {"toAddress": person()}
    pay = {"chain": "memory", "token": "USDX", "amount": "1", **to}
    deposit = "/api/merchant/resolutions/dep_x"
    for path, body in (
        ("/api/payment", {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}),
        ("/api/payment/pay_x/refund", to),
        (f"{deposit}/refund", to),
        (f"{deposit}/accept", {}),
        (f"{deposit}/release", {}),
        (f"{WALLET}/payout", pay),
        (f"{WALLET}/payout/batch", {"chain": "memory", "token": "USDX", "destinations": [{**to, "amount": "1"}]}),
    ):
        refused(await client.post(path, json=body, headers=merchant.key), 403, "PROJECT_INACTIVE")
    withdrawal = {**pay, "projectId": merchant.project_id, "totpCode": "123456"}
    answer = await client.post("/api/dashboard/withdrawals", json=withdrawal, headers=merchant.bearer)
    refused(answer, 403, "PROJECT_INACTIVE")


async def test_sandbox_keys_look_like_it(merchant, client):
    await merchant.add_project(mode="sandbox")
    assert merchant.key["X-Api-Key"].startswith("ck_test_")
    assert (await client.get(WALLET, headers=merchant.key)).json()["mode"] == "sandbox"


@pytest.mark.slow
async def test_limits_hold_when_everything_comes_at_once(merchant, client):
    async def add(path, body):
        return (await client.post(path, json=body, headers=merchant.bearer)).status_code

    keys = await asyncio.gather(*[add(f"{here(merchant)}/api-keys", {"name": "k"}) for _ in range(KEYS_MAX + 5)])
    assert sorted(keys).count(201) == KEYS_MAX - 1
    assert set(keys) == {201, 409}
    body = {"name": "p", "mode": "live"}
    projects = await asyncio.gather(*[add(PROJECTS, body) for _ in range(PROJECTS_MAX + 5)])
    assert projects.count(201) == PROJECTS_MAX - 1
    assert set(projects) == {201, 409}
