"""Registering, signing in, staying signed in: what is let in, and every way of not being let in."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json

import jwt
import pytest
from sqlalchemy import text

from cambist.services.errors import UnauthenticatedError
from cambist.services.identity import credentials
from cambist.services.identity.members import MEMBERS
from cambist.services.identity.sessions import SAME_AGAIN_S
from cambist_web.access_tokens import ISSUER, MERCHANTS_AUDIENCE
from tests.support.web import (
    ADMIN_KEY,
    JWT_SECRET,
    PASSWORD,
    Merchant,
    memory_gateway,
    refused,
    web_client,
    web_settings,
)

HERE = "/api/merchant/projects"
REFRESH = "/api/auth/refresh"
SIGNING_KEY = hmac.digest(JWT_SECRET.encode(), b"access tokens", "sha256")


def cookie(token):
    return {"Cookie": f"cambist_refresh={token}"}


async def test_who_registers_is_signed_in(merchant, client):
    response = await client.get(HERE, headers=merchant.bearer)
    assert response.status_code == 200, response.text
    assert [project["name"] for project in response.json()["projects"]] == ["Shop"]


async def test_a_merchant_signs_in_again_in_whatever_case_the_address_is_typed(merchant, client):
    response = await client.post("/api/auth/login", json={"email": "ADA@shop.example ", "password": PASSWORD})
    assert response.status_code == 200, response.text
    assert response.json()["merchant"] == {
        "merchantId": merchant.merchant_id,
        "email": "ada@shop.example",
        "name": "Ada's Shop",
    }
    assert (await client.get(HERE, headers={"Authorization": f"Bearer {response.json()['accessToken']}"})).is_success


async def test_a_merchant_signs_in_again_however_the_keyboard_composes_letters(client):
    composed, decomposed = "ren\u00e9@shop.example", "rene\u0301@shop.example"
    await Merchant(client).register(composed)
    response = await client.post("/api/auth/login", json={"email": decomposed, "password": PASSWORD})
    assert response.status_code == 200, response.text


async def test_the_refresh_cookie_is_out_of_reach_for_scripts_and_other_sites(merchant, client):
    response = await client.post("/api/auth/login", json={"email": merchant.email, "password": PASSWORD})
    attributes = response.headers["set-cookie"].lower()
    assert "httponly" in attributes
    assert "samesite=strict" in attributes
    assert "path=/api/auth" in attributes
    assert response.json().keys() == {"success", "accessToken", "tokenType", "expiresIn", "merchant"}
    assert response.headers["cache-control"] == "no-store"


async def test_an_unknown_address_and_a_wrong_password_get_the_same_answer(merchant, client):
    wrong = await client.post("/api/auth/login", json={"email": merchant.email, "password": "wrong"})
    unknown = await client.post("/api/auth/login", json={"email": "nobody@shop.example", "password": PASSWORD})
    refused(wrong, 401, "INVALID_CREDENTIALS")
    assert wrong.content == unknown.content
    assert wrong.headers == unknown.headers


async def test_an_address_registers_once(merchant, client):
    body = {"email": merchant.email.upper(), "password": PASSWORD, "name": "Another"}
    refused(await client.post("/api/auth/register", json=body), 409, "EMAIL_TAKEN")


@pytest.mark.parametrize(
    "change, field",
    [
        ({"email": "no address"}, "email"),
        ({"email": "a@b@c"}, "email"),
        ({"password": "short"}, "password"),
        ({"password": "x" * 300}, "password"),
        ({"name": "  "}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"name": 5}, "name"),
        ({"role": "admin"}, "role"),
    ],
)
async def test_a_registration_that_cannot_be_meant_is_refused_by_field(client, change, field):
    body = {"email": "ada@shop.example", "password": PASSWORD, "name": "Ada"} | change
    refused(await client.post("/api/auth/register", json=body), 400, "VALIDATION_ERROR", field)


async def test_without_keys_in_stock_nobody_registers_and_nothing_is_left_behind(database_url, redis_url, clock, ids):
    async with (
        memory_gateway(web_settings(database_url, redis_url), clock, ids, stock=0) as gateway,
        web_client(gateway) as client,
    ):
        body = {"email": "ada@shop.example", "password": PASSWORD, "name": "Ada"}
        refused(await client.post("/api/auth/register", json=body), 503, "KEYS_UNAVAILABLE")
        async with gateway.db.autocommit() as conn:
            assert (await conn.exec_driver_sql("SELECT count(*) FROM merchants")).scalar_one() == 0


async def test_each_refresh_gives_new_tokens(merchant, client, clock):
    for _ in range(3):
        clock.advance(600)
        before = merchant.refresh_token
        response = await client.post(REFRESH, headers=cookie(before))
        assert response.status_code == 200, response.text
        merchant.take(response)
        assert merchant.refresh_token != before
        assert (await client.get(HERE, headers=merchant.bearer)).is_success


@pytest.mark.parametrize("rotations", [1, 2, 3])
async def test_a_stolen_refresh_token_ends_the_session_however_late_it_is_presented(merchant, client, clock, rotations):
    stolen = merchant.refresh_token
    for _ in range(rotations):
        merchant.take(await client.post(REFRESH, headers=cookie(merchant.refresh_token)))
        clock.advance(SAME_AGAIN_S)
    refused(await client.post(REFRESH, headers=cookie(stolen)), 401, "SESSION_ENDED")
    refused(await client.post(REFRESH, headers=cookie(merchant.refresh_token)), 401, "SESSION_ENDED")
    refused(await client.get(HERE, headers=merchant.bearer), 401, "SESSION_ENDED")


async def test_an_invented_refresh_token_does_not_end_anybodys_session(merchant, client):
    session_id, secret, mac = merchant.refresh_token.split(".")
    forged = [f"{session_id}.{secret}.{'0' * 64}", f"{session_id}.{'0' * 64}.{mac}", "x", "a.b.c", "é.b.c", "x" * 5000]
    for token in forged:
        refused(
            await client.post(REFRESH, headers={"Cookie": f"cambist_refresh={token}".encode()}), 401, "SESSION_ENDED"
        )
    refused(await client.post(REFRESH), 401, "SESSION_REQUIRED")
    assert (await client.post(REFRESH, headers=cookie(merchant.refresh_token))).is_success


async def test_signing_out_ends_access_tokens_at_once(merchant, client):
    response = await client.post("/api/auth/logout", headers=cookie(merchant.refresh_token))
    assert response.status_code == 200
    refused(await client.get(HERE, headers=merchant.bearer), 401, "SESSION_ENDED")
    refused(await client.post(REFRESH, headers=cookie(merchant.refresh_token)), 401, "SESSION_ENDED")
    assert (await client.post("/api/auth/logout")).is_success


@pytest.mark.slow
async def test_a_session_ends_after_its_lifetime_however_it_was_used(merchant, client, clock, gateway):
    # Never idle for too long.
    times = 2 * gateway.settings.auth.refresh_token_s // gateway.settings.auth.session_idle_s
    for time in range(1, times + 1):
        clock.advance(gateway.settings.auth.refresh_token_s / times - (time == times))
        merchant.take(await client.post(REFRESH, headers=cookie(merchant.refresh_token)))
    clock.advance(1)
    refused(await client.get(HERE, headers=merchant.bearer), 401, "SESSION_ENDED")
    refused(await client.post(REFRESH, headers=cookie(merchant.refresh_token)), 401, "SESSION_ENDED")


async def test_an_access_token_works_for_a_while(merchant, client, clock, gateway):
    clock.advance(gateway.settings.auth.access_token_s)
    refused(await client.get(HERE, headers=merchant.bearer), 401, "INVALID_TOKEN")


def _claims(merchant, clock, **changes):
    token = merchant.bearer["Authorization"].removeprefix("Bearer ")
    session_id = jwt.decode(token, options={"verify_signature": False})["sid"]
    now = int(clock.now().timestamp())
    claims = {
        "iss": ISSUER,
        "aud": MERCHANTS_AUDIENCE,
        "sub": "m",
        "sid": session_id,
        "iat": now,
        "exp": now + 60,
    } | changes
    return {name: value for name, value in claims.items() if value is not None}


def _unsigned(claims):
    parts = [{"alg": "none", "typ": "JWT"}, claims]
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


async def test_a_token_with_every_claim_right_is_taken(merchant, client, clock):
    token = jwt.encode(_claims(merchant, clock), SIGNING_KEY, "HS256")
    assert (await client.get(HERE, headers={"Authorization": f"Bearer {token}"})).is_success


def _forgeries(claims):
    def signed(key=SIGNING_KEY, algorithm="HS256", **changes):
        return jwt.encode(claims | changes, key, algorithm)

    def without(name):
        return jwt.encode({other: value for other, value in claims.items() if other != name}, SIGNING_KEY, "HS256")

    yield from ("", "x", "a.b.c", _unsigned(claims), _unsigned(claims) + "AAAA")
    yield signed(b"another key that is long enough!")
    yield signed(JWT_SECRET)
    yield signed(SIGNING_KEY * 2, "HS512")
    yield signed(aud="elsewhere")
    yield signed(iss="elsewhere")
    yield signed(exp=claims["iat"])
    yield signed(exp=10**30)
    yield signed(exp=str(claims["exp"]))
    yield signed(iat=claims["iat"] + 60)
    yield signed(sid="ses_unknown")
    yield signed(sid=7)
    yield from (without(name) for name in claims)


async def test_a_forged_token_is_refused(merchant, client, clock):
    for token in _forgeries(_claims(merchant, clock)):
        response = await client.get(HERE, headers={"Authorization": f"Bearer {token}"})
        assert response.status_code == 401, token
        refused(response, 401, response.json()["code"])
        assert response.headers["www-authenticate"] == "Bearer"


async def test_the_operator_lets_a_merchant_back_in(merchant, client, clock):
    asked = await client.post("/api/auth/password-reset/request", json={"email": merchant.email})
    unknown = await client.post("/api/auth/password-reset/request", json={"email": "nobody@shop.example"})
    assert asked.status_code == 200
    assert asked.content == unknown.content
    issued = await client.post(
        "/api/admin/password-resets", json={"email": merchant.email}, headers={"X-Admin-Key": ADMIN_KEY}
    )
    assert issued.status_code == 201, issued.text
    body = {"token": issued.json()["token"], "password": "another good password"}
    assert (await client.post("/api/auth/password-reset/confirm", json=body)).is_success

    refused(await client.get(HERE, headers=merchant.bearer), 401, "SESSION_ENDED")
    login = {"email": merchant.email, "password": PASSWORD}
    refused(await client.post("/api/auth/login", json=login), 401, "INVALID_CREDENTIALS")
    assert (await client.post("/api/auth/login", json=login | {"password": "another good password"})).is_success
    refused(await client.post("/api/auth/password-reset/confirm", json=body), 400, "RESET_TOKEN_INVALID")


async def test_a_reset_token_expires_and_is_replaced_by_the_next(merchant, client, clock, gateway):
    path, admin = "/api/admin/password-resets", {"X-Admin-Key": ADMIN_KEY}
    first = (await client.post(path, json={"email": merchant.email}, headers=admin)).json()["token"]
    second = (await client.post(path, json={"email": merchant.email}, headers=admin)).json()["token"]
    confirm = "/api/auth/password-reset/confirm"
    refused(await client.post(confirm, json={"token": first, "password": PASSWORD}), 400, "RESET_TOKEN_INVALID")
    clock.advance(gateway.settings.auth.password_reset_s)
    refused(await client.post(confirm, json={"token": second, "password": PASSWORD}), 400, "RESET_TOKEN_INVALID")


async def test_only_the_admin_key_issues_resets(merchant, client):
    for headers in ({}, {"X-Admin-Key": "wrong"}, merchant.key, merchant.bearer):
        response = await client.post("/api/admin/password-resets", json={"email": merchant.email}, headers=headers)
        refused(response, 401, "INVALID_TOKEN" if headers == merchant.bearer else "ADMIN_KEY_INVALID")


async def test_secrets_are_not_stored_as_they_are(merchant, gateway):
    web = merchant.client._transport.app.state.web
    secrets = [PASSWORD, merchant.refresh_token, merchant.key["X-Api-Key"], merchant.webhook_secret]
    async with gateway.db.transaction() as conn:
        for table in ("merchants", "sessions", "api_keys", "projects", "password_resets", "account_keys"):
            rows = (await conn.execute(text(f"SELECT t::text FROM {table} t"))).scalars().all()  # noqa: S608
            for secret in secrets:
                assert not any(secret in row or secret.encode().hex() in row for row in rows), table
        hashed = hashlib.sha256(merchant.key["X-Api-Key"].encode()).digest()
        found = await conn.exec_driver_sql("SELECT count(*) FROM api_keys WHERE key_hash = $1", (hashed,))
        assert found.scalar_one() == 1
        assert await web.sessions.use(conn, "ses_unknown", "192.0.2.7", now=gateway.clock.now()) is None


async def test_merchants_see_nothing_of_each_other(merchant, client):
    other = await Merchant(client).open("bob@shop.example")
    listed = (await client.get(HERE, headers=other.bearer)).json()["projects"]
    assert [project["projectId"] for project in listed] == [other.project_id]


async def test_refreshes_at_once_get_the_same_and_the_session_goes_on(merchant, client):
    answers = await asyncio.gather(*[client.post(REFRESH, headers=cookie(merchant.refresh_token)) for _ in range(4)])
    client.cookies.clear()
    assert [answer.status_code for answer in answers] == [200] * 4
    (following,) = {answer.cookies["cambist_refresh"] for answer in answers}
    assert following != merchant.refresh_token
    for answer in answers:
        merchant.take(answer)
        assert (await client.get(HERE, headers=merchant.bearer)).is_success
    assert (await client.post(REFRESH, headers=cookie(following))).is_success


async def test_who_did_not_hear_the_answer_asks_again_a_moment_later_and_stays_signed_in(merchant, client, clock):
    before = merchant.refresh_token
    lost = await client.post(REFRESH, headers=cookie(before))
    client.cookies.clear()
    # Asking again does not prolong the time in which one may.
    for waits in (SAME_AGAIN_S / 2, SAME_AGAIN_S / 2 - 0.001):
        clock.advance(waits)
        merchant.take(await client.post(REFRESH, headers=cookie(before)))
        assert merchant.refresh_token == lost.cookies["cambist_refresh"]
    clock.advance(0.001)
    refused(await client.post(REFRESH, headers=cookie(before)), 401, "SESSION_ENDED")
    refused(await client.get(HERE, headers=merchant.bearer), 401, "SESSION_ENDED")


async def test_only_the_refresh_token_before_the_newest_may_come_again(merchant, client):
    first = merchant.refresh_token
    for _ in range(2):
        merchant.take(await client.post(REFRESH, headers=cookie(merchant.refresh_token)))
    refused(await client.post(REFRESH, headers=cookie(first)), 401, "SESSION_ENDED")
    refused(await client.get(HERE, headers=merchant.bearer), 401, "SESSION_ENDED")


async def test_a_refresh_token_that_comes_again_from_elsewhere_ends_the_session(merchant, client):
    before = merchant.refresh_token
    merchant.take(await client.post(REFRESH, headers=cookie(before)))
    stolen = await client.post(REFRESH, headers=cookie(before) | {"User-Agent": "another browser"})
    refused(stolen, 401, "SESSION_ENDED")
    refused(await client.get(HERE, headers=merchant.bearer), 401, "SESSION_ENDED")


async def test_a_refresh_token_that_comes_again_does_not_open_a_session_that_was_ended(merchant, client):
    before = merchant.refresh_token
    merchant.take(await client.post(REFRESH, headers=cookie(before)))
    assert (await client.post("/api/auth/logout", headers=cookie(merchant.refresh_token))).is_success
    refused(await client.post(REFRESH, headers=cookie(before)), 401, "SESSION_ENDED")


async def test_a_reset_token_used_twice_at_once_works_once(merchant, client):
    admin = {"X-Admin-Key": ADMIN_KEY}
    issued = await client.post("/api/admin/password-resets", json={"email": merchant.email}, headers=admin)
    bodies = [{"token": issued.json()["token"], "password": f"new password {number}"} for number in range(4)]
    answers = await asyncio.gather(*[client.post("/api/auth/password-reset/confirm", json=body) for body in bodies])
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]


async def test_a_session_opened_with_the_old_password_does_not_outlive_its_reset(merchant, gateway, client):
    web = client._transport.app.state.web
    known = await credentials.check_password(
        MEMBERS, gateway.db, email=merchant.email, password=PASSWORD, passwords=web.passwords
    )
    async with gateway.db.transaction() as conn:
        token = await credentials.issue_link(
            conn, MEMBERS, merchant.email, ids=gateway.ids, now=gateway.clock.now(), lifetime_s=60
        )
        changed = await web.passwords.hash("another good password")
        await credentials.set_by_link(conn, MEMBERS, token, changed, now=gateway.clock.now())
    with pytest.raises(UnauthenticatedError):
        async with gateway.db.transaction() as conn:
            await credentials.lock_password(conn, MEMBERS, known)


async def test_many_register_at_once_with_one_address_and_one_does(client):
    body = {"email": "ada@shop.example", "password": PASSWORD, "name": "Ada"}
    answers = await asyncio.gather(*[client.post("/api/auth/register", json=body) for _ in range(4)])
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]


async def test_no_page_of_another_site_uses_the_cookie(merchant, client):
    for path in ("refresh", "logout", "login", "register"):
        for site in ("cross-site", "same-site"):
            sent = cookie(merchant.refresh_token) | {"Sec-Fetch-Site": site}
            refused(await client.post(f"/api/auth/{path}", headers=sent), 403, "OTHER_SITE")
    for site in ("same-origin", "none"):
        sent = cookie(merchant.refresh_token) | {"Sec-Fetch-Site": site}
        merchant.take(await client.post(REFRESH, headers=sent))
    assert (await client.get(HERE, headers=merchant.bearer)).is_success


async def test_signing_in_anew_ends_the_session_that_the_browser_had(merchant, client):
    login = {"email": merchant.email, "password": PASSWORD}
    refused(
        await client.post(
            "/api/auth/login", json=login | {"password": "wrong"}, headers=cookie(merchant.refresh_token)
        ),
        401,
        "INVALID_CREDENTIALS",
    )
    assert (await client.get(HERE, headers=merchant.bearer)).is_success
    before, token = merchant.bearer, merchant.refresh_token
    elsewhere = await client.post("/api/auth/login", json=login)
    client.cookies.clear()
    again = await client.post("/api/auth/login", json=login, headers=cookie(token))
    client.cookies.clear()
    refused(await client.get(HERE, headers=before), 401, "SESSION_ENDED")
    refused(await client.post(REFRESH, headers=cookie(token)), 401, "SESSION_ENDED")
    for answer in (elsewhere, again):
        bearer = {"Authorization": f"Bearer {answer.json()['accessToken']}"}
        assert (await client.get(HERE, headers=bearer)).is_success
