"""What the tables of single kinds of people leave open: several reasons at once, other methods, other spellings.

As in ``test_access.py``, bodies are wrong on purpose: whoever is let in is told so, and nothing happens.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from cambist.services.identity.team import MEMBER_ROLES
from cambist_web.permissions import MEMBER_PERMISSIONS
from tests.support.access import decided, filled
from tests.support.team import Teammate
from tests.support.web import refused

REFUSALS = {
    "API_KEY_MISSING": 401,
    "SCOPE_MISSING": 403,
    "SANDBOX_ONLY": 403,
    "LIVE_NOT_GRANTED": 403,
    "ROLE_NOT_ALLOWED": 403,
    "PROJECT_NOT_OPEN": 403,
    "PROJECTS_LIMITED": 403,
    "TWO_FACTOR_REQUIRED": 403,
    "STEP_UP_REQUIRED": 403,
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "OPTIONS")


def rows(*doors):
    return [row for row in decided() if row.door in doors]


async def table(client, wanted, headers, **ids):
    """Return why somebody is not let in, or None, for each route."""
    found = {}
    for row in wanted:
        body = {"no such field": 0} if row.method != "GET" else None
        answer = await client.request(row.method, filled(row.path, **ids), json=body, headers=headers)
        client.cookies.clear()
        assert answer.status_code != 500, answer.text
        code = None if answer.is_success else answer.json()["code"]
        if code in REFUSALS:
            refused(answer, REFUSALS[code], code)
        found[row.method, row.path] = code if code in REFUSALS else None
    return found


@pytest.mark.parametrize("role", MEMBER_ROLES)
async def test_a_role_comes_before_the_project_and_the_project_before_a_step_up_in_live_mode_alone(
    client, live_merchant, role
):
    live = live_merchant.project_id
    await live_merchant.add_project(mode="sandbox")
    projects = {"live": live, "sandbox": live_merchant.project_id}
    wanted = [row for row in rows("project") if row.step_up]  # the others are in test_team_access.py
    limits = [None] if role in {"owner", "admin"} else [None, [projects["sandbox"]]]
    for number, limit in enumerate(limits):
        member = await Teammate(client, live_merchant).settle(
            role, name=f"{role}{number}", projects=limit, enrolled=number == 0, stepped_up=False
        )
        for mode, project_id in projects.items():
            is_open = limit is None or project_id in limit
            expected = {}
            for row in wanted:
                permission = MEMBER_PERMISSIONS[row.member]
                expected[row.method, row.path] = (
                    "ROLE_NOT_ALLOWED"
                    if role not in permission.roles
                    else "PROJECT_NOT_OPEN"
                    if not is_open
                    else "STEP_UP_REQUIRED"
                    if row.step_up and mode == "live"
                    else None
                )
            assert await table(client, wanted, member.bearer, projectId=project_id) == expected, (mode, limit)


async def test_no_path_takes_a_method_that_nobody_decided_about_whoever_asks(client, live_merchant):
    """Where a credential is asked for, OPTIONS asks for it too, and says then which methods there are."""
    offered = defaultdict(set)
    for row in decided():
        offered[row.path].add(row.method)
    doors = {row.path: row.door for row in decided()}
    for path, methods in offered.items():
        one = filled(path, projectId=live_merchant.project_id)
        for method in sorted(set(METHODS) - methods - {"OPTIONS"}):
            for headers in ({}, live_merchant.bearer):
                answer = await client.request(method, one, headers=headers)
                assert answer.status_code == 405, (method, one, answer.status_code)
                if method != "HEAD":
                    refused(answer, 405, "METHOD_NOT_ALLOWED")
        asked = await client.request("OPTIONS", one)
        if doors[path]:
            assert asked.status_code == 401, one
            continue
        assert (asked.status_code, asked.content) == (204, b""), one
        assert set(asked.headers["allow"].split(", ")) == methods | {"OPTIONS"}, one


async def test_another_spelling_of_a_path_opens_nothing(client):
    for row in decided():
        if not row.door:
            continue
        path = filled(row.path)
        plain = await client.request(row.method, path)
        assert plain.status_code == 401, path
        for spelling in (f"{path}/", f"{path}//", path.replace("/api/", "/api//"), path.replace("/api/", "/API/")):
            answer = await client.request(row.method, spelling)
            assert answer.status_code in {401, 404}, (row.method, spelling, answer.status_code)
            if answer.status_code == 401:
                assert answer.json()["code"] == plain.json()["code"], spelling
