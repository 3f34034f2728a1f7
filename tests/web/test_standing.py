"""What leaves access behind is done by who may do it when it is done, however long it has waited for a lock."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.authenticator import Authenticator
from tests.support.payout_env import person
from tests.support.team import Teammate
from tests.support.waiting import waits_for_a_lock
from tests.support.web import PASSWORD, Merchant, refused

PROJECT = "/api/merchant/projects/{project}"
SESSIONS = "/api/auth/sessions"
ENDPOINTS = f"{PROJECT}/webhook-endpoints"
HOOK = {"url": "https://thief.example/hook"}
TRACKER = HOOK | {"name": "Thief's", "chain": "memory", "startBlock": 0}
SAFE = {"chain": "memory", "address": person("thief"), "mode": "live"}

ACTS = [
    ("POST", f"{PROJECT}/api-keys", {"name": "thief's"}),
    ("POST", ENDPOINTS, HOOK),
    ("PATCH", f"{ENDPOINTS}/{{endpoint}}", HOOK),
    ("POST", f"{ENDPOINTS}/{{endpoint}}/rotate-secret", None),
    ("PATCH", PROJECT, {"paymentWebhookUrl": HOOK["url"]}),
    ("POST", f"{PROJECT}/rotate-webhook-secret", None),
    ("POST", "/api/merchant/projects", {"name": "Thief's", "mode": "live"}),
    ("POST", "/api/dashboard/approved-addresses", SAFE),
    ("POST", "/api/dashboard/projects/{project}/trackers", TRACKER),
    ("POST", "/api/webhook/create", TRACKER),
]
"""Requests that leave something by which money or news go somewhere, or somebody comes in again."""


@pytest.fixture
def merchant(stepped_up_merchant):
    return stepped_up_merchant


@pytest.fixture
async def waits(client, gateway, merchant):
    """Give what has an admin ask for something, and does this to the admin while that waits."""
    eve = await Teammate(client, merchant).sign_in("admin", name="eve")
    made = await merchant.ask("POST", ENDPOINTS.format(project=merchant.project_id), {"url": "https://shop.example/"})
    names = {"project": merchant.project_id, "endpoint": made["endpoint"]["endpointId"]}
    made = await _left(gateway)

    async def answer(act, statement):
        method, path, body = act
        if "approved" in path:
            body = body | {"totpCode": eve.phone.next_code()}
        async with gateway.db.transaction() as conn:
            for table in ("merchants", "projects"):
                await conn.exec_driver_sql(f"SELECT FROM {table} FOR UPDATE")
            await conn.exec_driver_sql(statement, (eve.pk,))
            asked = asyncio.create_task(eve.ask(method, path.format(**names), body))
            await waits_for_a_lock(conn, asked)
        told = await asked
        assert await _left(gateway) == made
        return told

    return answer


async def _left(gateway):
    """Return all that such acts leave behind."""
    tables = "api_keys", "webhook_endpoints", "projects", "approved_addresses", "trackers"
    async with gateway.db.autocommit() as conn:
        return [
            (await conn.exec_driver_sql(f"SELECT one::text FROM {table} one ORDER BY id")).scalars().all()  # noqa: S608
            for table in tables
        ]


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS, ids=lambda act: f"{act[0]} {act[1]}")
async def test_what_waits_while_its_session_is_ended_is_refused(waits, act):
    refused(await waits(act, "UPDATE sessions SET revoked_at = now() WHERE member_pk = $1"), 401, "SESSION_ENDED")


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS, ids=lambda act: f"{act[0]} {act[1]}")
async def test_what_waits_while_its_member_is_demoted_is_refused(waits, act):
    refused(await waits(act, "UPDATE members SET role = 'viewer' WHERE id = $1"), 403, "ROLE_NOT_ALLOWED")


async def test_what_waits_while_its_member_is_removed_is_refused(waits):
    refused(await waits(ACTS[0], "DELETE FROM members WHERE id = $1"), 401, "SESSION_ENDED")


async def test_what_waits_while_the_project_is_closed_to_its_member_is_refused(waits):
    closed = "UPDATE members SET role = 'developer', project_pks = '{}' WHERE id = $1"
    refused(await waits(ACTS[0], closed), 403, "PROJECT_NOT_OPEN")


async def test_a_key_gets_no_more_than_its_maker_may_when_it_is_made(client, gateway, merchant):
    eve = await Teammate(client, merchant).sign_in("admin", name="eve")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM projects FOR UPDATE")
        await conn.exec_driver_sql("UPDATE members SET role = 'developer' WHERE id = $1", (eve.pk,))
        asked = asyncio.create_task(eve.ask("POST", f"{PROJECT.format(project=merchant.project_id)}/api-keys"))
        await waits_for_a_lock(conn, asked)
    assert (await asked).json()["key"]["scopes"] == ["read", "payments", "accounts", "trackers"]


async def test_whoever_removes_a_member_waits_for_the_key_that_he_makes_and_takes_it_too(client, gateway, merchant):
    """The key's transaction is held open behind the project's lock, when it has looked at its maker already."""
    eve = await Teammate(client, merchant).sign_in("admin", name="eve")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM projects FOR UPDATE")
        issuing = asyncio.create_task(eve.ask("POST", f"{PROJECT.format(project=merchant.project_id)}/api-keys"))
        await waits_for_a_lock(conn, issuing)
        path = f"/api/dashboard/members/{eve.member_id}?revokeKeys=true"
        removing = asyncio.create_task(merchant.ask("DELETE", path))
        await waits_for_a_lock(conn, removing, number=2)
        assert not removing.done()
    issued = await issuing
    assert issued.status_code == 201
    assert (await removing)["keysRevoked"] == 1
    key = {"X-Api-Key": issued.json()["apiKey"]}
    refused(await client.get("/api/payment", headers=key), 401, "API_KEY_INVALID")


async def test_whoever_ends_a_session_waits_for_the_key_that_is_made_in_it(client, gateway, merchant):
    eve = await Teammate(client, merchant).sign_in("admin", name="eve")
    (session,) = (await eve.ask("GET", SESSIONS)).json()["sessions"]
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM projects FOR UPDATE")
        issuing = asyncio.create_task(eve.ask("POST", f"{PROJECT.format(project=merchant.project_id)}/api-keys"))
        await waits_for_a_lock(conn, issuing)
        ending = asyncio.create_task(eve.ask("DELETE", f"{SESSIONS}/{session['sessionId']}"))
        await waits_for_a_lock(conn, ending, number=2)
        assert not ending.done()
    assert (await issuing).status_code == 201
    assert (await ending).status_code == 200


async def test_an_authenticator_is_not_confirmed_by_a_session_that_was_ended_meanwhile(client, gateway):
    ada = Merchant(client)
    await ada.register("ada@shop.example")
    shown = await ada.ask("POST", "/api/dashboard/two-factor/enrol", {"password": PASSWORD})
    phone = Authenticator(shown["secret"], gateway.clock)
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM members FOR UPDATE")
        await conn.exec_driver_sql("UPDATE sessions SET revoked_at = now()")
        path, body = "/api/dashboard/two-factor/confirm", {"totpCode": phone.code()}
        asked = asyncio.create_task(client.post(path, json=body, headers=ada.bearer))
        await waits_for_a_lock(conn, asked)
    refused(await asked, 401, "SESSION_ENDED")
    async with gateway.db.autocommit() as conn:
        enabled = "SELECT count(*) FROM two_factor_states WHERE secret_encrypted IS NOT NULL"
        assert (await conn.exec_driver_sql(enabled)).scalar_one() == 0
