"""Two-factor authentication over HTTP: turning it on and off, signing in with it, and the operator's reset."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest
from structlog.testing import capture_logs

from tests.support.two_factor import HERE, Authenticator, enrol, start
from tests.support.web import (
    ADMIN_KEY,
    PASSWORD,
    UNLIMITED,
    Merchant,
    memory_gateway,
    refused,
    web_client,
    web_settings,
)

ADMIN = {"X-Admin-Key": ADMIN_KEY}
RESET = "/api/admin/merchants/two-factor/reset"


@pytest.fixture
async def enrolled(merchant, clock):
    return await enrol(merchant, clock)


@pytest.fixture
async def phone(enrolled):
    return enrolled[0]


@pytest.fixture
async def recovery(enrolled):
    return enrolled[1]


async def status(merchant):
    response = await merchant.client.get(HERE, headers=merchant.bearer)
    assert response.status_code == 200, response.text
    return response.json()


async def post(merchant, action, **body):
    return await merchant.client.post(f"{HERE}/{action}", json=body, headers=merchant.bearer)


async def sign_in(merchant, **changes):
    response = await merchant.client.post(
        "/api/auth/login", json={"email": merchant.email, "password": PASSWORD} | changes
    )
    merchant.client.cookies.clear()
    return response


async def test_turning_it_on_takes_a_secret_and_its_first_code(merchant, clock):
    assert await status(merchant) == {"success": True, "enabled": False, "recoveryCodesLeft": 0}
    shown = (await start(merchant)).json()
    assert shown.keys() == {"success", "secret", "otpauthUri", "qrCode"}
    assert len(base64.b32decode(shown["secret"])) == 20
    assert shown["secret"] in shown["otpauthUri"]
    assert (await status(merchant))["enabled"] is False

    phone = Authenticator(shown["secret"], clock)
    confirmed = await post(merchant, "confirm", totpCode=phone.code())
    assert confirmed.status_code == 200, confirmed.text
    assert confirmed.headers["cache-control"] == "no-store"
    assert len(set(confirmed.json()["recoveryCodes"])) == 10
    assert await status(merchant) == {"success": True, "enabled": True, "recoveryCodesLeft": 10}


async def test_the_qr_code_is_an_image_that_needs_nothing_else(merchant):
    uri = (await start(merchant)).json()["qrCode"]
    kind, _, content = uri.partition(",")
    assert kind.startswith("data:image/svg+xml")
    assert ET.fromstring(unquote(content)).tag.endswith("svg")  # noqa: S314  our own


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("GET", "", None),
        ("POST", "/enrol", {"password": PASSWORD}),
        ("POST", "/confirm", {"totpCode": "123456"}),
        ("POST", "/disable", {"password": PASSWORD, "totpCode": "123456"}),
        ("POST", "/recovery-codes", {"password": PASSWORD, "totpCode": "123456"}),
    ],
)
async def test_it_is_for_a_merchant_in_person_and_no_program(merchant, client, method, path, body):
    for headers in ({}, merchant.key, ADMIN):
        refused(await client.request(method, HERE + path, json=body, headers=headers), 401, "SESSION_REQUIRED")


async def test_a_session_alone_makes_no_secret(merchant):
    refused(await start(merchant, password="wrong"), 403, "PASSWORD_INVALID")
    refused(await post(merchant, "enrol"), 400, "VALIDATION_ERROR", "password")
    refused(await post(merchant, "confirm", totpCode="123456"), 409, "TWO_FACTOR_NOT_STARTED")


async def test_who_lost_the_answer_to_the_first_code_is_told_to_keep_the_secret(merchant, phone):
    refused(await post(merchant, "confirm", totpCode=phone.code()), 409, "TWO_FACTOR_ON")
    assert (await status(merchant))["enabled"] is True


@pytest.mark.parametrize("action", ["confirm", "disable", "recovery-codes"])
@pytest.mark.parametrize("body", [{}, {"totpCode": 123456}, {"totpCode": None}, {"totpCode": "1" * 65}, {"code": "1"}])
async def test_a_body_without_a_code_is_refused_by_field(merchant, action, body):
    others = {} if action == "confirm" else {"password": PASSWORD}
    refused(await post(merchant, action, **others, **body), 400, "VALIDATION_ERROR", next(iter(body), "totpCode"))


async def test_what_needs_it_says_so_before_it_is_on(merchant):
    for action in ("disable", "recovery-codes"):
        refused(await post(merchant, action, password=PASSWORD, totpCode="123456"), 403, "TWO_FACTOR_NOT_ENROLLED")


@pytest.mark.parametrize("action", ["disable", "recovery-codes"])
async def test_turning_it_off_and_new_recovery_codes_take_the_password_as_well_as_a_code(merchant, phone, action):
    code = phone.code()
    refused(await post(merchant, action, totpCode=code), 400, "VALIDATION_ERROR", "password")
    refused(await post(merchant, action, password="wrong", totpCode=code), 403, "PASSWORD_INVALID")
    assert (await status(merchant))["recoveryCodesLeft"] == 10
    refused(await post(merchant, action, password=PASSWORD, totpCode=phone.wrong_code()), 403, "TWO_FACTOR_INVALID")
    response = await post(merchant, action, password=PASSWORD, totpCode=code)
    assert response.status_code == 200, "a wrong password spends no code"
    assert (await status(merchant))["enabled"] is (action == "recovery-codes")


async def test_signing_in_takes_the_password_and_a_code(merchant, phone):
    refused(await sign_in(merchant), 401, "TWO_FACTOR_REQUIRED")
    refused(await sign_in(merchant, totpCode=phone.wrong_code()), 401, "TWO_FACTOR_INVALID")
    response = await sign_in(merchant, totpCode=phone.code())
    assert response.status_code == 200, response.text
    assert "cambist_refresh" in response.cookies


async def test_without_the_password_nobody_learns_whether_it_is_on_and_no_code_is_spent(merchant, phone):
    code = phone.code()
    refused(await sign_in(merchant, password="wrong"), 401, "INVALID_CREDENTIALS")
    refused(await sign_in(merchant, password="wrong", totpCode=code), 401, "INVALID_CREDENTIALS")
    assert (await sign_in(merchant, totpCode=code)).status_code == 200


async def test_a_code_signs_in_once_within_its_half_minute(merchant, phone):
    code = phone.code()
    assert (await sign_in(merchant, totpCode=code)).status_code == 200
    refused(await sign_in(merchant, totpCode=code), 401, "TWO_FACTOR_INVALID")


async def test_of_sign_ins_with_one_code_at_once_one_succeeds(merchant, phone):
    code = phone.code()
    answers = await asyncio.gather(*[sign_in(merchant, totpCode=code) for _ in range(6)])
    assert sorted(answer.status_code for answer in answers) == [200] + [401] * 5


async def test_who_does_not_have_it_on_signs_in_with_a_code_or_without(merchant):
    assert (await sign_in(merchant)).status_code == 200
    assert (await sign_in(merchant, totpCode="123456")).status_code == 200


async def test_guessing_is_locked_and_told_when_to_come_again(merchant, phone, clock):
    for _ in range(5):
        refused(await sign_in(merchant, totpCode=phone.wrong_code()), 401, "TWO_FACTOR_INVALID")
    response = await sign_in(merchant, totpCode=phone.code())
    refused(response, 429, "TOO_MANY_CODES")
    assert response.headers["retry-after"] == "900"
    refused(await post(merchant, "disable", password=PASSWORD, totpCode=phone.code()), 429, "TOO_MANY_CODES")
    clock.advance(900)
    assert (await sign_in(merchant, totpCode=phone.code())).status_code == 200


async def test_who_lost_the_phone_signs_in_with_a_recovery_code_once(merchant, recovery):
    assert (await sign_in(merchant, totpCode=recovery[0])).status_code == 200
    refused(await sign_in(merchant, totpCode=recovery[0]), 401, "TWO_FACTOR_INVALID")
    assert (await status(merchant))["recoveryCodesLeft"] == 9


async def test_new_recovery_codes_take_the_place_of_the_old(merchant, phone, recovery):
    response = await post(merchant, "recovery-codes", password=PASSWORD, totpCode=phone.code())
    assert response.status_code == 200, response.text
    refused(await sign_in(merchant, totpCode=recovery[1]), 401, "TWO_FACTOR_INVALID")
    assert (await sign_in(merchant, totpCode=response.json()["recoveryCodes"][1])).status_code == 200


async def test_turning_it_on_ends_the_other_sessions_and_keeps_this_one(merchant, client, clock):
    other = (await sign_in(merchant)).json()["accessToken"]
    await enrol(merchant, clock)
    assert (await status(merchant))["enabled"] is True
    refused(await client.get(HERE, headers={"Authorization": f"Bearer {other}"}), 401, "SESSION_ENDED")


async def test_another_phone_needs_a_code_of_the_one_in_use(merchant, phone, clock):
    refused(await start(merchant), 403, "TWO_FACTOR_REQUIRED")
    refused(await start(merchant, totpCode=phone.wrong_code()), 403, "TWO_FACTOR_INVALID")
    shown = await start(merchant, totpCode=phone.code())
    following = Authenticator(shown.json()["secret"], clock)
    assert (await post(merchant, "confirm", totpCode=following.code())).status_code == 200
    clock.advance(30)
    refused(await sign_in(merchant, totpCode=phone.code()), 401, "TWO_FACTOR_INVALID")
    assert (await sign_in(merchant, totpCode=following.code())).status_code == 200


async def test_turned_off_no_code_is_asked_for(merchant, phone):
    refused(await post(merchant, "disable", password=PASSWORD, totpCode=phone.wrong_code()), 403, "TWO_FACTOR_INVALID")
    assert (await post(merchant, "disable", password=PASSWORD, totpCode=phone.code())).json() == {"success": True}
    assert await status(merchant) == {"success": True, "enabled": False, "recoveryCodesLeft": 0}
    assert (await sign_in(merchant)).status_code == 200


async def test_a_new_password_is_no_way_around_it(merchant, client, phone):
    issued = await client.post("/api/admin/password-resets", json={"email": merchant.email}, headers=ADMIN)
    changed = {"token": issued.json()["token"], "password": "another good password"}
    assert (await client.post("/api/auth/password-reset/confirm", json=changed)).is_success
    refused(await sign_in(merchant, password="another good password"), 401, "TWO_FACTOR_REQUIRED")
    assert (await sign_in(merchant, password="another good password", totpCode=phone.code())).status_code == 200


async def test_the_operator_takes_it_from_who_lost_everything_and_the_log_tells(merchant, client, phone):
    with capture_logs() as logs:
        response = await client.post(RESET, json={"email": merchant.email.upper()}, headers=ADMIN)
    assert response.json() == {"success": True}
    assert [(log["event"], log["merchant_id"]) for log in logs if "merchant_id" in log] == [
        ("two_factor_reset_by_operator", merchant.merchant_id)
    ]
    refused(await client.get(HERE, headers=merchant.bearer), 401, "SESSION_ENDED")
    merchant.bearer = {"Authorization": f"Bearer {(await sign_in(merchant)).json()['accessToken']}"}
    assert (await status(merchant))["enabled"] is False


async def test_only_the_operator_resets_it(merchant, client, phone):
    for headers in ({}, {"X-Admin-Key": "wrong"}, merchant.key, merchant.bearer):
        response = await client.post(RESET, json={"email": merchant.email}, headers=headers)
        refused(response, 401, "INVALID_TOKEN" if headers == merchant.bearer else "ADMIN_KEY_INVALID")
    unknown = await client.post(RESET, json={"email": "nobody@shop.example"}, headers=ADMIN)
    refused(unknown, 404, "MERCHANT_NOT_FOUND")
    assert (await status(merchant))["enabled"] is True


async def test_neither_secret_nor_code_is_stored_or_logged_as_it_is(merchant, gateway, clock):
    with capture_logs() as logs:
        shown = (await start(merchant)).json()
        phone = Authenticator(shown["secret"], clock)
        first = phone.code()
        recovery = (await post(merchant, "confirm", totpCode=first)).json()["recoveryCodes"]
        await sign_in(merchant, totpCode=recovery[0])
    told = repr(logs)
    assert not any(secret in told for secret in (shown["secret"], first, *recovery, PASSWORD))
    async with gateway.db.autocommit() as conn:
        states = (await conn.exec_driver_sql("SELECT t::text FROM two_factor_states t")).scalars().all()
        codes = (await conn.exec_driver_sql("SELECT t::text FROM recovery_codes t")).scalars().all()
    assert len(states) == 1
    assert len(codes) == 10
    for text in (*states, *codes):
        assert shown["secret"] not in text
        assert phone.key.hex() not in text
        assert not any(code in text or code.replace("-", "").encode().hex() in text for code in recovery)
    hashes = {hashlib.sha256(code.replace("-", "").encode()).hexdigest() for code in recovery}
    assert all(any(hashed in row for row in codes) for hashed in hashes)


async def test_the_password_asked_for_is_guessed_no_faster_than_at_signing_in(database_url, redis_url, clock, ids):
    limits = UNLIMITED.__class__(per_key=0, per_address=0, login_per_address=3)
    settings = web_settings(database_url, redis_url, rate_limits=limits)
    async with memory_gateway(settings, clock, ids) as gateway:
        async with web_client(gateway, "198.51.100.9") as client:
            merchant = Merchant(client)
            await merchant.register("ada@shop.example")
        async with web_client(gateway) as merchant.client:
            answers = [(await start(merchant, password="wrong")).status_code for _ in range(4)]
    assert answers == [403, 403, 403, 429]
