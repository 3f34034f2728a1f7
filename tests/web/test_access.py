"""Every route, and everybody who could knock: door, credential, scope, step-up, mode and owner, each answer exact.

The routes are the app's own (``tests/rules/test_access.py`` holds that the table knows them all). Bodies are wrong on
purpose: whoever is let in is told so about the body, or that there is no such thing, and nothing happens.
"""

from __future__ import annotations

from datetime import timedelta
from typing import get_args

import pytest

from cambist.services.identity.api_keys import Scope
from tests.support.access import Access, decided, filled
from tests.support.tracker_api import make
from tests.support.web import ADMIN_KEY, Merchant, refused

SCOPES = get_args(Scope)
REFUSALS = {
    "API_KEY_MISSING": 401,
    "API_KEY_INVALID": 401,
    "API_KEY_EXPIRED": 401,
    "IP_NOT_ALLOWED": 403,
    "SCOPE_MISSING": 403,
    "SESSION_REQUIRED": 401,
    "INVALID_TOKEN": 401,
    "PROJECT_NOT_OWNED": 403,
    "LIVE_NOT_GRANTED": 403,
    "TWO_FACTOR_REQUIRED": 403,
    "STEP_UP_REQUIRED": 403,
    "ADMIN_KEY_INVALID": 401,
    "AUTH_TOKEN_MISSING": 401,
    "AUTH_TOKEN_INVALID": 401,
}
"""Every way of not being let in, and its status."""

STRANGERS = {
    "nobody": {},
    "operator": {"X-Admin-Key": ADMIN_KEY},
    "tracker": {"X-Auth-Token": "tok_" + "0" * 60},
    "garbage": {"X-Api-Key": "ck_live_' OR 1=1 --", "Authorization": "Bearer e30.e30.", "X-Admin-Key": "x"},
}
MODES = ("live", "sandbox")


def rows(*doors: str) -> list[Access]:
    return [row for row in decided() if row.door in doors]


async def answered(client, row, headers, **ids):
    """Return why somebody is not let in, or None: the code of the answer, if it is one of the refusals."""
    body = {"no such field": 0} if row.method != "GET" else None
    response = await client.request(row.method, filled(row.path, **ids), json=body, headers=headers)
    client.cookies.clear()
    assert response.status_code < 500 or response.json()["code"] == "PAYOUT_DISABLED", response.text
    code = None if response.is_success else response.json()["code"]
    if code in REFUSALS:
        refused(response, REFUSALS[code], code)
        return code
    return None


async def table(client, wanted, who, **ids):
    """Return what each route answers to somebody."""
    return {(row.method, row.path): await answered(client, row, who, **ids) for row in wanted}


class Person(Merchant):
    """A merchant with a project of each mode."""

    def __init__(self, client):
        super().__init__(client)
        self.projects, self.keys = {}, {}

    async def settle(self, name, *, enrolled=True):
        await self.register(f"{name}@shop.example")
        for mode in MODES:
            await self.add_project(mode=mode)
            self.projects[mode], self.keys[mode] = self.project_id, self.key
        if enrolled:
            await self.step_up()
        return self


async def take_live_back(client, person):
    path = f"/api/admin/merchants/{person.merchant_id}"
    assert (await client.put(path, json={"live": False}, headers=STRANGERS["operator"])).status_code == 200


async def settle_ada(client, clock):
    return await Person(client).settle("ada")


@pytest.fixture
def plays():
    return {"ada": settle_ada}


@pytest.fixture
def ada(scene, client, clock):
    """Give somebody with everything: live mode, a second factor, and a session that has stepped up."""
    return scene.copy(client, clock)


async def test_a_key_is_let_in_where_its_scope_says_in_both_modes(client, ada):
    for mode in MODES:
        assert set((await table(client, rows("key"), ada.keys[mode])).values()) == {None}
        for scope in SCOPES:
            ada.project = {"projectId": ada.projects[mode], "mode": mode}
            await ada.add_key(scopes=[scope])
            expected = {(row.method, row.path): None if row.scope == scope else "SCOPE_MISSING" for row in rows("key")}
            assert await table(client, rows("key"), ada.key) == expected, (mode, scope)


async def test_a_key_that_is_too_old_or_elsewhere_is_let_in_nowhere(client, ada, clock):
    await ada.add_key(allowedIps=["203.0.113.7"])
    assert set((await table(client, rows("key"), ada.key)).values()) == {"IP_NOT_ALLOWED"}
    await ada.add_key(expiresAt=(clock.now() + timedelta(seconds=9)).isoformat())
    clock.advance(9)
    assert set((await table(client, rows("key"), ada.key)).values()) == {"API_KEY_EXPIRED"}


async def test_the_keys_of_who_has_live_mode_no_more_read_in_it_and_do_everything_in_the_sandbox(client, ada):
    await take_live_back(client, ada)
    expected = {(row.method, row.path): None if row.scope == "read" else "LIVE_NOT_GRANTED" for row in rows("key")}
    assert await table(client, rows("key"), ada.keys["live"]) == expected
    assert set((await table(client, rows("key"), ada.keys["sandbox"])).values()) == {None}


async def test_who_has_no_key_is_let_in_nowhere_where_one_is_asked_for(client, ada):
    for who, headers in {**STRANGERS, "session": ada.bearer}.items():
        expected = "API_KEY_INVALID" if who == "garbage" else "API_KEY_MISSING"
        assert set((await table(client, rows("key"), headers)).values()) == {expected}, who


async def test_who_has_no_session_is_let_in_nowhere_where_one_is_asked_for(client, ada):
    for who, headers in {**STRANGERS, **ada.keys}.items():
        expected = "INVALID_TOKEN" if who == "garbage" else "SESSION_REQUIRED"
        found = await table(client, rows("project", "session"), headers, projectId=ada.projects["live"])
        assert set(found.values()) == {expected}, who


async def test_who_has_no_token_of_a_tracker_is_let_in_nowhere_where_one_is_asked_for(client, ada):
    for who, headers in {**STRANGERS, **ada.keys, "session": ada.bearer}.items():
        expected = "AUTH_TOKEN_INVALID" if who == "tracker" else "AUTH_TOKEN_MISSING"
        assert set((await table(client, rows("tracker"), headers)).values()) == {expected}, who


async def test_a_trackers_token_is_let_in_wherever_one_is_asked_for_and_nowhere_else(client, ada):
    token = (await make(client, ada.keys["sandbox"])).token
    for row in rows("tracker"):
        assert await answered(client, row, token) is None, row
        if row.path.endswith("regenerate-secret"):
            token = (await make(client, ada.keys["sandbox"])).token
    other = rows("key", "project", "session", "operator", "creator")
    found = await table(client, other, token, projectId=ada.projects["sandbox"])
    assert set(found.values()) == {"API_KEY_MISSING", "SESSION_REQUIRED", "ADMIN_KEY_INVALID"}


async def test_a_tracker_is_made_by_key_session_or_operator_and_by_nobody_else(client, ada):
    for headers in (*ada.keys.values(), ada.bearer, STRANGERS["operator"]):
        assert set((await table(client, rows("creator"), headers)).values()) == {None}
    await ada.add_key(scopes=[scope for scope in SCOPES if scope != "trackers"])
    refusals = {"nobody": "API_KEY_MISSING", "tracker": "API_KEY_MISSING", "garbage": "API_KEY_INVALID"}
    for who, headers in {**{who: STRANGERS[who] for who in refusals}, "too little": ada.key}.items():
        expected = refusals.get(who, "SCOPE_MISSING")
        assert set((await table(client, rows("creator"), headers)).values()) == {expected}, who


async def test_a_session_that_has_stepped_up_is_let_in_everywhere_among_its_own(client, ada):
    for mode in MODES:
        found = await table(client, rows("project"), ada.bearer, projectId=ada.projects[mode])
        assert set(found.values()) == {None}, (mode, found)
    assert set((await table(client, rows("session"), ada.bearer)).values()) == {None}


@pytest.mark.parametrize("enrolled, refusal", [(True, "STEP_UP_REQUIRED"), (False, "TWO_FACTOR_REQUIRED")])
async def test_a_session_that_has_not_is_let_in_where_no_live_money_or_access_is_at_stake(
    client, clock, enrolled, refusal
):
    dora = await Person(client).settle("dora", enrolled=enrolled)
    clock.advance(300)
    expected = {(row.method, row.path): refusal if row.step_up else None for row in rows("project")}
    assert list(expected.values()).count(refusal) > 8
    assert await table(client, rows("project"), dora.bearer, projectId=dora.projects["live"]) == expected
    found = await table(client, rows("project"), dora.bearer, projectId=dora.projects["sandbox"])
    assert set(found.values()) == {None}
    expected = {(row.method, row.path): refusal if row.step_up else None for row in rows("session")}
    assert await table(client, rows("session"), dora.bearer) == expected


async def test_the_session_of_who_has_live_mode_no_more_only_reads_there(client, ada):
    await take_live_back(client, ada)
    expected = {
        (row.method, row.path): None if row.scope in {None, "read"} else "LIVE_NOT_GRANTED" for row in rows("project")
    }
    assert await table(client, rows("project"), ada.bearer, projectId=ada.projects["live"]) == expected
    found = await table(client, rows("project"), ada.bearer, projectId=ada.projects["sandbox"])
    assert set(found.values()) == {None}


async def test_nobody_is_let_into_a_project_of_somebody_else(client, ada):
    bob = await Person(client).settle("bob")
    for mode in MODES:
        found = await table(client, rows("project"), bob.bearer, projectId=ada.projects[mode])
        assert set(found.values()) == {"PROJECT_NOT_OWNED"}, mode


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
    asking = {row.path: row for row in rows("session") if row.own_code}
    assert set(asking) == set(OWN_CODE)
    body_of = {path: {**body} for path, body in OWN_CODE.items()}
    for mode in MODES:
        body_of["/api/dashboard/withdrawals"]["projectId"] = ada.projects[mode]
        address = await _some_address(client, ada)
        body_of["/api/dashboard/withdrawals"]["toAddress"] = address
        body_of["/api/dashboard/approved-addresses"] |= {"address": address, "mode": mode}
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


async def _some_address(client, person):
    found = await client.get("/api/merchant/wallet/addresses", headers=person.keys["live"])
    return found.json()["addresses"][0]["address"]


async def _signed_in(client, person):
    body = {"email": person.email, "password": "correct horse battery staple", "totpCode": person.phone.code()}
    response = await client.post("/api/auth/login", json=body)
    client.cookies.clear()
    return {"Authorization": f"Bearer {response.json()['accessToken']}"}


async def test_only_the_operator_is_let_in_where_the_operator_is_asked_for(client, ada):
    assert set((await table(client, rows("operator"), STRANGERS["operator"])).values()) == {None}
    others = {name: who for name, who in STRANGERS.items() if name != "operator"}
    for who, headers in {**others, **ada.keys, "session": ada.bearer}.items():
        expected = "INVALID_TOKEN" if who == "session" else "ADMIN_KEY_INVALID"
        assert set((await table(client, rows("operator"), headers)).values()) == {expected}, who


async def test_everybody_is_let_in_where_nothing_is_asked_for(client, ada):
    for who, headers in {**STRANGERS, **ada.keys, "session": ada.bearer}.items():
        found = await table(client, rows(""), headers)
        # Without its cookie nobody is told the next access token.
        assert found.pop(("POST", "/api/auth/refresh")) == "SESSION_REQUIRED"
        assert found.pop(("POST", "/api/admin/auth/refresh")) == "SESSION_REQUIRED"
        assert set(found.values()) == {None}, who
