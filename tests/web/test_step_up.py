"""A session alone moves no live money and opens no live access: it steps up with a code, for five minutes."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.identity.sessions import STEP_UP_S
from tests.support.payout_env import person
from tests.support.team import Teammate
from tests.support.two_factor import HERE as TWO_FACTOR
from tests.support.two_factor import enrol
from tests.support.web import ADMIN_KEY, PASSWORD, Merchant, refused

ADMIN = {"X-Admin-Key": ADMIN_KEY}
STEP_UP = "/api/auth/step-up"
PASSWORD_CHANGE = "/api/auth/password"
LOGIN = "/api/auth/login"
NEW_PASSWORD = "another good password"
PAY = {"chain": "memory", "token": "USDX", "toAddress": person("thief"), "amount": "1"}

SWAP = {"srcChain": "memory", "srcToken": "USDX", "srcAmountRaw": "1", "destToken": "MEM"}
AWAY = {"destChain": "pretend"}


def sensitive(merchant):
    """Name requests that pay or open access, and how each ends where it is let in."""
    wallet = f"/api/dashboard/projects/{merchant.project_id}/wallet"
    project = f"/api/merchant/projects/{merchant.project_id}"
    dashboard = f"/api/dashboard/projects/{merchant.project_id}"
    rows = {"chain": "memory", "token": "USDX", "destinations": [{"toAddress": person("thief"), "amount": "1"}]}
    back = {"toAddress": person("thief"), "amount": "1"}
    return [
        ("POST", f"{wallet}/payout", PAY, 403, "INSUFFICIENT_BALANCE"),
        ("POST", f"{wallet}/payout/batch", rows, 403, "INSUFFICIENT_BALANCE"),
        ("POST", f"{dashboard}/swap-bridge/swap/execute", SWAP, 400, "SWAP_NOT_SUPPORTED_FOR_CHAIN"),
        ("POST", f"{dashboard}/swap-bridge/bridge/execute", SWAP | AWAY, 400, "SWAP_NOT_SUPPORTED_FOR_CHAIN"),
        ("POST", f"{dashboard}/payments/pay_nobody/refund", back, 404, "PAYMENT_NOT_FOUND"),
        ("POST", f"{dashboard}/resolutions/dep_nobody/refund", back, 404, "DEPOSIT_NOT_FOUND"),
        ("PATCH", f"{wallet}/coins/memory/USDX/settings", {"autopayoutThreshold": "1"}, 200, None),
        ("PATCH", f"{wallet}/coins/memory/USDX/settings", {"autoConvertEnabled": False}, 200, None),
        ("PUT", f"{wallet}/coins", {"coins": [{"chain": "memory", "token": "USDX"}]}, 200, None),
        ("PATCH", project, {"paymentWebhookUrl": "https://thief.example/hook"}, 200, None),
        ("POST", f"{project}/rotate-webhook-secret", None, 200, None),
        ("POST", f"{project}/api-keys", {"name": "thief's"}, 201, None),
    ]


async def ask(merchant, row, bearer=None):
    method, path, body, *_ = row
    return await merchant.client.request(method, path, json=body, headers=bearer or merchant.bearer)


async def sign_in(merchant, **changes):
    response = await merchant.client.post(LOGIN, json={"email": merchant.email, "password": PASSWORD} | changes)
    merchant.client.cookies.clear()
    assert response.status_code == 200, response.text
    return {"Authorization": f"Bearer {response.json()['accessToken']}"}


@pytest.fixture
async def enrolled(merchant, clock):
    await enrol(merchant, clock)
    return merchant


async def test_without_two_factor_a_live_session_is_asked_to_turn_it_on(merchant):
    for row in sensitive(merchant):
        body = refused(await ask(merchant, row), 403, "TWO_FACTOR_REQUIRED")
        assert "Turn two-factor authentication on" in body["error"]


async def test_a_session_that_signed_in_with_a_code_has_not_stepped_up(enrolled):
    bearer = await sign_in(enrolled, totpCode=enrolled.phone.code())
    for row in sensitive(enrolled):
        body = refused(await ask(enrolled, row, bearer), 403, "STEP_UP_REQUIRED")
        assert STEP_UP in body["error"]


async def test_a_code_steps_one_session_up_for_five_minutes(enrolled, clock):
    other = await sign_in(enrolled, totpCode=enrolled.phone.code())
    clock.advance(30)
    answer = await enrolled.client.post(STEP_UP, json={"totpCode": enrolled.phone.code()}, headers=enrolled.bearer)
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == {"success", "expiresAt", "expiresIn"}
    assert answer.json()["expiresIn"] == STEP_UP_S == 300
    for row in sensitive(enrolled):
        refused(await ask(enrolled, row, other), 403, "STEP_UP_REQUIRED")
    clock.advance(STEP_UP_S - 1)
    for row in sensitive(enrolled):
        response = await ask(enrolled, row)
        assert (response.status_code, response.json().get("code")) == row[3:], row
    clock.advance(1)
    for row in sensitive(enrolled):
        refused(await ask(enrolled, row), 403, "STEP_UP_REQUIRED")


async def test_it_outlives_a_refresh_and_ends_with_the_second_factor(enrolled, clock):
    await enrolled.step_up()
    cookie = {"Cookie": f"cambist_refresh={enrolled.refresh_token}"}
    enrolled.take(await enrolled.client.post("/api/auth/refresh", headers=cookie))
    key = sensitive(enrolled)[-1]
    assert (await ask(enrolled, key)).status_code == 201
    clock.advance(30)
    off = {"password": PASSWORD, "totpCode": enrolled.phone.code()}
    assert (await enrolled.client.post(f"{TWO_FACTOR}/disable", json=off, headers=enrolled.bearer)).is_success
    refused(await ask(enrolled, key), 403, "TWO_FACTOR_REQUIRED")


async def test_a_step_up_takes_a_right_code_once(enrolled, client):
    async def step_up(**body):
        return await client.post(STEP_UP, json=body, headers=enrolled.bearer)

    refused(await step_up(), 400, "VALIDATION_ERROR", "totpCode")
    refused(await step_up(totpCode=enrolled.phone.wrong_code()), 403, "TWO_FACTOR_INVALID")
    code = enrolled.phone.code()
    answers = await asyncio.gather(*[step_up(totpCode=code) for _ in range(5)])
    assert sorted(answer.status_code for answer in answers) == [200] + [403] * 4
    for _ in range(4):
        refused(await step_up(totpCode=enrolled.phone.wrong_code()), 403, "TWO_FACTOR_INVALID")
    refused(await step_up(totpCode=enrolled.phone.wrong_code()), 403, "TWO_FACTOR_INVALID")
    refused(await step_up(totpCode=enrolled.phone.code(30)), 429, "TOO_MANY_CODES")


async def test_who_has_no_second_factor_cannot_step_up(merchant, client):
    response = await client.post(STEP_UP, json={"totpCode": "123456"}, headers=merchant.bearer)
    refused(response, 403, "TWO_FACTOR_NOT_ENROLLED")


async def test_a_withdrawal_and_an_approved_address_take_a_code_of_their_own_all_the_same(enrolled, client):
    await enrolled.step_up()
    taken = PAY | {"projectId": enrolled.project_id}
    answer = await client.post("/api/dashboard/withdrawals", json=taken, headers=enrolled.bearer)
    refused(answer, 403, "TWO_FACTOR_REQUIRED")
    safe = {"chain": "memory", "address": person("safe"), "mode": "live"}
    answer = await client.post("/api/dashboard/approved-addresses", json=safe, headers=enrolled.bearer)
    refused(answer, 403, "TWO_FACTOR_REQUIRED")


async def test_the_sandbox_asks_for_neither(merchant):
    await merchant.add_project(mode="sandbox")
    for row in sensitive(merchant):
        response = await ask(merchant, row)
        assert (response.status_code, response.json().get("code")) == row[3:], row


def of_the_team(member_id):
    """Name requests that open or close access to a merchant's team, and how each ends where it is let in."""
    invited = {"email": "thief@team.example", "name": "Thief", "role": "owner"}
    return [
        ("POST", "/api/dashboard/invitations", invited, 201, None),
        ("PATCH", f"/api/dashboard/members/{member_id}", {"role": "owner"}, 200, None),
        ("POST", f"/api/dashboard/members/{member_id}/two-factor/reset", None, 200, None),
        ("DELETE", f"/api/dashboard/members/{member_id}", None, 200, None),
        ("POST", "/api/dashboard/members/leave", None, 409, "LAST_OWNER"),
    ]


async def take_live_back(merchant):
    path = f"/api/admin/merchants/{merchant.merchant_id}"
    assert (await merchant.client.put(path, json={"live": False}, headers=ADMIN)).status_code == 200


@pytest.mark.parametrize("stolen", ["from who has a second factor", "from who has none"])
async def test_live_mode_that_is_taken_back_opens_the_team_to_no_access_token_alone(enrolled, client, stolen):
    """Else a thief with one becomes an owner, enrols their own phone, and withdraws what came in before."""
    has_none = await Teammate(client, enrolled).sign_in("owner", name="ben", enrolled=False, stepped_up=False)
    rows = of_the_team((await Teammate(client, enrolled).sign_in("owner", name="ann")).member_id)
    await take_live_back(enrolled)
    bearer = enrolled.bearer if stolen.endswith("factor") else has_none.bearer
    code = "STEP_UP_REQUIRED" if stolen.endswith("factor") else "TWO_FACTOR_REQUIRED"
    for row in rows:
        refused(await ask(enrolled, row, bearer), 403, code)
    assert (await enrolled.ask("GET", "/api/dashboard/invitations"))["total"] == 0
    assert len((await enrolled.ask("GET", "/api/dashboard/members"))["members"]) == 3
    await enrolled.step_up()
    await enrolled.ask("DELETE", f"/api/dashboard/members/{has_none.member_id}")
    for row in rows:
        response = await ask(enrolled, row)
        assert (response.status_code, response.json().get("code")) == row[3:], row


async def test_before_live_mode_is_granted_nobody_is_let_in_without_a_second_factor(client, clock):
    """An owner who is planted then is there when live mode is granted, with their own phone to withdraw with."""
    ada = Merchant(client)
    await ada.register("ada@shop.example")
    await take_live_back(ada)
    await ada.add_project(mode="sandbox")
    rows = of_the_team((await Teammate(client, ada).sign_in("viewer", enrolled=False, stepped_up=False)).member_id)
    for row in rows:
        refused(await ask(ada, row), 403, "TWO_FACTOR_REQUIRED")
    assert (await ada.ask("GET", "/api/dashboard/invitations"))["total"] == 0
    roles = [one["role"] for one in (await ada.ask("GET", "/api/dashboard/members"))["members"]]
    assert roles == ["owner", "viewer"]
    await enrol(ada, clock)
    for row in rows:
        refused(await ask(ada, row), 403, "STEP_UP_REQUIRED")
    await ada.step_up()
    for row in rows:
        response = await ask(ada, row)
        assert (response.status_code, response.json().get("code")) == row[3:], row


async def test_what_narrows_access_needs_no_code(enrolled, client):
    path = f"/api/merchant/projects/{enrolled.project_id}/api-keys/{enrolled.key_id}"
    assert (await client.delete(path, headers=enrolled.bearer)).status_code == 200
    assert (await client.delete("/api/auth/sessions", headers=enrolled.bearer)).status_code == 200


async def change(merchant, **changes):
    body = {"currentPassword": PASSWORD, "newPassword": NEW_PASSWORD} | changes
    response = await merchant.client.post(PASSWORD_CHANGE, json=body, headers=merchant.bearer)
    merchant.client.cookies.clear()
    return response


async def test_a_new_password_ends_every_session_and_begins_one(merchant, client):
    others = await sign_in(merchant)
    before = merchant.bearer
    answer = await change(merchant)
    assert answer.status_code == 200, answer.text
    for bearer in (others, before):
        refused(await client.get("/api/auth/sessions", headers=bearer), 401, "SESSION_ENDED")
    old = {"Cookie": f"cambist_refresh={merchant.refresh_token}"}
    refused(await client.post("/api/auth/refresh", headers=old), 401, "SESSION_ENDED")
    bearer = {"Authorization": f"Bearer {answer.json()['accessToken']}"}
    assert len((await client.get("/api/auth/sessions", headers=bearer)).json()["sessions"]) == 1
    login = {"email": merchant.email, "password": PASSWORD}
    refused(await client.post(LOGIN, json=login), 401, "INVALID_CREDENTIALS")
    assert (await client.post(LOGIN, json=login | {"password": NEW_PASSWORD})).status_code == 200


async def test_a_new_password_takes_the_old_one_and_a_strong_one(merchant):
    refused(await change(merchant, currentPassword="wrong"), 403, "PASSWORD_INVALID")
    refused(await change(merchant, newPassword="short"), 400, "VALIDATION_ERROR", "newPassword")
    refused(await change(merchant, newPassword="password123"), 400, "VALIDATION_ERROR", "newPassword")
    refused(await change(merchant, newPassword=f"{merchant.email}1"), 400, "VALIDATION_ERROR", "newPassword")
    await sign_in(merchant)


async def test_a_new_password_takes_a_code_or_a_step_up_where_there_is_a_second_factor(enrolled, clock):
    refused(await change(enrolled), 403, "STEP_UP_REQUIRED")
    refused(await change(enrolled, totpCode=enrolled.phone.wrong_code()), 403, "TWO_FACTOR_INVALID")
    answer = await change(enrolled, totpCode=enrolled.phone.code())
    assert answer.status_code == 200, answer.text
    enrolled.bearer = {"Authorization": f"Bearer {answer.json()['accessToken']}"}
    back = {"currentPassword": NEW_PASSWORD, "newPassword": PASSWORD}
    refused(await change(enrolled, **back), 403, "STEP_UP_REQUIRED")
    clock.advance(30)
    await enrolled.step_up()
    assert (await change(enrolled, **back)).status_code == 200


async def test_of_password_changes_at_once_one_succeeds(merchant):
    answers = await asyncio.gather(*[change(merchant, newPassword=f"{NEW_PASSWORD} {number}") for number in range(4)])
    assert [answer.status_code for answer in answers].count(200) == 1


async def test_a_new_password_makes_a_way_back_in_that_was_handed_out_useless(merchant, client, gateway):
    admin = {"X-Admin-Key": gateway.settings.auth.admin_key}
    issued = await client.post("/api/admin/password-resets", json={"email": merchant.email}, headers=admin)
    assert (await change(merchant)).status_code == 200
    body = {"token": issued.json()["token"], "password": "a password of a thief"}
    refused(await client.post("/api/auth/password-reset/confirm", json=body), 400, "RESET_TOKEN_INVALID")


async def test_two_merchants_step_up_apart(enrolled, client, clock):
    bob = await Merchant(client).open("bob@shop.example")
    await enrol(bob, clock)
    await enrolled.step_up()
    refused(await ask(bob, sensitive(bob)[0]), 403, "STEP_UP_REQUIRED")


async def test_a_password_that_a_reset_sets_is_judged_by_whose_it_is(merchant, client):
    issued = await client.post("/api/admin/password-resets", json={"email": merchant.email}, headers=ADMIN)
    body = {"token": issued.json()["token"], "password": f"{merchant.email}1"}
    confirm = "/api/auth/password-reset/confirm"
    refused(await client.post(confirm, json=body), 400, "VALIDATION_ERROR", "password")
    assert (await client.post(confirm, json=body | {"password": NEW_PASSWORD})).status_code == 200
