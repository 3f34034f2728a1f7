"""What members see of others' projects, and what the table of roles is like. Who is let in: ``test_access.py``."""

from __future__ import annotations

import pytest
from litestar import Controller, get

from cambist.services.identity.api_keys import SCOPES
from cambist.services.identity.team import MEMBER_ROLES
from cambist_web.auth import owned_project_routes, session_routes
from cambist_web.permissions import MEMBER_PERMISSIONS, scopes_of
from tests.support.team import Teammate
from tests.support.web import refused


async def test_the_tokens_of_trackers_in_other_projects_are_not_shown(client, live_merchant):
    own = live_merchant.project_id
    tracker = {"name": "Mine", "url": "http://93.184.216.34/hook", "chain": "memory", "startBlock": 1}
    made = [await live_merchant.ask("POST", f"/api/dashboard/projects/{own}/trackers", tracker)]
    await live_merchant.add_project(mode="sandbox")
    path = f"/api/dashboard/projects/{live_merchant.project_id}/trackers"
    made.append(await live_merchant.ask("POST", path, tracker))
    shown = {one["webhook"]["webhookId"] for one in made}
    whole = await Teammate(client, live_merchant).sign_in("developer")
    some = await Teammate(client, live_merchant).sign_in("developer", name="eve", projects=[own])
    for member, seen in ((whole, shown), (some, {made[0]["webhook"]["webhookId"]})):
        listed = (await member.ask("GET", "/api/merchant/webhooks")).json()
        assert {one["webhookId"] for one in listed["webhooks"]} == seen
    listed = (await some.ask("GET", "/api/merchant/projects")).json()
    assert ([one["projectId"] for one in listed["projects"]], listed["total"]) == ([own], 1)
    refused(
        await some.ask("POST", "/api/webhook/create", tracker | {"projectId": live_merchant.project_id}),
        403,
        "PROJECT_NOT_OPEN",
    )


async def test_a_tracker_without_a_project_is_made_for_the_first_one_that_is_open_to_its_maker(client, live_merchant):
    first = live_merchant.project_id
    await live_merchant.add_project(mode="sandbox")
    second = live_merchant.project_id
    tracker = {"name": "Mine", "url": "http://93.184.216.34/hook", "chain": "memory", "startBlock": 1}
    whole = await Teammate(client, live_merchant).sign_in("developer")
    some = await Teammate(client, live_merchant).sign_in("developer", name="eve", projects=[second])
    for member, made_for in ((whole, first), (some, second)):
        answer = await member.ask("POST", "/api/webhook/create", tracker)
        assert (answer.status_code, answer.json()["webhook"]["projectId"]) == (201, made_for), answer.text


def test_a_route_without_a_permission_cannot_be_mounted():
    class Forgotten(Controller):
        @get("/")
        async def read(self) -> None: ...

    for mount in (session_routes, owned_project_routes):
        with pytest.raises(TypeError, match="names no permission"):
            mount("/api/dashboard/forgotten", Forgotten)


def test_the_table_of_roles_keeps_money_from_who_builds_and_secrets_from_who_looks():
    of = {role: {name for name, one in MEMBER_PERMISSIONS.items() if role in one.roles} for role in MEMBER_ROLES}
    assert of["owner"] == set(MEMBER_PERMISSIONS)
    assert of["owner"] - of["admin"] == {"team.recover"}
    assert of["viewer"] == {"self", "read", "withdrawals.read", "team.read"}
    assert of["viewer"] < of["finance"] & of["developer"]
    assert of["developer"] & {"payouts", "refunds", "exchange", "withdrawals", "approvals", "team.manage"} == set()
    assert of["finance"] & {"keys", "webhooks", "projects.change", "trackers", "team.manage", "approvals"} == set()
    assert set(SCOPES) <= set(MEMBER_PERMISSIONS)
    assert scopes_of("developer") == ["read", "payments", "accounts", "trackers"]
