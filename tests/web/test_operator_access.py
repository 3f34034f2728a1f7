"""Every route for operators, and everybody who could knock: each role with and without a step-up, and all others."""

from __future__ import annotations

from datetime import timedelta

import jwt
import pytest
from litestar import Controller, get

from cambist.services.identity.operators import ROLES
from cambist_web.access_tokens import MERCHANTS_AUDIENCE, OPERATORS_AUDIENCE, AccessTokens
from cambist_web.operator_auth import admin_routes
from cambist_web.permissions import PERMISSIONS, permits
from tests.support.access import decided, filled
from tests.support.operators import Officer
from tests.support.web import ADMIN_KEY, Merchant, refused

REFUSALS = {
    "ADMIN_KEY_INVALID": 401,
    "SESSION_REQUIRED": 401,
    "INVALID_TOKEN": 401,
    "SESSION_ENDED": 401,
    "ROLE_NOT_ALLOWED": 403,
    "STEP_UP_REQUIRED": 403,
}
FOR_ROLES = [row for row in decided() if row.door == "operator"]
IN_PERSON = [row for row in decided() if row.door == "operator in person"]
ADMIN = {"X-Admin-Key": ADMIN_KEY}


async def answered(client, row, headers):
    """Return why somebody is not let in, or None. Bodies are wrong on purpose, so that nothing happens."""
    body = {"no such field": 0} if row.method != "GET" else None
    response = await client.request(row.method, filled(row.path), json=body, headers=headers)
    client.cookies.clear()
    assert response.status_code < 500, response.text
    code = None if response.is_success else response.json()["code"]
    if code in REFUSALS:
        refused(response, REFUSALS[code], code)
        return code
    return None


async def table(client, wanted, headers):
    return {(row.method, row.path): await answered(client, row, headers) for row in wanted}


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_is_let_in_where_the_table_says_and_after_a_step_up_where_it_says_so(client, role):
    officer = await Officer(client).settle(role)
    for stepped_up in (False, True):
        await officer.open(stepped_up=stepped_up)
        expected = {}
        for row in FOR_ROLES:
            may = ROLES.index(role) <= ROLES.index(row.scope)
            waits = row.step_up and not stepped_up
            expected[row.method, row.path] = (
                None if may and not waits else "STEP_UP_REQUIRED" if may else "ROLE_NOT_ALLOWED"
            )
        assert await table(client, FOR_ROLES, officer.bearer) == expected, stepped_up


async def test_an_operator_in_person_is_let_in_whatever_the_role(client):
    for role in ROLES:
        officer = await Officer(client).settle(role)
        for row in IN_PERSON:
            assert await answered(client, row, officer.bearer) is None, (role, row)
            await officer.open()


async def test_the_admin_key_is_let_in_everywhere_but_where_a_person_is_asked_for(client):
    assert set((await table(client, FOR_ROLES, ADMIN)).values()) == {None}
    assert set((await table(client, IN_PERSON, ADMIN)).values()) == {"SESSION_REQUIRED"}


async def test_nobody_else_is_let_in_anywhere(client, live_merchant):
    officer = await Officer(client).settle("owner", stepped_up=True)
    ended = officer.bearer
    await client.post("/api/admin/auth/sign-out-everywhere", headers=ended)
    strangers = {
        "nobody": ({}, "ADMIN_KEY_INVALID", "SESSION_REQUIRED"),
        "a merchant's key": (live_merchant.key, "ADMIN_KEY_INVALID", "SESSION_REQUIRED"),
        "a merchant's session": (live_merchant.bearer, "INVALID_TOKEN", "INVALID_TOKEN"),
        "a wrong key": ({"X-Admin-Key": "x" * 40}, "ADMIN_KEY_INVALID", "SESSION_REQUIRED"),
        "a wrong key and a session": ({"X-Admin-Key": "x" * 40, **ended}, "ADMIN_KEY_INVALID", "SESSION_ENDED"),
        "a tracker": ({"X-Auth-Token": "tok_" + "0" * 60}, "ADMIN_KEY_INVALID", "SESSION_REQUIRED"),
        "a session that has ended": (ended, "SESSION_ENDED", "SESSION_ENDED"),
    }
    for who, (headers, for_roles, in_person) in strangers.items():
        assert set((await table(client, FOR_ROLES, headers)).values()) == {for_roles}, who
        assert set((await table(client, IN_PERSON, headers)).values()) == {in_person}, who


async def test_an_operators_session_opens_nothing_of_merchants(client):
    officer = await Officer(client).settle("owner", stepped_up=True)
    for row in decided():
        if row.door in {"session", "project"}:
            response = await client.request(row.method, filled(row.path), headers=officer.bearer)
            refused(response, 401, "INVALID_TOKEN")


async def test_a_token_for_one_audience_is_refused_by_the_other_even_under_the_same_key(client, live_merchant):
    """The keys differ, too: this is what would hold if one day they did not."""
    web = client._transport.app.state.web
    officer = await Officer(client).settle("owner")
    for of, audience in ((officer, MERCHANTS_AUDIENCE), (live_merchant, OPERATORS_AUDIENCE)):
        token = of.bearer["Authorization"].removeprefix("Bearer ")
        claims = jwt.decode(token, options={"verify_signature": False})
        key = b"one key for both kinds of people"
        forged = jwt.encode(claims, key, "HS256")
        other = AccessTokens(key, web.clock, lifetime_s=900, audience=audience)
        with pytest.raises(Exception, match="not valid"):
            other.session_of(forged)
        assert AccessTokens(key, web.clock, lifetime_s=900, audience=claims["aud"]).session_of(forged)
    assert web.operators.access_tokens._key != web.merchants.access_tokens._key


async def test_a_step_up_lasts_five_minutes(client, clock):
    officer = await Officer(client).settle("owner")
    put = ("PUT", "/api/admin/settings", {"payoutEnabled": True})
    refused(await officer.ask(*put), 403, "STEP_UP_REQUIRED")
    stepped = await officer.ask("POST", "/api/admin/auth/step-up", {"totpCode": officer.phone.next_code()})
    assert (stepped.status_code, stepped.json()["expiresIn"]) == (200, 300)
    assert (await officer.ask(*put)).status_code == 200
    clock.advance(timedelta(seconds=300).total_seconds())
    refused(await officer.ask(*put), 403, "STEP_UP_REQUIRED")


def test_a_route_without_a_permission_cannot_be_mounted():
    class Forgotten(Controller):
        @get("/")
        async def read(self) -> None: ...

    with pytest.raises(TypeError, match="names no permission"):
        admin_routes("/api/admin/forgotten", Forgotten)
    with pytest.raises(KeyError, match="no permission"):
        permits("everything")


def test_only_owners_manage_operators_settings_and_fees_and_everybody_reads():
    for name, permission in PERMISSIONS.items():
        assert tuple(permission.roles) == ROLES[: len(permission.roles)]
        assert (permission.roles == ROLES) == name.endswith(".read"), name
    for name in ("operators.manage", "settings.change", "plans.change"):
        assert tuple(PERMISSIONS[name].roles) == ("owner",)
    assert {name for name, one in PERMISSIONS.items() if not one.step_up and not name.endswith(".read")} == {
        "audit.verify",
        "chains.pause",
        "jobs.change",
        "merchants.sign_out",
        "reconcile.start",
        "webhooks.redeliver",
    }


async def test_without_an_admin_key_in_the_settings_no_key_is_good(client):
    web = client._transport.app.state.web
    kept, web.admin_key_hash = web.admin_key_hash, None
    try:
        for key in (ADMIN_KEY, ""):
            refused(await client.get("/api/admin/plans", headers={"X-Admin-Key": key}), 401, "ADMIN_KEY_INVALID")
        officer = await Officer(client).settle("auditor")
        assert (await officer.ask("GET", "/api/admin/plans")).status_code == 200
    finally:
        web.admin_key_hash = kept


async def test_a_merchant_with_the_address_of_an_operator_is_another_person(client):
    officer = await Officer(client).settle("owner", name="ada")
    merchant = Merchant(client)
    await merchant.register(officer.made.email)
    refused(await client.get("/api/admin/plans", headers=merchant.bearer), 401, "INVALID_TOKEN")
