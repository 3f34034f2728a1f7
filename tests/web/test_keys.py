"""What an API key may do: its scopes, how long it works, from where, and when it was used last."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import get_args

import pytest

from cambist.services.identity.api_keys import NOTE_USE_AFTER, Scope
from tests.support.web import refused, web_client

WALLET = "/api/merchant/wallet"
HERE = "192.0.2.7"


@pytest.fixture
def merchant(sandbox_merchant):
    return sandbox_merchant


def keys_of(merchant):
    return f"/api/merchant/projects/{merchant.project_id}/api-keys"


async def listed(merchant):
    found = (await merchant.ask("GET", keys_of(merchant)))["keys"]
    return next(key for key in found if key["keyId"] == merchant.key_id)


async def issue(merchant, **body):
    return await merchant.client.post(keys_of(merchant), json=body, headers=merchant.bearer)


async def test_a_key_that_nobody_narrows_may_do_everything(merchant):
    key = await listed(merchant)
    assert key["scopes"] == list(get_args(Scope))
    assert (key["allowedIps"], key["expiresAt"]) == ([], None)
    without_body = await merchant.client.post(keys_of(merchant), headers=merchant.bearer)
    assert without_body.json()["key"]["scopes"] == list(get_args(Scope))


async def test_a_key_does_what_its_scopes_say_and_nothing_else(merchant, client):
    await merchant.add_key(scopes=["payments", "read"])
    assert (await listed(merchant))["scopes"] == ["read", "payments"]
    assert (await client.get(WALLET, headers=merchant.key)).status_code == 200
    order = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}
    assert (await client.post("/api/payment", json=order, headers=merchant.key)).status_code == 201
    body = refused(await client.post(f"{WALLET}/payout", json={}, headers=merchant.key), 403, "SCOPE_MISSING")
    assert "payouts" in body["error"]
    await merchant.add_key(scopes=["payouts"])
    refused(await client.get(WALLET, headers=merchant.key), 403, "SCOPE_MISSING")
    refused(await client.post("/api/payment", json=order, headers=merchant.key), 403, "SCOPE_MISSING")


@pytest.mark.slow
@pytest.mark.parametrize(
    "body, field",
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": ["everything"]}, "scopes[0]"),
        ({"scopes": "read"}, "scopes"),
        ({"scopes": None}, "scopes"),
        ({"scopes": ["read"] * 21}, "scopes"),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt"),
        ({"expiresAt": "2026-01-01T12:00:00Z"}, "expiresAt"),
        ({"expiresAt": "2056-01-01T00:00:00Z"}, "expiresAt"),
        ({"expiresAt": "2026-06-01T00:00:00"}, "expiresAt"),
        ({"expiresAt": "soon"}, "expiresAt"),
        ({"allowedIps": ["10.0.0.1/8"]}, "allowedIps"),
        ({"allowedIps": ["shop.example"]}, "allowedIps"),
        ({"allowedIps": [""]}, "allowedIps"),
        ({"allowedIps": ["fe80::1%eth0"]}, "allowedIps"),
        ({"allowedIps": ["10.0.0.1"] * 51}, "allowedIps"),
        ({"allowedIps": "10.0.0.1"}, "allowedIps"),
        ({"name": " "}, "name"),
        ({"ips": []}, "ips"),
    ],
)
async def test_a_key_that_cannot_be_meant_is_refused_by_field(merchant, body, field):
    before = await merchant.ask("GET", keys_of(merchant))
    refused(await issue(merchant, **body), 400, "VALIDATION_ERROR", field)
    assert await merchant.ask("GET", keys_of(merchant)) == before


async def test_a_key_expires_to_the_second_although_it_was_used_a_moment_before(merchant, client, clock):
    expires_at = clock.now() + timedelta(minutes=1)
    await merchant.add_key(expiresAt=expires_at.isoformat())
    assert datetime.fromisoformat((await listed(merchant))["expiresAt"]) == expires_at
    clock.advance(59.5)
    assert (await client.get(WALLET, headers=merchant.key)).status_code == 200
    clock.advance(0.5)
    late = await client.get(WALLET, headers=merchant.key)
    refused(late, 401, "API_KEY_EXPIRED")
    assert late.headers["WWW-Authenticate"] == "ApiKey"


@pytest.mark.slow
@pytest.mark.parametrize(
    "allowed, ip, let_in",
    [
        (["192.0.2.7"], HERE, True),
        (["192.0.2.0/24", "203.0.113.5"], HERE, True),
        (["192.0.2.8"], HERE, False),
        (["2001:db8::/32"], HERE, False),
        (["2001:db8::5"], "2001:db8::5", True),
        (["2001:db8::5"], "2001:db8::6", False),
        (["192.0.2.7"], "::ffff:192.0.2.7", True),
        (["::ffff:192.0.2.7"], HERE, True),
        (["::ffff:192.0.2.0/120"], HERE, True),
        (["::ffff:192.0.2.8"], HERE, False),
        (["192.0.2.7"], "", False),
        (["192.0.2.7"], "unix", False),
    ],
)
async def test_a_key_works_from_the_addresses_that_it_was_made_for(merchant, gateway, allowed, ip, let_in):
    await merchant.add_key(allowedIps=allowed)
    async with web_client(gateway, ip) as client:
        for _ in range(2):  # looked up, and remembered
            answer = await client.get(WALLET, headers=merchant.key)
            if let_in:
                assert answer.status_code == 200, answer.text
            else:
                refused(answer, 403, "IP_NOT_ALLOWED")
    assert ((await listed(merchant))["lastUsedAt"] is not None) is let_in


async def test_when_and_where_a_key_was_used_last_is_noted_about_once_a_minute(merchant, client, gateway, clock):
    key = await listed(merchant)
    assert (key["lastUsedAt"], key["lastUsedIp"]) == (None, None)
    first = clock.now()
    await client.get(WALLET, headers=merchant.key)
    key = await listed(merchant)
    assert (datetime.fromisoformat(key["lastUsedAt"]), key["lastUsedIp"]) == (first, HERE)
    for _ in range(3):
        clock.advance(NOTE_USE_AFTER.total_seconds() / 4)
        await client.get(WALLET, headers=merchant.key)
    assert datetime.fromisoformat((await listed(merchant))["lastUsedAt"]) == first
    clock.advance(NOTE_USE_AFTER.total_seconds() / 4)
    async with web_client(gateway, "2001:db8::9") as elsewhere:
        await elsewhere.get(WALLET, headers=merchant.key)
    key = await listed(merchant)
    assert (datetime.fromisoformat(key["lastUsedAt"]), key["lastUsedIp"]) == (clock.now(), "2001:db8::9")


async def test_a_busy_key_is_written_once(merchant, client, gateway, clock):
    async def written():
        async with gateway.db.autocommit() as conn:
            return (await conn.exec_driver_sql("SELECT xmin::text FROM api_keys")).scalars().all()

    before = await written()
    for _ in range(20):
        assert (await client.get(WALLET, headers=merchant.key)).status_code == 200
    after = await written()
    assert after != before
    clock.advance(2)  # longer than a worker remembers a key
    for _ in range(20):
        await client.get(WALLET, headers=merchant.key)
    assert await written() == after
