"""Operators' tokens, keys and permissions. Who is let in where: ``test_access.py``."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import jwt
import pytest
from litestar import Controller, get

from cambist.services.identity.operators import ROLES
from cambist_web.access_tokens import MERCHANTS_AUDIENCE, OPERATORS_AUDIENCE, AccessTokens
from cambist_web.operator_auth import admin_routes
from cambist_web.permissions import PERMISSIONS, permits
from tests.support.checkout import serving
from tests.support.operators import Officer
from tests.support.web import ADMIN_KEY, Merchant, lent_app, refused


async def test_a_token_for_one_audience_is_refused_by_the_other_even_under_the_same_key(client, live_merchant):
    """The keys differ, too: this is what would hold if one day they did not."""
    web = client._transport.app.state.web
    officer = await Officer(client).sign_in("owner")
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
    officer = await Officer(client).sign_in("owner")
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


async def test_what_is_kept_inside_is_found_by_its_letters_alone(gateway):
    """A proxy that keeps `/api/admin` from the public need not know how else a server may read a path."""
    same = ("/api/admin/plans", "/api/admin/plans/", "/metrics", "/operator", "/operator/merchants")
    others = (
        "//api/admin/plans", "/api//admin/plans", "/api/%61dmin/plans", "/api%2Fadmin/plans", "/%61pi/admin/plans",
        "/api/./admin/plans", "/api/x/../admin/plans", "/api/admi%6E/plans", "/%6detrics", "//metrics", "//operator",
        "/%6Fperator/merchants",
    )  # fmt: skip
    async with lent_app(gateway) as app, serving(app) as url:

        async def status(path):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            head = f"GET {path} HTTP/1.1\r\nHost: gateway\r\nX-Admin-Key: {ADMIN_KEY}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode())
            answer = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            return int(answer.split()[1])

        assert {path: await status(path) for path in same} == dict.fromkeys(same, 200)
        assert {path: await status(path) for path in others} == dict.fromkeys(others, 404)


async def test_without_an_admin_key_in_the_settings_no_key_is_good(client):
    web = client._transport.app.state.web
    kept, web.admin_key_hash = web.admin_key_hash, None
    try:
        for key in (ADMIN_KEY, ""):
            refused(await client.get("/api/admin/plans", headers={"X-Admin-Key": key}), 401, "ADMIN_KEY_INVALID")
        officer = await Officer(client).sign_in("auditor")
        assert (await officer.ask("GET", "/api/admin/plans")).status_code == 200
    finally:
        web.admin_key_hash = kept


async def test_a_merchant_with_the_address_of_an_operator_is_another_person(client):
    officer = await Officer(client).sign_in("owner", name="ada")
    merchant = Merchant(client)
    await merchant.register(officer.made.email)
    refused(await client.get("/api/admin/plans", headers=merchant.bearer), 401, "INVALID_TOKEN")
