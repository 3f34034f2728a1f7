"""Every route for members, and every role: what it may do, in which projects, exactly as the table says."""

from __future__ import annotations

import pytest
from litestar import Controller, get

from cambist.services.identity.api_keys import SCOPES
from cambist.services.identity.team import MEMBER_ROLES, WHOLE_ROLES
from cambist_web.auth import owned_project_routes, session_routes
from cambist_web.permissions import MEMBER_PERMISSIONS, scopes_of
from tests.support.access import decided, filled
from tests.support.team import Teammate
from tests.support.web import ADMIN_KEY, refused

REFUSALS = {"ROLE_NOT_ALLOWED", "PROJECTS_LIMITED", "PROJECT_NOT_OPEN", "STEP_UP_REQUIRED", "TWO_FACTOR_REQUIRED"}
ROWS = [row for row in decided() if row.door in {"project", "session", "creator"}]
ADMIN = {"X-Admin-Key": ADMIN_KEY}
LEAVES = "/api/dashboard/members/leave"


async def table(client, headers, project_id):
    """Return why somebody is not let in, or None, for each route. Bodies are wrong on purpose: nothing happens."""
    found = {}
    for row in ROWS:
        if row.path == LEAVES:
            continue
        body = {"no such field": 0} if row.method != "GET" else None
        response = await client.request(row.method, filled(row.path, projectId=project_id), json=body, headers=headers)
        client.cookies.clear()
        assert response.status_code < 500, response.text
        code = None if response.is_success else response.json()["code"]
        if code in REFUSALS:
            refused(response, 403, code)
        found[row.method, row.path] = code if code in REFUSALS else None
    return found


def expected(role, *, limited=False, closed=False):
    told = {}
    for row in ROWS:
        if row.path == LEAVES:
            continue
        permission = MEMBER_PERMISSIONS[row.member]
        told[row.method, row.path] = (
            "ROLE_NOT_ALLOWED"
            if role not in permission.roles
            else "PROJECTS_LIMITED"
            if permission.whole and limited
            else "PROJECT_NOT_OPEN"
            if closed and row.door == "project"
            else None
        )
    return told


@pytest.mark.parametrize("role", MEMBER_ROLES)
async def test_a_role_is_let_in_where_the_table_says_and_nowhere_else(client, live_merchant, role):
    member = await Teammate(client, live_merchant).settle(role)
    found = await table(client, member.bearer, live_merchant.project_id)
    assert found == expected(role)
    assert list(found.values()).count(None) > 20


@pytest.mark.parametrize("role", [role for role in MEMBER_ROLES if role not in WHOLE_ROLES])
async def test_whoever_has_some_projects_alone_is_let_into_those_and_not_into_what_concerns_all(
    client, live_merchant, role
):
    own = live_merchant.project_id
    await live_merchant.add_project(mode="sandbox")
    other = live_merchant.project_id
    member = await Teammate(client, live_merchant).settle(role, projects=[own])
    assert await table(client, member.bearer, own) == expected(role, limited=True)
    assert await table(client, member.bearer, other) == expected(role, limited=True, closed=True)
    listed = await member.ask("GET", "/api/merchant/projects")
    assert [one["projectId"] for one in listed.json()["projects"]] == [own]
    assert listed.json()["total"] == 1


async def test_the_tokens_of_trackers_in_other_projects_are_not_shown(client, live_merchant):
    own = live_merchant.project_id
    tracker = {"name": "Mine", "url": "http://93.184.216.34/hook", "chain": "memory", "startBlock": 1}
    made = [await live_merchant.ask("POST", f"/api/dashboard/projects/{own}/trackers", tracker)]
    await live_merchant.add_project(mode="sandbox")
    path = f"/api/dashboard/projects/{live_merchant.project_id}/trackers"
    made.append(await live_merchant.ask("POST", path, tracker))
    shown = {one["webhook"]["webhookId"] for one in made}
    whole = await Teammate(client, live_merchant).settle("developer")
    some = await Teammate(client, live_merchant).settle("developer", name="eve", projects=[own])
    for member, seen in ((whole, shown), (some, {made[0]["webhook"]["webhookId"]})):
        listed = (await member.ask("GET", "/api/merchant/webhooks")).json()
        assert {one["webhookId"] for one in listed["webhooks"]} == seen
    refused(
        await some.ask("POST", "/api/webhook/create", tracker | {"projectId": live_merchant.project_id}),
        403,
        "PROJECT_NOT_OPEN",
    )


async def test_live_mode_asks_for_a_step_up_before_a_team_is_changed_and_without_it_nothing_does(client, live_merchant):
    """A merchant without a grant has no money that an intruder could reach by a member of his."""
    rows = [row for row in ROWS if row.door == "session" and row.step_up]
    assert {row.member for row in rows} == {"team.manage", "team.recover"}
    owner = await Teammate(client, live_merchant).settle("owner", stepped_up=False)
    for live, refusal in ((True, "STEP_UP_REQUIRED"), (False, None)):
        path = f"/api/admin/merchants/{live_merchant.merchant_id}"
        assert (await client.put(path, json={"live": live}, headers=ADMIN)).status_code == 200
        for row in rows:
            answer = await owner.ask(row.method, filled(row.path), {"no such field": 0})
            code = answer.json()["code"]
            assert (code if code in REFUSALS else None) == refusal


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
