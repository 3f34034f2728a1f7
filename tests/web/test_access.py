"""Who is let in where: everybody who could knock and every route, each answer exact.

One product of role, route, owner, mode, scope and step-up. What lets somebody in follows from a route's row in
``tests/support/access.py`` alone, since its guards are what the row says: that is compared without a gateway. So each
person is tried on every kind of row, on the routes of that kind in turn, until each route has let somebody in and has
refused somebody. How a request leaves no trace, ``tests/support/knocking.py`` says.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import cycle, product

import pytest
from msgspec.structs import replace

from cambist.services.errors import ForbiddenError
from cambist.services.identity.operators import ROLES
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.identity.team import MEMBER_ROLES
from cambist_web.errors import camel
from cambist_web.permissions import MEMBER_PERMISSIONS, check_member
from tests.support.access import decided, found_in
from tests.support.knocking import MODES, SCOPES, Knocker, sign_in_everybody
from tests.support.payout_env import person
from tests.support.web import ADMIN_KEY, Merchant, refused, shown_app

pytestmark = pytest.mark.slow

ROWS = decided()
ADMIN = {"X-Admin-Key": ADMIN_KEY}
PROJECT_GUARDS = ("require_session", "require_project", "require_step_up")
GUARDS = {
    "key": {("require_key",)},
    "project": {PROJECT_GUARDS, (*PROJECT_GUARDS, "require_active")},
    "session": {("require_session",)},
    "operator": {("require_admin",)},
    "operator in person": {("require_operator",)},
    "creator": {("require_creator",)},
    "tracker": {("require_tracker",)},
    "": {(), ("refuse_other_sites",)},
}
CLOSED = "somebody else's"
NONE = "nobody's"


def kind_of(row):
    """Return all of a route that decides who is let in, but which of the permissions of the same roles it is."""
    if row.member is None:
        return row.door, row.scope, row.step_up
    permission = MEMBER_PERMISSIONS[row.member]
    return row.door, tuple(permission.roles), permission.whole, row.scope in {None, "read"}, row.step_up


class InTurn:
    """The routes of each kind behind some doors, a different one each time."""

    def __init__(self, *doors):
        of = defaultdict(list)
        for row in ROWS:
            if row.door in doors:
                of[kind_of(row)].append(row)
        self.rows = {row for rows in of.values() for row in rows}
        self._cycles = [cycle(rows) for rows in of.values()]

    def __iter__(self):
        return (next(one) for one in self._cycles)


@pytest.fixture
def plays():
    return {"everybody": sign_in_everybody, "ada": sign_in_ada}


async def sign_in_ada(client, clock):
    """Play somebody with a project of each mode, a second factor, and a session that has stepped up."""
    ada = await Merchant(client).open()
    ada.projects, ada.keys = {"live": ada.project_id}, {"live": ada.key}
    await ada.step_up()
    await ada.add_project(mode="sandbox")
    ada.projects["sandbox"] = ada.project_id
    return ada


@pytest.fixture
def ada(scene, client, clock):
    return scene.copy(client, clock)


@pytest.fixture
def everybody(scene, client, clock):
    return scene.copy(client, clock)


@pytest.fixture
def knocker(everybody, client):
    return Knocker(client)


async def take_live_back(client, everybody):
    path = f"/api/admin/merchants/{everybody.merchant_id}"
    assert (await client.put(path, json={"live": False}, headers=ADMIN)).status_code == 200


def handlers_of(app):
    """Yield every handler by its method and its path, in the spelling of the rows."""
    for route in app.routes:
        path = re.sub(r"\{(\w+)\}", lambda found: f"{{{camel(found[1])}}}", getattr(route, "path_format", ""))
        for handler in getattr(route, "route_handlers", ()):
            yield from ((method, path, handler) for method in handler.http_methods)


@pytest.fixture(scope="module")
def app():
    """Give an app without a gateway."""
    return shown_app()


def test_every_route_has_a_row_and_the_guards_that_the_row_says(app):
    assert set(found_in(app)) == {replace(row, own_code=False) for row in ROWS}
    guards = {
        (method, path): tuple(guard.__name__ for guard in handler.resolve_guards())
        for method, path, handler in handlers_of(app)
    }
    for row in ROWS:
        assert guards[row.method, row.path] in GUARDS[row.door], row


def test_every_route_for_members_lets_each_role_in_by_its_permission(app):
    """Each handler of the app by itself, as its guard asks: the requests below ask one of a kind."""
    permission_of = {(row.method, row.path): row.member for row in ROWS if row.member is not None}
    handlers = {(method, path): handler for method, path, handler in handlers_of(app)}
    assert set(permission_of.values()) == set(MEMBER_PERMISSIONS)
    for (role, limit), (route, name) in product(product(MEMBER_ROLES, (None, [7])), permission_of.items()):
        session = SessionPrincipal(
            session_id="ses_1", member_pk=1, member_id="mem_1", merchant_pk=1, merchant_id="mer_1",
            role=role, project_pks=limit, live=True,
        )  # fmt: skip
        permission, told = MEMBER_PERMISSIONS[name], None
        try:
            check_member(session, handlers[route])
        except ForbiddenError as error:
            told = error.code
        limited = "PROJECTS_LIMITED" if permission.whole and limit else None
        assert told == (limited if role in permission.roles else "ROLE_NOT_ALLOWED"), (route, role, limit)


def of_key(row, mode, scope, *, granted):
    if scope not in {"all", row.scope}:
        return "SCOPE_MISSING"
    return "LIVE_NOT_GRANTED" if mode == "live" and not granted and row.scope != "read" else None


async def test_a_key_is_let_in_by_its_scope_and_without_live_mode_reads_there_alone(client, clock, everybody, knocker):
    turns = InTurn("key")
    for granted in (True, False):
        if not granted:
            await take_live_back(client, everybody)
        for (mode, scope), headers in everybody.keys.items():
            for row in turns.rows if scope == "all" else turns:
                wanted = of_key(row, mode, scope, granted=granted)
                assert await knocker.knock(row, headers) == wanted, (row, mode, scope, granted)
    for row in turns.rows - knocker.refused:
        scope = next(one for one in SCOPES if one != row.scope)
        assert await knocker.knock(row, everybody.keys["live", scope]) == "SCOPE_MISSING", row
    assert knocker.let_in == knocker.refused == turns.rows
    for row in turns:
        assert await knocker.knock(row, everybody.elsewhere) == "IP_NOT_ALLOWED", row
    clock.advance(9)
    for row in turns:
        assert await knocker.knock(row, everybody.expiring) == "API_KEY_EXPIRED", row


def of_member(row, one, whose, *, granted):
    """Return why a member is not let in. The order counts: nobody is told of a project what the role does not see."""
    permission = MEMBER_PERMISSIONS[row.member]
    if one.role not in permission.roles:
        return "ROLE_NOT_ALLOWED"
    if permission.whole and one.open_to is not None:
        return "PROJECTS_LIMITED"
    if row.door == "project":
        if whose == NONE:
            return "PROJECT_NOT_FOUND"
        if whose == CLOSED:
            return "PROJECT_NOT_OWNED"
        if one.open_to not in {None, whose}:
            return "PROJECT_NOT_OPEN"
        if whose == "live" and not granted and row.scope not in {None, "read"}:
            return "LIVE_NOT_GRANTED"
    # What concerns the merchant as a whole takes a step-up in every mode, granted live mode or not.
    if row.step_up and one.step_up != "done" and (row.door != "project" or whose == "live"):
        return "STEP_UP_REQUIRED" if one.step_up == "not yet" else "TWO_FACTOR_REQUIRED"
    return None


@pytest.mark.parametrize("granted", [True, False])
async def test_a_member_is_let_in_by_role_project_mode_and_step_up(client, everybody, knocker, granted):
    if not granted:
        await take_live_back(client, everybody)
    inside, outside = InTurn("project"), InTurn("session", "creator")
    for one in everybody.members:
        for row in outside:
            wanted = of_member(row, one, None, granted=granted)
            assert await knocker.knock(row, one.headers) == wanted, (row, one, granted)
        # Whose project it is comes before the step-up, which the others' sessions show as well.
        for whose in (*MODES, CLOSED, NONE) if one.step_up == "not yet" else MODES:
            project_id = everybody.projects.get(whose, "prj_nobody")
            for row in inside:
                wanted = of_member(row, one, whose, granted=granted)
                assert await knocker.knock(row, one.headers, projectId=project_id) == wanted, (row, one, whose)
    owner = next(one for one in everybody.members if (one.role, one.step_up) == ("owner", "done"))
    for row in (inside.rows | outside.rows) - knocker.let_in:
        assert await knocker.knock(row, owner.headers, projectId=everybody.projects["sandbox"]) is None, row
    for row in inside.rows - knocker.refused:
        assert await knocker.knock(row, owner.headers, projectId="prj_nobody") == "PROJECT_NOT_FOUND", row
    assert knocker.refused >= inside.rows
    assert knocker.let_in == inside.rows | outside.rows


async def test_an_operator_is_let_in_by_role_and_step_up(everybody, knocker):
    for row in ROWS:
        if row.door not in {"operator", "operator in person"}:
            continue
        for one in everybody.operators:
            if row.door == "operator in person" or ROLES.index(one.role) <= ROLES.index(row.scope):
                wanted = "STEP_UP_REQUIRED" if row.step_up and not one.stepped_up else None
            else:
                wanted = "ROLE_NOT_ALLOWED"
            assert await knocker.knock(row, one.headers) == wanted, (row, one)
        assert await knocker.knock(row, ADMIN) == (None if row.door == "operator" else "SESSION_REQUIRED"), row


def credentials_of(everybody):
    """Return what strangers send, by header. What is wrong with a credential is the first word of its name."""
    key, owner = everybody.keys["live", "all"], everybody.operators[1].headers
    member = next(one.headers for one in everybody.members if one.step_up == "done")
    garbage = {"X-Api-Key": "ck_live_' OR 1=1 --", "Authorization": "Bearer e30.e30.", "X-Admin-Key": "x"}
    unknown = {"X-Auth-Token": "tok_" + "0" * 60}
    return {
        "nothing": {},
        "a key": key,
        "a key of the sandbox": everybody.keys["sandbox", "all"],
        "a member": member,
        "an operator": owner,
        "the admin key": ADMIN,
        "a tracker": everybody.tracker,
        "an unknown token": unknown,
        "a key as bearer": {"Authorization": f"Bearer {key['X-Api-Key']}"},
        "a bearer as key": {"X-Api-Key": member["Authorization"].removeprefix("Bearer ")},
        "an odd key": {"X-Api-Key": "ck_live_" + "0" * 500},
        "another scheme": {"Authorization": "Basic eDp5"},
        "garbage": garbage | unknown,
        "a wrong admin key": {"X-Admin-Key": "x" * 40},
        "a wrong admin key and an operator": {"X-Admin-Key": "x" * 40, **owner},
        "a member that left": everybody.ended["member"],
        "an operator that left": everybody.ended["operator"],
    }


GOOD_KEYS = {"a key", "a key of the sandbox"}
BAD_KEYS = {"a bearer as key", "an odd key", "garbage"}
BAD_ADMINS = {"garbage", "a wrong admin key", "a wrong admin key and an operator"}
BEARERS = {
    "a member": ("member", None),
    "an operator": ("operator", None),
    "a wrong admin key and an operator": ("operator", None),
    "a key as bearer": ("", "INVALID_TOKEN"),
    "garbage": ("", "INVALID_TOKEN"),
    "another scheme": ("", "SESSION_REQUIRED"),
    "a member that left": ("member", "SESSION_ENDED"),
    "an operator that left": ("operator", "SESSION_ENDED"),
}
"""Whose session is shown, and what is the matter with it."""
TOKENS = {"a tracker": None, "an unknown token": "AUTH_TOKEN_INVALID", "garbage": "AUTH_TOKEN_INVALID"}


def of_bearer(who, audience):
    whose, wrong = BEARERS.get(who, ("", "SESSION_REQUIRED"))
    return wrong if whose in {"", audience} else "INVALID_TOKEN"


def of_stranger(row, who):
    """Return why somebody is not let in, by the first credential that counts at the door."""
    key = "API_KEY_INVALID" if who in BAD_KEYS else None if who in GOOD_KEYS else "API_KEY_MISSING"
    admin = None if who == "the admin key" else "ADMIN_KEY_INVALID"
    shows_admin_key = who == "the admin key" or who in BAD_ADMINS
    by_door = {
        "": None,
        "key": key,
        "project": of_bearer(who, "member"),
        "session": of_bearer(who, "member"),
        "operator": of_bearer(who, "operator") if who in BEARERS and not shows_admin_key else admin,
        "operator in person": of_bearer(who, "operator"),
        "tracker": TOKENS.get(who, "AUTH_TOKEN_MISSING"),
        "creator": key,
    }
    if row.door == "creator" and key == "API_KEY_MISSING":
        return of_bearer(who, "member") if who in BEARERS else admin if shows_admin_key else key
    return by_door[row.door]


async def test_what_a_door_does_not_take_lets_nobody_in(everybody, knocker):
    """Every route, and every credential. Where nothing is asked for, everybody is let in."""
    project_id = everybody.projects["sandbox"]
    for who, headers in credentials_of(everybody).items():
        for row in ROWS:
            if row.step_up and who == "a member":
                continue  # this one's role and step-up are above
            assert await knocker.knock(row, headers, projectId=project_id) == of_stranger(row, who), (who, row)
    assert knocker.refused == {row for row in ROWS if row.door}
    assert knocker.let_in >= {row for row in ROWS if row.door in {"", "key", "tracker", "creator"}}


OWN_CODE = {
    "/api/dashboard/withdrawals": {
        "chain": "memory", "token": "USDX", "toAddress": "mem1", "amount": "1", "projectId": "{projectId}",
    },
    "/api/dashboard/approved-addresses": {"chain": "memory", "address": "mem1", "mode": "live"},
    "/api/dashboard/two-factor/enrol": {"password": "correct horse battery staple"},
    "/api/dashboard/two-factor/confirm": {},
    "/api/dashboard/two-factor/recovery-codes": {"password": "correct horse battery staple"},
    "/api/dashboard/two-factor/disable": {"password": "correct horse battery staple"},
    "/api/auth/step-up": {},
    "/api/auth/password": {"currentPassword": "correct horse battery staple", "newPassword": "quite another staple"},
}  # fmt: skip
"""What a request would be, but for the code."""


async def test_what_takes_a_code_of_its_own_goes_nowhere_without_one_or_with_a_wrong_one(client, ada, clock):
    """The change of a password alone takes a step-up in its place."""
    asking = {row.path: row for row in ROWS if row.own_code and row.door == "session"}
    assert set(asking) == set(OWN_CODE)
    body_of = {path: {**body} for path, body in OWN_CODE.items()}
    for mode in MODES:
        body_of["/api/dashboard/withdrawals"]["projectId"] = ada.projects[mode]
        body_of["/api/dashboard/withdrawals"]["toAddress"] = person()
        body_of["/api/dashboard/approved-addresses"] |= {"address": person(), "mode": mode}
        for path in set(asking) - {"/api/auth/password"}:
            response = await client.post(path, json=body_of[path], headers=ada.bearer)
            code = response.json()["code"]
            assert (response.status_code, code) in {(403, "TWO_FACTOR_REQUIRED"), (400, "VALIDATION_ERROR")}, path
            if code == "VALIDATION_ERROR":
                refused(response, 400, code, "totpCode")
    clock.advance(300)
    response = await client.post("/api/auth/password", json=body_of["/api/auth/password"], headers=ada.bearer)
    refused(response, 403, "STEP_UP_REQUIRED")
    for path in asking:
        if path.endswith("/confirm"):
            continue  # no secret waits for a code
        clock.advance(86_400)  # so that no code is too many
        bearer = await _signed_in(client, ada)
        body = body_of[path] | {"totpCode": ada.phone.wrong_code()}
        refused(await client.post(path, json=body, headers=bearer), 403, "TWO_FACTOR_INVALID")


async def _signed_in(client, person):
    body = {"email": person.email, "password": "correct horse battery staple", "totpCode": person.phone.code()}
    response = await client.post("/api/auth/login", json=body)
    client.cookies.clear()
    return {"Authorization": f"Bearer {response.json()['accessToken']}"}
