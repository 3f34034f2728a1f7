"""Operators in person: invited, signing in with a second factor always, and let in and out by owners."""

from __future__ import annotations

import asyncio

import pytest

from cambist_web.api import operator_sessions
from tests.support.authenticator import Authenticator
from tests.support.operators import AUTH, Officer
from tests.support.waiting import waits_for_a_lock
from tests.support.web import ADMIN_KEY, PASSWORD, Merchant, refused

ADMIN = {"X-Admin-Key": ADMIN_KEY}
OPERATORS = "/api/admin/operators"
ANOTHER = "another password, quite uncommon"


async def invite(client, role="owner", name="ada"):
    body = {"email": f"{name}@gateway.example", "name": name, "role": role}
    return (await client.post(OPERATORS, json=body, headers=ADMIN)).json()


async def set_password(client, link, password=PASSWORD):
    body = {"token": link.partition("#")[2], "password": password}
    return await client.post(f"{AUTH}/set-password", json=body)


async def post(client, path, body, **headers):
    response = await client.post(f"{AUTH}/{path}", json=body, headers=headers)
    client.cookies.clear()
    return response


async def log(gateway):
    async with gateway.db.autocommit() as conn:
        query = "SELECT action, actor_kind, actor, subject, details FROM audit_entries ORDER BY id"
        return [tuple(row) for row in await conn.exec_driver_sql(query)]


async def test_who_is_invited_sets_a_password_enrols_and_is_signed_in(client, gateway, clock):
    invited = await invite(client)
    me, who = invited["operator"], {"email": "ada@gateway.example", "password": PASSWORD}
    assert (me["role"], me["hasTwoFactor"], me["disabledAt"]) == ("owner", False, None)
    page, _, token = invited["link"].removeprefix("http://gateway.example").partition("#")
    assert token
    assert page == "/operator/set-password"
    refused(await post(client, "sign-in", who), 401, "INVALID_CREDENTIALS")
    assert (await set_password(client, invited["link"])).status_code == 200
    refused(await set_password(client, invited["link"]), 400, "RESET_TOKEN_INVALID")
    refused(await post(client, "sign-in", who), 401, "TWO_FACTOR_NOT_ENROLLED")
    refused(await post(client, "two-factor/enrol", {**who, "password": "wrong"}), 401, "INVALID_CREDENTIALS")
    shown = (await post(client, "two-factor/enrol", who)).json()
    phone = Authenticator(shown["secret"], clock)
    assert "Cambist%20admin" in shown["otpauthUri"]
    wrong = {**who, "totpCode": phone.wrong_code()}
    refused(await post(client, "two-factor/confirm", wrong), 403, "TWO_FACTOR_INVALID")
    refused(await post(client, "sign-in", {**who, "totpCode": phone.code()}), 401, "TWO_FACTOR_NOT_ENROLLED")
    confirmed = await post(client, "two-factor/confirm", {**who, "totpCode": phone.next_code()})
    assert confirmed.status_code == 200, confirmed.text
    assert len(confirmed.json()["recoveryCodes"]) == 10
    assert "HttpOnly" in (cookie := confirmed.headers["set-cookie"])
    assert cookie.startswith("cambist_admin_refresh=")
    assert "Path=/api/admin/auth;" in cookie
    assert "SameSite=strict" in cookie
    bearer = {"Authorization": f"Bearer {confirmed.json()['accessToken']}"}
    told = (await client.get(f"{AUTH}/me", headers=bearer)).json()
    assert (told["operator"]["operatorId"], told["stepUpUntil"]) == (me["operatorId"], None)
    assert "operators.manage" in told["operator"]["permissions"]
    refused(await post(client, "sign-in", who), 401, "TWO_FACTOR_REQUIRED")
    recovered = await post(client, "sign-in", {**who, "totpCode": confirmed.json()["recoveryCodes"][0]})
    assert recovered.status_code == 200
    mine = me["operatorId"]
    found = await log(gateway)
    assert found[0][:4] == ("operator.made", "operator", "admin key", mine)
    assert [one[:3] for one in found[1:]] == [
        (action, "operator", mine)
        for action in ("password.changed", "two_factor.enrolled", "two_factor.enabled", *["session.opened"] * 2)
    ]


@pytest.mark.parametrize("step", ["enrol", "confirm"])
async def test_a_password_replaced_while_it_is_verified_enrols_no_authenticator(client, gateway, monkeypatch, step):
    officer = await Officer(client).sign_in("owner")
    link = (await client.post(f"{OPERATORS}/{officer.made.operator_id}/two-factor/reset", headers=ADMIN)).json()["link"]
    assert (await set_password(client, link)).status_code == 200
    stolen = {"email": officer.made.email, "password": PASSWORD}
    if step == "confirm":
        shown = (await post(client, "two-factor/enrol", stolen)).json()
        stolen["totpCode"] = Authenticator(shown["secret"], gateway.clock).next_code()
    check = operator_sessions.show_operators_password

    async def overtaken(*arguments):
        found = await check(*arguments)
        async with gateway.db.transaction() as conn:
            await conn.exec_driver_sql("UPDATE operators SET password_hash = 'by the link'")
        return found

    monkeypatch.setattr(operator_sessions, "show_operators_password", overtaken)
    refused(await post(client, f"two-factor/{step}", stolen), 401, "INVALID_CREDENTIALS")
    async with gateway.db.autocommit() as conn:
        query = "SELECT count(*) FROM operator_two_factors WHERE secret_encrypted IS NOT NULL"
        assert (await conn.exec_driver_sql(query)).scalar_one() == 0


async def test_another_authenticator_takes_a_code_of_the_one_in_use_or_a_recovery_code(client, clock):
    officer = await Officer(client).sign_in("support")
    who = {"email": officer.made.email, "password": PASSWORD}
    refused(await post(client, "two-factor/enrol", who), 403, "TWO_FACTOR_REQUIRED")
    shown = await post(client, "two-factor/enrol", {**who, "totpCode": officer.recovery_codes[0]})
    phone = Authenticator(shown.json()["secret"], clock)
    confirmed = await post(client, "two-factor/confirm", {**who, "totpCode": phone.next_code()})
    assert confirmed.status_code == 200
    refused(await officer.ask("GET", f"{AUTH}/me"), 401, "SESSION_ENDED")
    refused(await post(client, "sign-in", officer.credentials()), 401, "TWO_FACTOR_INVALID")


async def test_an_operators_session_ends_after_half_a_day_however_it_was_used(client, gateway, clock):
    """A merchant's may last for weeks."""
    auth = gateway.settings.auth
    assert auth.operator_session_s == 12 * 3_600 < auth.refresh_token_s
    officer = await Officer(client).sign_in("support")
    opened = await post(client, "sign-in", officer.credentials())
    assert f"Max-Age={auth.operator_session_s}" in opened.headers["set-cookie"]
    token = opened.cookies["cambist_admin_refresh"]

    async def refresh():
        answer = await client.post(f"{AUTH}/refresh", headers={"Cookie": f"cambist_admin_refresh={token}"})
        client.cookies.clear()
        return answer

    for _ in range(3):
        clock.advance(auth.operator_session_s / 4)
        token = (await refresh()).cookies["cambist_admin_refresh"]
    clock.advance(auth.operator_session_s / 4)
    refused(await refresh(), 401, "SESSION_ENDED")


async def test_refresh_tokens_go_round_and_a_used_one_ends_the_session(client, gateway):
    officer = await Officer(client).sign_in("auditor")
    merchant = await Merchant(client).open()
    opened = await client.post(f"{AUTH}/sign-in", json=officer.credentials())
    first = opened.cookies["cambist_admin_refresh"]
    client.cookies.clear()

    async def refresh(token, path=AUTH, name="cambist_admin_refresh"):
        response = await client.post(f"{path}/refresh", headers={"Cookie": f"{name}={token}"})
        client.cookies.clear()
        return response

    second = (await refresh(first)).cookies["cambist_admin_refresh"]
    assert (await refresh(first)).cookies["cambist_admin_refresh"] == second
    refused(await refresh(second, "/api/auth", "cambist_refresh"), 401, "SESSION_ENDED")
    refused(await refresh(merchant.refresh_token), 401, "SESSION_ENDED")
    refused(await refresh(second, "/api/auth"), 401, "SESSION_REQUIRED")
    third = (await refresh(second)).cookies["cambist_admin_refresh"]
    refused(await refresh(first), 401, "SESSION_ENDED")
    refused(await refresh(third), 401, "SESSION_ENDED")
    replayed = [one for one in await log(gateway) if one[0] == "session.refresh_replayed"]
    # Who presented it is not known.
    assert [one[1:4] for one in replayed] == [("stranger", None, officer.made.operator_id)]
    assert [one[4] for one in replayed] == [{"session": first.partition(".")[0]}]
    assert (await client.get("/api/auth/sessions", headers=merchant.bearer)).status_code == 200


async def test_signing_out_ends_this_session_or_all(client):
    officer = await Officer(client).sign_in("auditor")
    opened = await client.post(f"{AUTH}/sign-in", json=officer.credentials())
    cookie, bearer = opened.cookies["cambist_admin_refresh"], opened.json()["accessToken"]
    client.cookies.clear()
    out = await client.post(f"{AUTH}/sign-out", headers={"Cookie": f"cambist_admin_refresh={cookie}"})
    assert "Max-Age=0" in out.headers["set-cookie"]
    refused(await client.get(f"{AUTH}/me", headers={"Authorization": f"Bearer {bearer}"}), 401, "SESSION_ENDED")
    kept = officer.bearer
    assert (await officer.ask("GET", f"{AUTH}/me")).status_code == 200
    await officer.open()
    assert (await officer.ask("POST", f"{AUTH}/sign-out-everywhere")).status_code == 200
    for headers in (kept, officer.bearer):
        refused(await client.get(f"{AUTH}/me", headers=headers), 401, "SESSION_ENDED")


async def test_an_operator_sees_and_ends_sessions_of_his_own_and_nobody_elses(client):
    officer = await Officer(client).sign_in("auditor")
    first = officer.bearer
    await officer.open()
    listed = (await officer.ask("GET", f"{AUTH}/sessions?limit=1")).json()
    assert (listed["total"], [one["current"] for one in listed["sessions"]]) == (2, [True])
    listed = (await officer.ask("GET", f"{AUTH}/sessions")).json()
    other = next(one["sessionId"] for one in listed["sessions"] if not one["current"])
    stranger = await Officer(client).sign_in("owner")
    refused(await stranger.ask("DELETE", f"{AUTH}/sessions/{other}"), 404, "SESSION_NOT_FOUND")
    assert (await client.get(f"{AUTH}/me", headers=first)).status_code == 200
    assert (await officer.ask("DELETE", f"{AUTH}/sessions/{other}")).status_code == 200
    refused(await client.get(f"{AUTH}/me", headers=first), 401, "SESSION_ENDED")
    await officer.open()
    assert (await officer.ask("DELETE", f"{AUTH}/sessions")).status_code == 200
    left = (await officer.ask("GET", f"{AUTH}/sessions")).json()["sessions"]
    assert [one["current"] for one in left] == [True]
    assert (await stranger.ask("GET", f"{AUTH}/me")).status_code == 200


async def test_a_new_password_takes_the_old_one_and_a_code_and_ends_every_session(client, clock):
    officer = await Officer(client).sign_in("operator")
    body = {"currentPassword": PASSWORD, "newPassword": ANOTHER, "totpCode": officer.phone.next_code()}
    refused(await officer.ask("POST", f"{AUTH}/password", {**body, "currentPassword": "x"}), 403, "PASSWORD_INVALID")
    wrong = {**body, "totpCode": officer.phone.wrong_code()}
    refused(await officer.ask("POST", f"{AUTH}/password", wrong), 403, "TWO_FACTOR_INVALID")
    changed = await officer.ask("POST", f"{AUTH}/password", body)
    assert changed.status_code == 200
    refused(await officer.ask("GET", f"{AUTH}/me"), 401, "SESSION_ENDED")
    clock.advance(60)
    refused(await post(client, "sign-in", officer.credentials()), 401, "INVALID_CREDENTIALS")
    assert (await post(client, "sign-in", officer.credentials(password=ANOTHER))).status_code == 200
    bearer = {"Authorization": f"Bearer {changed.json()['accessToken']}"}
    codes = {"password": ANOTHER, "totpCode": officer.phone.next_code()}
    renewed = await client.post(f"{AUTH}/recovery-codes", json=codes, headers=bearer)
    assert len(renewed.json()["recoveryCodes"]) == 10
    old = officer.credentials(password=ANOTHER, totpCode=officer.recovery_codes[0])
    refused(await post(client, "sign-in", old), 401, "TWO_FACTOR_INVALID")


async def test_wrong_codes_lock_as_they_do_merchants(client):
    officer = await Officer(client).sign_in("auditor")
    for _ in range(5):
        wrong = officer.credentials(totpCode=officer.phone.wrong_code())
        refused(await post(client, "sign-in", wrong), 401, "TWO_FACTOR_INVALID")
    refused(await post(client, "sign-in", officer.credentials()), 429, "TOO_MANY_CODES")
    by_paper = officer.credentials(totpCode=officer.recovery_codes[0])
    assert (await post(client, "sign-in", by_paper)).status_code == 200


async def test_an_owner_manages_operators_and_each_act_names_him(client, gateway):
    ada = await Officer(client).sign_in("owner", name="ada", stepped_up=True)
    bob = await Officer(client).sign_in("support", name="bob")
    path = f"{OPERATORS}/{bob.made.operator_id}"
    assert (await ada.ask("PATCH", path, {"role": "operator"})).json()["operator"]["role"] == "operator"
    assert (await bob.ask("GET", f"{AUTH}/me")).json()["operator"]["role"] == "operator"
    link = (await ada.ask("POST", f"{path}/link")).json()["link"]
    assert (await set_password(client, link, ANOTHER)).status_code == 200
    refused(await bob.ask("GET", f"{AUTH}/me"), 401, "SESSION_ENDED")
    reset = (await ada.ask("POST", f"{path}/two-factor/reset")).json()
    assert reset["operator"]["hasTwoFactor"] is False
    stolen = {"email": bob.made.email, "password": ANOTHER}
    for step in ("sign-in", "two-factor/enrol"):
        refused(await post(client, step, stolen), 401, "INVALID_CREDENTIALS")
    assert (await set_password(client, reset["link"], ANOTHER)).status_code == 200
    refused(await post(client, "sign-in", stolen), 401, "TWO_FACTOR_NOT_ENROLLED")
    assert (await ada.ask("POST", f"{path}/disable")).json()["operator"]["disabledAt"] is not None
    refused(await post(client, "sign-in", bob.credentials(password=ANOTHER)), 401, "INVALID_CREDENTIALS")
    assert (await ada.ask("POST", f"{path}/enable")).json()["operator"]["disabledAt"] is None
    refused(await ada.ask("POST", f"{OPERATORS}/{ada.made.operator_id}/disable"), 409, "LAST_OWNER")
    refused(await ada.ask("PATCH", f"{OPERATORS}/{ada.made.operator_id}", {"role": "support"}), 409, "LAST_OWNER")
    refused(await ada.ask("POST", f"{OPERATORS}/opr_x/disable"), 404, "OPERATOR_NOT_FOUND")
    listed = (await ada.ask("GET", OPERATORS)).json()
    assert [one["name"] for one in listed["operators"]] == ["ada", "bob"]
    acts = [one for one in await log(gateway) if one[2] == ada.made.operator_id]
    web = client._transport.app.state.web
    session = web.operators.access_tokens.session_of(ada.bearer["Authorization"].removeprefix("Bearer "))
    assert {one[4]["session"] for one in acts} == {session}
    assert acts[0][4] == {"session": session, "role": "operator", "former_role": "support"}
    assert [one[0] for one in acts] == [
        "operator.role_changed", "password_reset.issued", "two_factor.reset", "operator.disabled", "operator.enabled",
    ]  # fmt: skip
    again = {"email": bob.made.email, "name": "Bob", "role": "auditor"}
    refused(await ada.ask("POST", OPERATORS, again), 409, "EMAIL_TAKEN")


async def test_no_owner_takes_his_own_second_factor_away(client):
    ada = await Officer(client).sign_in("owner", name="ada", stepped_up=True)
    reset = f"{OPERATORS}/{ada.made.operator_id}/two-factor/reset"
    refused(await ada.ask("POST", reset), 403, "NOT_YOURSELF")
    assert (await ada.ask("GET", f"{AUTH}/me")).status_code == 200
    assert (await post(client, "sign-in", ada.credentials())).status_code == 200, "they are what they were"
    bob = await Officer(client).sign_in("owner", name="bob", stepped_up=True)
    assert (await bob.ask("POST", reset)).json()["operator"]["hasTwoFactor"] is False


@pytest.mark.slow
@pytest.mark.parametrize(
    "method, path, body",
    [
        ("POST", "", {"email": "eve@gateway.example", "name": "Eve", "role": "owner"}),
        ("PATCH", "/{ada}", {"role": "support"}),
        *[("POST", f"/{{ada}}/{act}", None) for act in ("disable", "enable", "link", "two-factor/reset")],
    ],
)
async def test_what_an_owner_asks_for_while_another_demotes_him_is_refused(client, gateway, method, path, body):
    ada, bob = [await Officer(client).sign_in("owner", name=name, stepped_up=True) for name in ("ada", "bob")]
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE operators SET role = 'support' WHERE name = 'bob'")
        # The guard reads what is committed: Bob is an owner to it, and Bob's act waits for this transaction.
        act = asyncio.create_task(bob.ask(method, OPERATORS + path.format(ada=ada.made.operator_id), body))
        async with asyncio.timeout(30):
            while not act.done() and not await waiting(conn):  # noqa: ASYNC110  PostgreSQL's, which sets no event
                await asyncio.sleep(0.02)
    refused(await act, 403, "ROLE_NOT_ALLOWED")
    listed = (await ada.ask("GET", OPERATORS)).json()["operators"]
    assert [(one["name"], one["role"], one["hasTwoFactor"]) for one in listed] == [
        ("ada", "owner", True),
        ("bob", "support", True),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "method, path, body",
    [
        ("POST", "", {"email": "eve@gateway.example", "name": "Eve", "role": "owner"}),
        ("PATCH", "/{ada}", {"role": "support"}),
        *[("POST", f"/{{ada}}/{act}", None) for act in ("disable", "enable", "link", "two-factor/reset")],
    ],
)
async def test_what_waits_while_its_session_is_ended_is_refused(client, gateway, method, path, body):
    ada, bob = [await Officer(client).sign_in("owner", name=name, stepped_up=True) for name in ("ada", "bob")]
    before = await log(gateway)
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM operators FOR UPDATE")
        await conn.exec_driver_sql(
            "UPDATE operator_sessions SET revoked_at = now() WHERE operator_pk = $1", (bob.made.pk,)
        )
        act = asyncio.create_task(bob.ask(method, OPERATORS + path.format(ada=ada.made.operator_id), body))
        async with asyncio.timeout(30):
            while not act.done() and not await waiting(conn):  # noqa: ASYNC110  PostgreSQL's, which sets no event
                await asyncio.sleep(0.02)
    refused(await act, 401, "SESSION_ENDED")
    listed = (await ada.ask("GET", OPERATORS)).json()["operators"]
    assert [(one["name"], one["role"], one["hasTwoFactor"]) for one in listed] == [
        ("ada", "owner", True),
        ("bob", "owner", True),
    ]
    assert await log(gateway) == before


@pytest.mark.parametrize(
    "path, body",
    [
        ("/api/admin/password-resets", {"email": "ada@shop.example"}),
        ("/api/admin/merchants", {"email": "new@shop.example", "name": "New"}),
    ],
)
@pytest.mark.parametrize(
    "change, code",
    [
        ("UPDATE operators SET role = 'support'", "ROLE_NOT_ALLOWED"),
        ("UPDATE operator_sessions SET revoked_at = now()", "SESSION_ENDED"),
    ],
)
async def test_who_is_shown_the_door_while_handing_out_a_link_hands_out_none(
    client, gateway, merchant, path, body, change, code
):
    assert merchant.email == "ada@shop.example"
    bob = await Officer(client).sign_in("operator", name="bob", stepped_up=True)
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM operators FOR UPDATE")
        await conn.exec_driver_sql(change)
        act = asyncio.create_task(bob.ask("POST", path, body))
        await waits_for_a_lock(conn, act)
    refused(await act, 403 if code == "ROLE_NOT_ALLOWED" else 401, code)
    async with gateway.db.autocommit() as conn:
        assert (await conn.exec_driver_sql("SELECT count(*) FROM password_resets")).scalar_one() == 0


async def test_a_merchants_link_goes_with_the_operator_who_handed_it_out(client, merchant):
    ada = await Officer(client).sign_in("owner", name="ada", stepped_up=True)
    bob = await Officer(client).sign_in("operator", name="bob", stepped_up=True)

    async def back_in(issued):
        body = {"token": issued.json()["token"], "password": ANOTHER}
        response = await client.post("/api/auth/password-reset/confirm", json=body)
        client.cookies.clear()
        return response

    issued = await bob.ask("POST", "/api/admin/password-resets", {"email": merchant.email})
    await ada.ask("PATCH", f"{OPERATORS}/{bob.made.operator_id}", {"role": "support"})
    refused(await back_in(issued), 400, "RESET_TOKEN_INVALID")
    again = await ada.ask("POST", "/api/admin/password-resets", {"email": merchant.email})
    assert (await back_in(again)).status_code == 200


async def waiting(conn):
    """Return how many of this database wait for a lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return (await conn.exec_driver_sql(query)).scalar_one()


@pytest.mark.parametrize("change", [{"role": "root"}, {"email": "nobody"}, {"name": " "}])
async def test_an_invitation_that_cannot_be_meant_is_refused(client, change):
    body = {"email": "eve@gateway.example", "name": "Eve", "role": "auditor", **change}
    refused(await client.post(OPERATORS, json=body, headers=ADMIN), 400, "VALIDATION_ERROR", *change)


async def test_a_page_of_another_site_signs_nobody_in(client):
    officer = await Officer(client).sign_in("owner")
    refused(await post(client, "sign-in", officer.credentials(), **{"Sec-Fetch-Site": "cross-site"}), 403, "OTHER_SITE")
