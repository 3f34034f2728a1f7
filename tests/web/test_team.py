"""A merchant's team: invited, joining, changed, leaving, removed, and let back in."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.audit.seals import seal
from cambist.services.audit.verify import verify
from tests.support.authenticator import Authenticator
from tests.support.team import Teammate
from tests.support.waiting import waits_for_a_lock
from tests.support.web import PASSWORD, Merchant, refused

MEMBERS, INVITATIONS = "/api/dashboard/members", "/api/dashboard/invitations"
JOIN = "/api/auth/invitations"
CHOSEN = "a password that was chosen"


async def post(client, path, body):
    response = await client.post(path, json=body)
    client.cookies.clear()
    return response


async def sign_in(client, email, password=PASSWORD, **more):
    return await post(client, "/api/auth/login", {"email": email, "password": password, **more})


async def invite(who, role="viewer", email="eve@team.example", **more):
    body = {"email": email, "name": "Eve", "role": role, **more}
    headers = who.bearer
    return await who.client.post(INVITATIONS, json=body, headers=headers)


def token_of(answer):
    return answer.json()["link"].partition("#")[2]


async def join(client, token, password=PASSWORD):
    return await post(client, f"{JOIN}/accept", {"token": token, "password": password})


async def back_in(client, made):
    """Use the link that letting a member back in has answered."""
    body = {"token": token_of(made), "password": CHOSEN}
    return await post(client, "/api/auth/password-reset/confirm", body)


async def me_of(client, who):
    return (await client.get(f"{MEMBERS}/me", headers=who.bearer)).json()


@pytest.fixture
def merchant(stepped_up_merchant):
    """Give an owner whose session has stepped up."""
    return stepped_up_merchant


@pytest.fixture
async def other(client):
    """Give the owner of another merchant."""
    merchant = Merchant(client)
    await merchant.register("other@shop.example")
    return await Teammate(client, merchant).sign_in("owner", name="stranger")


@pytest.fixture
async def team(client, merchant):
    """Give a merchant, and one member of each role but owner."""
    roles = ("admin", "finance", "developer", "viewer")
    return merchant, {role: await Teammate(client, merchant).sign_in(role) for role in roles}


async def test_who_is_invited_reads_to_what_sets_a_password_and_signs_in_as_himself(client, merchant):
    made = await invite(merchant, "finance", projectIds=[merchant.project_id])
    assert made.status_code == 201, made.text
    assert made.json()["expiresIn"] == 3 * 86_400
    token = token_of(made)
    page = made.json()["link"].removeprefix("http://gateway.example").partition("#")[0]
    assert page == "/dashboard/join"
    told = (await post(client, f"{JOIN}/read", {"token": token})).json()["invitation"]
    assert told == {
        "merchantName": "Ada's Shop", "email": "eve@team.example", "name": "Eve", "role": "finance",
    }  # fmt: skip
    refused(await sign_in(client, "eve@team.example"), 401, "INVALID_CREDENTIALS")
    refused(await join(client, token, "eve@team.example"), 400, "VALIDATION_ERROR", "password")
    assert (await join(client, token)).status_code == 200
    refused(await join(client, token), 400, "INVITATION_INVALID")
    signed_in = await sign_in(client, "eve@team.example")
    bearer = {"Authorization": f"Bearer {signed_in.json()['accessToken']}"}
    assert signed_in.json()["merchant"]["merchantId"] == merchant.merchant_id
    me = (await client.get(f"{MEMBERS}/me", headers=bearer)).json()
    assert (me["member"]["role"], me["member"]["projectIds"]) == ("finance", [merchant.project_id])
    assert "payouts" in me["permissions"]
    assert "keys" not in me["permissions"]
    listed = (await client.get(MEMBERS, headers=bearer)).json()
    assert [(one["email"], one["role"]) for one in listed["members"]] == [
        (merchant.email, "owner"), ("eve@team.example", "finance"),
    ]  # fmt: skip
    assert (await client.get(INVITATIONS, headers=bearer)).json()["invitations"] == []


async def test_an_invitation_is_good_once_for_a_while_and_until_it_is_taken_back_or_replaced(client, merchant, clock):
    first, second = token_of(await invite(merchant)), await invite(merchant, "developer")
    refused(await join(client, first), 400, "INVITATION_INVALID")
    listed = (await merchant.ask("GET", INVITATIONS))["invitations"]
    assert [(one["role"], one["invitedBy"]) for one in listed] == [
        ("developer", (await me_of(client, merchant))["member"]["memberId"])
    ]
    path = f"{INVITATIONS}/{second.json()['invitation']['invitationId']}"
    assert (await client.delete(path, headers=merchant.bearer)).status_code == 200
    refused(await client.delete(path, headers=merchant.bearer), 404, "INVITATION_NOT_FOUND")
    refused(await join(client, token_of(second)), 400, "INVITATION_INVALID")
    third = token_of(await invite(merchant))
    clock.advance(3 * 86_400)
    refused(await post(client, f"{JOIN}/read", {"token": third}), 400, "INVITATION_INVALID")
    refused(await join(client, third), 400, "INVITATION_INVALID")


async def test_two_who_open_one_link_at_once_make_one_member(client, merchant):
    token = token_of(await invite(merchant))
    answers = await asyncio.gather(*(join(client, token) for _ in range(3)))
    assert sorted(one.status_code for one in answers) == [200, 400, 400]
    assert (await merchant.ask("GET", MEMBERS))["total"] == 2


async def test_an_address_that_signs_in_already_cannot_be_invited_nor_join(client, merchant):
    refused(await invite(merchant, email=merchant.email.upper()), 409, "EMAIL_TAKEN")
    token = token_of(await invite(merchant))
    await Merchant(client).register("eve@team.example")
    refused(await join(client, token), 409, "EMAIL_TAKEN")


async def test_a_team_has_so_many_members_and_no_more(client, merchant, monkeypatch):
    monkeypatch.setattr("cambist.services.identity.invitations.MEMBERS_MAX", 3)
    for name in ("eve", "bob"):
        assert (await invite(merchant, email=f"{name}@team.example")).status_code == 201
    refused(await invite(merchant, email="joe@team.example"), 409, "TOO_MANY_MEMBERS")
    assert (await invite(merchant, email="bob@team.example")).status_code == 201, "in the place of the one before"


async def test_bad_input_is_told_by_field(client, merchant, other):
    made = await other.ask("POST", "/api/merchant/projects", {"name": "Theirs", "mode": "sandbox"})
    foreign = made.json()["project"]["projectId"]
    for wrong, field in (
        ({"email": "nobody"}, "email"),
        ({"role": "king"}, "role"),
        ({"name": " "}, "name"),
        ({"projectIds": []}, "projectIds"),
        ({"projectIds": [foreign]}, "projectIds"),
        ({"projectIds": [merchant.project_id], "role": "admin"}, "projectIds"),
    ):
        body = {"email": "eve@team.example", "name": "Eve", "role": "viewer"} | wrong
        answer = await client.post(INVITATIONS, json=body, headers=merchant.bearer)
        refused(answer, 400, "VALIDATION_ERROR", field)
    assert (await merchant.ask("GET", INVITATIONS))["total"] == 0


async def test_nobody_replaces_a_members_projects_as_somebody_else_has_left_them_unseen(client, team):
    merchant, members = team
    path, wanted = f"{MEMBERS}/{members['finance'].member_id}", {"projectIds": [merchant.project_id]}
    refused(await client.patch(path, json=wanted, headers=merchant.bearer), 400, "VALIDATION_ERROR", "version")
    first = (await merchant.ask("PATCH", path, {"version": 0} | wanted))["member"]
    assert (first["version"], first["projectIds"]) == (1, [merchant.project_id])
    stale = {"version": 0, "projectIds": None}
    refused(await client.patch(path, json=stale, headers=merchant.bearer), 409, "VERSION_MISMATCH")
    stale = {"version": 0, "role": "viewer"}
    refused(await client.patch(path, json=stale, headers=merchant.bearer), 409, "VERSION_MISMATCH")
    read = [one for one in (await merchant.ask("GET", MEMBERS))["members"] if one["memberId"] == first["memberId"]]
    assert read == [first]
    second = (await merchant.ask("PATCH", path, {"version": 1, "projectIds": None}))["member"]
    assert (second["version"], second["projectIds"], second["role"]) == (2, None, "finance")
    assert (await merchant.ask("PATCH", path, {"role": "viewer"}))["member"]["version"] == 3


async def test_a_role_that_is_changed_holds_from_the_next_request_on(client, team):
    merchant, members = team
    finance = members["finance"]
    payout = f"/api/dashboard/projects/{merchant.project_id}/wallet/payout"
    refused(await finance.ask("POST", payout, {"no such field": 0}), 400, "VALIDATION_ERROR")
    path = f"{MEMBERS}/{finance.member_id}"
    changed = await merchant.ask("PATCH", path, {"version": 0, "role": "viewer", "projectIds": [merchant.project_id]})
    assert (changed["member"]["role"], changed["member"]["projectIds"]) == ("viewer", [merchant.project_id])
    refused(await finance.ask("POST", payout, {"no such field": 0}), 403, "ROLE_NOT_ALLOWED")
    changed = await merchant.ask("PATCH", path, {"role": "admin"})
    assert changed["member"]["projectIds"] is None, "admins have every project"
    assert (await merchant.ask("PATCH", path, {}))["member"]["role"] == "admin"


async def test_admins_manage_everybody_but_owners(client, team):
    merchant, members = team
    admin, viewer = members["admin"], members["viewer"]
    owner_id = (await me_of(client, merchant))["member"]["memberId"]
    assert (await admin.ask("PATCH", f"{MEMBERS}/{viewer.member_id}", {"role": "developer"})).status_code == 200
    assert (await invite(admin, "admin")).status_code == 201
    for answer in (
        await invite(admin, "owner", email="bob@team.example"),
        await admin.ask("PATCH", f"{MEMBERS}/{viewer.member_id}", {"role": "owner"}),
        await admin.ask("PATCH", f"{MEMBERS}/{owner_id}", {"role": "viewer"}),
        await admin.ask("DELETE", f"{MEMBERS}/{owner_id}"),
        await admin.ask("POST", f"{MEMBERS}/{viewer.member_id}/two-factor/reset"),
    ):
        refused(answer, 403, "ROLE_NOT_ALLOWED")


async def test_members_and_invitations_of_other_merchants_are_not_there(client, team, other):
    merchant, members = team
    path = f"{MEMBERS}/{members['viewer'].member_id}"
    for method, rest, body in (
        ("PATCH", "", {"role": "admin"}), ("DELETE", "", None), ("POST", "/two-factor/reset", None),
    ):  # fmt: skip
        refused(await other.ask(method, path + rest, body), 404, "MEMBER_NOT_FOUND")
    invited = (await invite(merchant)).json()["invitation"]["invitationId"]
    refused(await other.ask("DELETE", f"{INVITATIONS}/{invited}"), 404, "INVITATION_NOT_FOUND")
    for path, own in ((MEMBERS, 2), (INVITATIONS, 0)):
        assert (await other.ask("GET", path)).json()["total"] == own


async def test_who_is_removed_is_out_at_once_and_invites_nobody_any_more(client, team):
    merchant, members = team
    admin = members["admin"]
    token = token_of(await invite(admin))
    assert (await merchant.ask("DELETE", f"{MEMBERS}/{admin.member_id}"))["keysRevoked"] == 0
    refused(await admin.ask("GET", MEMBERS), 401, "SESSION_ENDED")
    refused(await sign_in(client, admin.email), 401, "INVALID_CREDENTIALS")
    refused(await join(client, token), 400, "INVITATION_INVALID")
    assert (await invite(merchant, email=admin.email)).status_code == 201, "the address is free again"


async def test_who_manages_the_team_no_more_has_no_invitation_out(client, team):
    merchant, members = team
    token = token_of(await invite(members["admin"]))
    await merchant.ask("PATCH", f"{MEMBERS}/{members['admin'].member_id}", {"role": "finance"})
    refused(await join(client, token), 400, "INVITATION_INVALID")


async def test_an_owner_who_is_one_no_more_makes_no_owner(client, merchant):
    ann = await Teammate(client, merchant).sign_in("owner", name="ann")
    owner, viewer = [await invite(ann, role, email=f"{role}@team.example") for role in ("owner", "viewer")]
    await merchant.ask("PATCH", f"{MEMBERS}/{ann.member_id}", {"role": "admin"})
    refused(await join(client, token_of(owner)), 400, "INVITATION_INVALID")
    assert [one["role"] for one in (await merchant.ask("GET", INVITATIONS))["invitations"]] == ["viewer"]
    assert (await join(client, token_of(viewer))).status_code == 200, "which admins may give"


async def test_who_joins_while_the_inviter_is_demoted_is_refused(client, gateway, merchant):
    ann = await Teammate(client, merchant).sign_in("owner", name="ann")
    token = token_of(await invite(ann, "owner"))
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM merchants FOR UPDATE")
        await conn.exec_driver_sql("UPDATE members SET role = 'admin' WHERE id = $1", (ann.pk,))
        joining = asyncio.create_task(join(client, token))
        await waits_for_a_lock(conn, joining)
    refused(await joining, 400, "INVITATION_INVALID")
    assert [one["role"] for one in (await merchant.ask("GET", MEMBERS))["members"]] == ["owner", "admin"]


async def test_keys_stay_when_their_maker_goes_unless_they_are_revoked_with_him(client, team):
    merchant, members = team
    developer = members["developer"]
    keys = f"/api/merchant/projects/{merchant.project_id}/api-keys"
    made = (await developer.ask("POST", keys, {"name": "Till"})).json()
    assert made["key"]["createdBy"] == developer.member_id
    assert made["key"]["scopes"] == ["read", "payments", "accounts", "trackers"], "what the maker may do"
    refused(await developer.ask("POST", keys, {"scopes": ["read", "payouts"]}), 403, "SCOPE_NOT_ALLOWED")
    bearer = {"X-Api-Key": made["apiKey"]}
    await merchant.ask("PATCH", f"{MEMBERS}/{developer.member_id}", {"role": "viewer"})
    assert (await client.get("/api/payment", headers=bearer)).status_code == 200
    path = f"{MEMBERS}/{developer.member_id}?revokeKeys=true"
    assert (await merchant.ask("DELETE", path))["keysRevoked"] == 1
    refused(await client.get("/api/payment", headers=bearer), 401, "API_KEY_INVALID")
    assert (await client.get("/api/payment", headers=merchant.key)).status_code == 200, "another's"


async def test_the_last_owner_stays_an_owner_and_stays(client, team):
    merchant, members = team
    mine = f"{MEMBERS}/{(await me_of(client, merchant))['member']['memberId']}"
    for method, path, body in (
        ("PATCH", mine, {"role": "admin"}),
        ("DELETE", mine, None),
        ("POST", f"{MEMBERS}/leave", None),
    ):
        answer = await client.request(method, path, json=body, headers=merchant.bearer)
        refused(answer, 409, "LAST_OWNER")
    await merchant.ask("PATCH", f"{MEMBERS}/{members['admin'].member_id}", {"role": "owner"})
    assert (await merchant.ask("POST", f"{MEMBERS}/leave"))["success"]
    refused(await client.get(MEMBERS, headers=merchant.bearer), 401, "SESSION_ENDED")


async def test_of_two_owners_who_demote_each_other_at_once_one_is_left(client, merchant):
    both = [await Teammate(client, merchant).sign_in("owner", name=name) for name in ("ann", "ben")]
    await both[0].ask("DELETE", f"{MEMBERS}/{(await me_of(client, merchant))['member']['memberId']}")
    answers = await asyncio.gather(
        *(one.ask("PATCH", f"{MEMBERS}/{other.member_id}", {"role": "viewer"}) for one, other in (both, both[::-1]))
    )
    assert sorted(one.status_code for one in answers) == [200, 403]
    roles = [(await me_of(client, one))["member"]["role"] for one in both]
    assert sorted(roles) == ["owner", "viewer"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "method, path, body",
    [
        ("PATCH", f"{MEMBERS}/{{eve}}", {"role": "admin"}),
        ("DELETE", f"{MEMBERS}/{{eve}}", None),
        ("POST", f"{MEMBERS}/{{eve}}/two-factor/reset", None),
        ("POST", f"{MEMBERS}/leave", None),
        ("POST", INVITATIONS, {"email": "joe@team.example", "name": "Joe", "role": "viewer"}),
        ("DELETE", f"{INVITATIONS}/{{invited}}", None),
    ],
)
async def test_what_waits_while_its_session_is_ended_is_refused(client, gateway, merchant, method, path, body):
    ann, eve = [await Teammate(client, merchant).sign_in(role) for role in ("owner", "viewer")]
    invited = (await invite(merchant, email="bob@team.example")).json()["invitation"]["invitationId"]
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM merchants FOR UPDATE")
        await conn.exec_driver_sql("UPDATE sessions SET revoked_at = now() WHERE member_pk = $1", (ann.pk,))
        act = asyncio.create_task(ann.ask(method, path.format(eve=eve.member_id, invited=invited), body))
        await waits_for_a_lock(conn, act)
    refused(await act, 401, "SESSION_ENDED")
    members = (await merchant.ask("GET", MEMBERS))["members"]
    assert [(one["role"], one["hasTwoFactor"]) for one in members[1:]] == [("owner", True), ("viewer", True)]
    assert [one["email"] for one in (await merchant.ask("GET", INVITATIONS))["invitations"]] == ["bob@team.example"]


async def test_an_owner_lets_another_member_back_in_and_nobody_himself(client, merchant, clock):
    lost = await Teammate(client, merchant).sign_in("finance", enrolled=True)
    owner_id = (await me_of(client, merchant))["member"]["memberId"]
    answer = await client.post(f"{MEMBERS}/{owner_id}/two-factor/reset", headers=merchant.bearer)
    refused(answer, 403, "NOT_YOURSELF")
    recovered = await merchant.ask("POST", f"{MEMBERS}/{lost.member_id}/two-factor/reset")
    assert recovered["member"]["hasTwoFactor"] is False
    refused(await lost.ask("GET", MEMBERS), 401, "SESSION_ENDED")
    refused(await sign_in(client, lost.email), 401, "INVALID_CREDENTIALS")
    token = recovered["link"].partition("#")[2]
    body = {"token": token, "password": "a password that was chosen"}
    assert (await post(client, "/api/auth/password-reset/confirm", body)).status_code == 200
    assert (await sign_in(client, lost.email, "a password that was chosen")).status_code == 200


@pytest.mark.parametrize("method, body", [("PATCH", {"role": "admin"}), ("DELETE", None)])
async def test_a_way_back_in_ends_with_the_owner_who_made_it(client, merchant, method, body):
    ann = await Teammate(client, merchant).sign_in("owner", name="ann")
    lost = await Teammate(client, merchant).sign_in("finance")
    made = await ann.ask("POST", f"{MEMBERS}/{lost.member_id}/two-factor/reset")
    await merchant.ask(method, f"{MEMBERS}/{ann.member_id}", body)
    if method == "PATCH":
        await merchant.ask(method, f"{MEMBERS}/{ann.member_id}", {"role": "owner"})
    refused(await back_in(client, made), 400, "RESET_TOKEN_INVALID")
    again = await client.post(f"{MEMBERS}/{lost.member_id}/two-factor/reset", headers=merchant.bearer)
    assert (await back_in(client, again)).status_code == 200


async def test_a_way_back_in_that_waits_while_its_owner_is_demoted_is_closed(client, gateway, merchant):
    ann, lost = [await Teammate(client, merchant).sign_in(role) for role in ("owner", "finance")]
    made = await ann.ask("POST", f"{MEMBERS}/{lost.member_id}/two-factor/reset")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM merchants FOR UPDATE")
        setting = asyncio.create_task(back_in(client, made))
        await waits_for_a_lock(conn, setting)
        await conn.exec_driver_sql("UPDATE members SET role = 'admin' WHERE id = $1", (ann.pk,))
    refused(await setting, 400, "RESET_TOKEN_INVALID")
    refused(await sign_in(client, lost.email, CHOSEN), 401, "INVALID_CREDENTIALS")


async def test_a_teams_day(client, merchant, gateway, clock):
    """Invited, changed, refused, a phone lost and found, and each of them named in a log that verifies."""
    path = f"/api/dashboard/projects/{merchant.project_id}/wallet/payout"
    payout = {"chain": "memory", "token": "USDX", "toAddress": "mem1", "amount": "1"}
    people = {}
    for role in ("developer", "viewer"):
        assert (
            await join(client, token_of(await invite(merchant, role, email=f"{role}@team.example")))
        ).status_code == 200
        signed_in = (await sign_in(client, f"{role}@team.example")).json()
        bearer = {"Authorization": f"Bearer {signed_in['accessToken']}"}
        people[role] = bearer, (await client.get(f"{MEMBERS}/me", headers=bearer)).json()["member"]["memberId"]
        refused(await client.post(path, json=payout, headers=bearer), 403, "ROLE_NOT_ALLOWED")
    viewer, viewer_id = people["viewer"]
    keys = f"/api/merchant/projects/{merchant.project_id}/api-keys"
    refused(await client.post(keys, json={}, headers=viewer), 403, "ROLE_NOT_ALLOWED")
    await merchant.ask("PATCH", f"{MEMBERS}/{viewer_id}", {"role": "finance"})
    refused(await client.post(path, json=payout, headers=viewer), 403, "TWO_FACTOR_REQUIRED")

    owner = await Teammate(client, merchant).sign_in("owner", name="ann")
    found = (await merchant.ask("GET", MEMBERS))["members"][0]
    assert (found["email"], found["role"], found["hasTwoFactor"]) == (merchant.email, "owner", True)
    lost = await owner.ask("POST", f"{MEMBERS}/{found['memberId']}/two-factor/reset")
    body = {"token": lost.json()["link"].partition("#")[2], "password": "a password that was chosen"}
    assert (await post(client, "/api/auth/password-reset/confirm", body)).status_code == 200
    back = await sign_in(client, merchant.email, "a password that was chosen")
    bearer = {"Authorization": f"Bearer {back.json()['accessToken']}"}
    headers = {"headers": bearer}
    shown = await client.post("/api/dashboard/two-factor/enrol", json={"password": body["password"]}, **headers)
    phone = Authenticator(shown.json()["secret"], clock)
    confirmed = await client.post("/api/dashboard/two-factor/confirm", json={"totpCode": phone.next_code()}, **headers)
    assert confirmed.status_code == 200

    await client._transport.app.state.web.audit_sums.write(unfinished=True)
    async with gateway.db.transaction() as conn:
        await seal(conn, gateway.secrets, clock.now())
        assert (await verify(conn, gateway.secrets, [], clock.now())).problems == []
        query = "SELECT actor, action, details ->> 'code' FROM audit_entries WHERE merchant_id = $1 ORDER BY id"
        log = [tuple(row) for row in await conn.exec_driver_sql(query, (merchant.merchant_id,))]
    ada, (_, developer_id) = found["memberId"], people["developer"]
    for who, action, code in (
        (ada, "member.invited", None),
        (developer_id, "member.joined", None),
        (developer_id, "access.refused", "ROLE_NOT_ALLOWED"),
        (viewer_id, "access.refused", "ROLE_NOT_ALLOWED"),
        (ada, "member.changed", None),
        (owner.member_id, "two_factor.reset", None),
        (ada, "password.changed", None),
        (ada, "two_factor.enabled", None),
    ):
        assert (who, action, code) in log, (who, action, log)
