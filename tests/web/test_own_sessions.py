"""A merchant's own sessions: seen, ended, ended by themselves; and the cookie that keeps them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cambist.services.identity.sessions import SESSIONS_MAX
from tests.support.web import PASSWORD, Merchant, memory_gateway, refused, web_client, web_settings

SESSIONS = "/api/auth/sessions"
LOGIN = "/api/auth/login"
REFRESH = "/api/auth/refresh"


async def sign_in(merchant, client, **headers):
    body = {"email": merchant.email, "password": PASSWORD}
    response = await client.post(LOGIN, json=body, headers=headers)
    client.cookies.clear()
    assert response.status_code == 200, response.text
    return {"Authorization": f"Bearer {response.json()['accessToken']}"}


async def listed(client, bearer):
    response = await client.get(f"{SESSIONS}?limit=100", headers=bearer)
    assert response.status_code == 200, response.text
    return response.json()["sessions"]


async def test_a_merchant_sees_from_where_each_session_is_used(merchant, client, gateway, clock):
    clock.advance(1)
    async with web_client(gateway, "2001:db8::9") as elsewhere:
        other = await sign_in(merchant, elsewhere, **{"User-Agent": "Phone/1.0"})
    (second, first) = await listed(client, merchant.bearer)
    assert set(first) == {"sessionId", "ip", "userAgent", "createdAt", "lastUsedAt", "expiresAt", "current"}
    assert (first["ip"], first["current"], second["current"]) == ("192.0.2.7", True, False)
    assert (second["ip"], second["userAgent"]) == ("2001:db8::9", "Phone/1.0")
    clock.advance(60)
    assert [one["current"] for one in await listed(client, other)] == [True, False]
    assert (await listed(client, other))[0]["ip"] == "192.0.2.7"


@pytest.mark.parametrize("agent, kept", [("x" * 500, "x" * 200), ("Phone \u202e".encode(), None), (b"a\tb", None)])
async def test_what_a_browser_calls_itself_is_kept_where_it_is_short_plain_text(merchant, client, agent, kept):
    bearer = await sign_in(merchant, client, **{"User-Agent": agent})
    (mine,) = [one for one in await listed(client, bearer) if one["current"]]
    assert mine["userAgent"] == kept


async def test_one_session_is_ended_and_the_others_go_on(merchant, client):
    other, third = await sign_in(merchant, client), await sign_in(merchant, client)
    (wanted,) = [one["sessionId"] for one in await listed(client, other) if one["current"]]
    assert (await client.delete(f"{SESSIONS}/{wanted}", headers=merchant.bearer)).json() == {"success": True}
    refused(await client.get(SESSIONS, headers=other), 401, "SESSION_ENDED")
    refused(await client.delete(f"{SESSIONS}/{wanted}", headers=merchant.bearer), 404, "SESSION_NOT_FOUND")
    assert len(await listed(client, third)) == 2


async def test_all_others_are_ended_at_once(merchant, client):
    others = [await sign_in(merchant, client) for _ in range(3)]
    assert (await client.delete(SESSIONS, headers=merchant.bearer)).json() == {"success": True}
    for other in others:
        refused(await client.get(SESSIONS, headers=other), 401, "SESSION_ENDED")
    assert [one["current"] for one in await listed(client, merchant.bearer)] == [True]


async def test_nobody_ends_a_session_of_somebody_else(merchant, client):
    bob = Merchant(client)
    await bob.register("bob@shop.example")
    (mine,) = await listed(client, merchant.bearer)
    refused(await client.delete(f"{SESSIONS}/{mine['sessionId']}", headers=bob.bearer), 404, "SESSION_NOT_FOUND")
    assert (await client.delete(SESSIONS, headers=bob.bearer)).is_success
    assert len(await listed(client, merchant.bearer)) == 1


async def test_a_session_that_is_not_used_ends_and_one_that_is_used_goes_on(merchant, client, clock, gateway):
    idle_s = gateway.settings.auth.session_idle_s

    async def refresh():
        return await client.post(REFRESH, headers={"Cookie": f"cambist_refresh={merchant.refresh_token}"})

    for _ in range(4):
        clock.advance(idle_s - 61)
        merchant.take(await refresh())
        clock.advance(60)
        assert len(await listed(client, merchant.bearer)) == 1
    clock.advance(idle_s)
    refused(await refresh(), 401, "SESSION_ENDED")


async def test_an_access_token_does_not_outlive_its_idle_session(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url)
    settings = replace(settings, auth=replace(settings.auth, access_token_s=3_000, session_idle_s=600))
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        merchant = Merchant(client)
        await merchant.register("ada@shop.example")
        for _ in range(3):
            clock.advance(599)
            assert len(await listed(client, merchant.bearer)) == 1
        clock.advance(600)
        refused(await client.get(SESSIONS, headers=merchant.bearer), 401, "SESSION_ENDED")


@pytest.mark.slow
async def test_the_session_that_was_not_used_for_longest_makes_room_for_one_too_many(merchant, client, clock):
    for _ in range(SESSIONS_MAX):
        clock.advance(1)
        newest = await sign_in(merchant, client)
    refused(await client.get(SESSIONS, headers=merchant.bearer), 401, "SESSION_ENDED")
    assert len(await listed(client, newest)) == SESSIONS_MAX


@pytest.mark.slow
async def test_over_https_the_refresh_cookie_is_the_hosts_alone(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url)
    settings = replace(settings, web=replace(settings.web, public_url="HTTPS://gateway.example"))
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        body = {"email": "ada@shop.example", "password": PASSWORD, "name": "Ada"}
        registered = await client.post("/api/auth/register", json=body)
        client.cookies.clear()
        name, *attributes = registered.headers["set-cookie"].split("; ")
        assert name.startswith("__Host-cambist_refresh=")
        lower = {attribute.lower() for attribute in attributes}
        assert {"secure", "httponly", "samesite=strict", "path=/"} <= lower
        assert not any(attribute.startswith("domain") for attribute in lower)
        token = name.partition("=")[2]
        planted = await client.post(REFRESH, headers={"Cookie": f"cambist_refresh={token}"})
        refused(planted, 401, "SESSION_REQUIRED")
        following = await client.post(REFRESH, headers={"Cookie": f"__Host-cambist_refresh={token}"})
        assert following.status_code == 200, following.text
        client.cookies.clear()
        token = following.headers["set-cookie"].partition("=")[2].partition(";")[0]
        out = await client.post("/api/auth/logout", headers={"Cookie": f"__Host-cambist_refresh={token}"})
        assert out.headers["set-cookie"].startswith('__Host-cambist_refresh="";')
        refused(await client.post(REFRESH, headers={"Cookie": f"__Host-cambist_refresh={token}"}), 401, "SESSION_ENDED")
