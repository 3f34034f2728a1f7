"""Live mode is the operator's to grant: without it there are sandbox projects only."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from tests.support.payout_env import person
from tests.support.web import ADMIN_KEY, Merchant, memory_gateway, refused, web_client, web_settings

ADMIN = {"X-Admin-Key": ADMIN_KEY}
APPROVED = "/api/dashboard/approved-addresses"
PROJECTS = "/api/merchant/projects"
LIVE = {"name": "Shop", "mode": "live"}
PAY = {"chain": "memory", "token": "USDX", "toAddress": person("thief"), "amount": "1"}


@pytest.fixture
async def client(database_url, redis_url, clock, ids):
    """Serve a gateway whose operator grants live mode by hand."""
    settings = web_settings(database_url, redis_url)
    settings = replace(settings, auth=replace(settings.auth, grant_live=False))
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        yield client


@pytest.fixture
async def merchant(client):
    merchant = Merchant(client)
    await merchant.register("ada@shop.example")
    return merchant


async def grant(merchant, **body):
    path = f"/api/admin/merchants/{merchant.merchant_id}"
    return await merchant.client.put(path, json=body, headers=ADMIN)


async def test_who_registers_has_the_sandbox_until_the_operator_grants_live_mode(merchant, client):
    refused(await client.post(PROJECTS, json=LIVE, headers=merchant.bearer), 403, "LIVE_NOT_GRANTED")
    assert (await merchant.ask("GET", PROJECTS))["projects"] == []
    await merchant.add_project(mode="sandbox")
    with capture_logs() as logs:
        answer = await grant(merchant, live=True)
    assert answer.json() == {
        "success": True,
        "merchantId": merchant.merchant_id,
        "email": "ada@shop.example",
        "name": "Ada's Shop",
        "live": True,
    }
    assert ("live_mode_granted", merchant.merchant_id) in {(log["event"], log.get("merchant_id")) for log in logs}
    await merchant.add_project(mode="live")
    assert (await client.get("/api/merchant/wallet", headers=merchant.key)).json()["mode"] == "live"


async def test_whom_the_operator_makes_has_live_mode_only_where_that_was_said(client):
    for email, said, granted in (("eve@shop.example", {}, 403), ("mia@shop.example", {"live": True}, 201)):
        made = await client.post("/api/admin/merchants", json={"email": email, "name": "New"} | said, headers=ADMIN)
        token = made.json()["link"].partition("#")[2]
        chosen = {"token": token, "password": "a password that was chosen"}
        assert (await client.post("/api/auth/password-reset/confirm", json=chosen)).status_code == 200
        login = await client.post("/api/auth/login", json={"email": email, "password": chosen["password"]})
        client.cookies.clear()
        bearer = {"Authorization": f"Bearer {login.json()['accessToken']}"}
        assert (await client.post("/api/merchant/projects", json=LIVE, headers=bearer)).status_code == granted


async def test_who_was_not_granted_it_approves_addresses_of_the_sandbox_alone(merchant, client, clock):
    await merchant.add_project(mode="sandbox")
    await merchant.step_up()
    clock.advance(30)
    code = {"totpCode": merchant.phone.next_code()}
    safe = {"chain": "memory", "address": person("safe")} | code
    for mode in ({}, {"mode": "live"}):
        answer = await client.post(APPROVED, json=safe | mode, headers=merchant.bearer)
        refused(answer, 403, "LIVE_NOT_GRANTED")
    answer = await client.post(APPROVED, json=safe | {"mode": "sandbox"}, headers=merchant.bearer)
    assert answer.status_code == 201, "the code was not spent on what was refused"
    await grant(merchant, live=True)
    live = safe | {"mode": "live", "totpCode": merchant.phone.next_code()}
    assert (await client.post(APPROVED, json=live, headers=merchant.bearer)).status_code == 201


async def test_taken_back_it_leaves_live_projects_to_be_read_and_withdrawn_from(merchant, client):
    await grant(merchant, live=True)
    await merchant.add_project(mode="live")
    assert (await grant(merchant, live=False)).json()["live"] is False
    refused(await client.post(PROJECTS, json=LIVE, headers=merchant.bearer), 403, "LIVE_NOT_GRANTED")
    assert (await client.get("/api/merchant/wallet", headers=merchant.key)).status_code == 200
    order = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}
    refused(await client.post("/api/merchant/wallet/payout", json=PAY, headers=merchant.key), 403, "LIVE_NOT_GRANTED")
    refused(await client.post("/api/payment", json=order, headers=merchant.key), 403, "LIVE_NOT_GRANTED")
    await merchant.step_up()
    dashboard = f"/api/dashboard/projects/{merchant.project_id}"
    for path, body in (("/wallet/payout", PAY), ("/payments", order)):
        refused(await client.post(dashboard + path, json=body, headers=merchant.bearer), 403, "LIVE_NOT_GRANTED")
    assert (await client.get(f"{dashboard}/wallet", headers=merchant.bearer)).status_code == 200
    taken = PAY | {"projectId": merchant.project_id, "totpCode": merchant.phone.next_code()}
    answer = await client.post("/api/dashboard/withdrawals", json=taken, headers=merchant.bearer)
    refused(answer, 403, "INSUFFICIENT_BALANCE")
    await grant(merchant, live=True)
    assert (await client.post("/api/payment", json=order, headers=merchant.key)).status_code == 201


async def test_only_the_operator_grants_it_to_merchants_that_exist(merchant, client):
    path = f"/api/admin/merchants/{merchant.merchant_id}"
    for headers in ({}, {"X-Admin-Key": "wrong"}, merchant.bearer):
        code = "INVALID_TOKEN" if headers == merchant.bearer else "ADMIN_KEY_INVALID"
        refused(await client.put(path, json={"live": True}, headers=headers), 401, code)
    refused(
        await client.put("/api/admin/merchants/mer_x", json={"live": True}, headers=ADMIN), 404, "MERCHANT_NOT_FOUND"
    )
    refused(await grant(merchant), 400, "VALIDATION_ERROR", "live")
    refused(await grant(merchant, live="yes"), 400, "VALIDATION_ERROR", "live")
    refused(await client.post(PROJECTS, json=LIVE, headers=merchant.bearer), 403, "LIVE_NOT_GRANTED")


@pytest.mark.parametrize(
    "environment, said, granted",
    [
        ("development", None, True),
        ("production", None, False),
        ("development", False, False),
        ("production", True, True),
    ],
)
def test_development_grants_it_by_itself_and_production_does_not_unless_said(
    database_url, redis_url, environment, said, granted
):
    settings = web_settings(database_url, redis_url)
    settings = replace(settings, environment=environment, auth=replace(settings.auth, grant_live=said))
    assert settings.grants_live is granted
