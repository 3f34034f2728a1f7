"""What is done and refused over HTTP stands in the audit log: who, from where, what, and never a secret."""

from __future__ import annotations

import asyncio
import json

import pytest
from structlog.testing import capture_logs

from cambist.services.audit.entries import Action, newest
from cambist.services.audit.sums import EMAILS_MAX
from cambist.services.identity.sessions import SAME_AGAIN_S
from cambist.settings import RateLimitSettings
from cambist_web import app
from tests.support.payout_env import person
from tests.support.two_factor import enrol
from tests.support.two_merchants import TwoMerchants
from tests.support.web import ADMIN_KEY, PASSWORD, Merchant, memory_gateway, web_client, web_settings

ADMIN = {"X-Admin-Key": ADMIN_KEY}
HERE = "192.0.2.7"


@pytest.fixture
def log(gateway, client):
    """Give what returns the log, oldest first, refusals of this minute included."""

    async def read(*actions):
        await client._transport.app.state.web.audit_sums.write(unfinished=True)
        async with gateway.db.autocommit() as conn:
            found = await newest(conn, limit=1_000)
        return [entry for entry in found[::-1] if not actions or entry.action in actions]

    return read


async def login(client, email, password=PASSWORD, **more):
    return await client.post("/api/auth/login", json={"email": email, "password": password, **more})


async def test_signing_in_and_out_is_written_down_and_what_is_refused_is_summed(client, merchant, log):
    answer = await login(client, merchant.email)
    client.cookies.clear()
    for _ in range(5):
        assert (await login(client, merchant.email, "wrong")).status_code == 401
    assert (await login(client, "not an address", "typed here by mistake")).status_code == 401
    guess = {"email": merchant.email, "password": "wrong"}
    assert (await client.post("/api/admin/auth/sign-in", json=guess)).status_code == 401
    cookie = {"Cookie": f"cambist_refresh={answer.cookies['cambist_refresh']}"}
    assert (await client.post("/api/auth/logout", headers=cookie)).status_code == 200
    assert (await client.post("/api/auth/logout", headers=cookie)).status_code == 200
    refused = await log(Action.SIGN_IN_REFUSED)
    assert [(one.actor_kind, one.actor, one.address, one.count) for one in refused] == [
        ("stranger", None, HERE, count) for count in (6, 1)
    ]
    told = [(one.details["code"], one.details["people"], one.details["emails"]) for one in refused]
    assert told == [
        ("INVALID_CREDENTIALS", kind, {merchant.email: n}) for kind, n in (("merchant", 5), ("operator", 1))
    ]
    opened, ended = (await log(Action.SESSION_OPENED))[-1], await log(Action.SESSION_ENDED)
    assert (opened.actor_kind, opened.merchant_id, opened.address) == ("merchant", merchant.merchant_id, HERE)
    assert opened.actor.startswith("mem_")
    assert opened.details["session"] == opened.subject
    assert [(one.actor, one.details["session"]) for one in ended] == [(opened.actor, opened.subject)]


async def test_a_replayed_refresh_token_is_written_down_once_with_its_session(client, merchant, clock, log):
    cookie = {"Cookie": f"cambist_refresh={merchant.refresh_token}"}
    assert (await client.post("/api/auth/refresh", headers=cookie)).status_code == 200
    client.cookies.clear()
    clock.advance(SAME_AGAIN_S)
    for _ in range(3):
        assert (await client.post("/api/auth/refresh", headers=cookie)).status_code == 401
    (replayed,) = await log(Action.REFRESH_REPLAYED)
    assert replayed.merchant_id == merchant.merchant_id
    assert replayed.subject == (await log(Action.SESSION_OPENED))[0].subject
    (refused,) = await log(Action.CREDENTIAL_REFUSED)
    assert (refused.details, refused.count) == ({"code": "SESSION_ENDED"}, 3)


async def test_refused_credentials_are_summed_and_who_shows_none_is_not_told_of(client, merchant, log):
    for number in range(4):
        await client.get("/api/merchant/wallet", headers={"X-Api-Key": f"ck_live_{number:052}"})
        await client.get("/api/merchant/projects", headers={"Authorization": "Bearer e30.e30."})
        await client.get("/api/admin/settings", headers={"X-Admin-Key": "guessed"})
        await client.get("/api/merchant/wallet")
        await client.get("/api/merchant/projects")
    await client.post("/api/auth/password-reset/confirm", json={"token": "guessed", "password": PASSWORD})
    found = {one.details["code"]: one.count for one in await log(Action.CREDENTIAL_REFUSED)}
    assert found == {"API_KEY_INVALID": 4, "INVALID_TOKEN": 4, "ADMIN_KEY_INVALID": 4, "RESET_TOKEN_INVALID": 1}


async def test_who_asks_for_what_is_anothers_is_named(client, merchant, log):
    bob = await Merchant(client).open("bob@shop.example")
    for _ in range(2):
        path = f"/api/merchant/projects/{merchant.project_id}"
        assert (await client.get(path, headers=bob.bearer)).status_code == 403
    (refused,) = await log(Action.ACCESS_REFUSED)
    opened = (await log(Action.SESSION_OPENED))[-1]
    assert (refused.merchant_id, refused.actor, refused.count) == (bob.merchant_id, opened.actor, 2)
    assert refused.details == {"code": "PROJECT_NOT_OWNED", "session": opened.subject}


async def test_keys_projects_and_settings_are_written_down_by_who_changed_them(client, merchant, log):
    project = f"/api/merchant/projects/{merchant.project_id}"
    change = {"name": "Till", "underpaymentTolerancePercent": 1.5}
    await merchant.step_up()
    assert (await client.patch(project, json=change, headers=merchant.bearer)).status_code == 200
    assert (await client.post(f"{project}/rotate-webhook-secret", headers=merchant.bearer)).status_code == 200
    coins = {"coins": [{"chain": "memory", "token": "USDX"}]}
    assert (await client.put("/api/merchant/wallet/coins", json=coins, headers=merchant.key)).status_code == 200
    assert (await client.delete(f"{project}/api-keys/{merchant.key_id}", headers=merchant.bearer)).status_code == 200
    found = {one.action: one for one in await log()}
    member, session = found[Action.SESSION_OPENED].actor, found[Action.SESSION_OPENED].subject
    assert (found[Action.KEY_ISSUED].subject, found[Action.KEY_ISSUED].actor) == (merchant.key_id, member)
    assert found[Action.KEY_ISSUED].details["session"] == session
    assert found[Action.PROJECT_MADE].subject == merchant.project_id
    changed = {"name": "Till", "underpaymentTolerancePercent": "1.5"}
    assert found[Action.PROJECT_CHANGED].details == {"changed": changed, "session": session}
    assert found[Action.WEBHOOK_SECRET_ROTATED].project_id == merchant.project_id
    assert (found[Action.COINS_CHANGED].actor_kind, found[Action.COINS_CHANGED].actor) == ("key", merchant.key_id)
    assert found[Action.KEY_REVOKED].subject == merchant.key_id
    assert {one.address for one in found.values()} == {HERE}
    assert {one.merchant_id for one in found.values()} == {merchant.merchant_id}


async def test_what_the_operator_does_is_written_down(client, merchant, log):
    merchant_id = merchant.merchant_id
    credits_ = {"amount": 7, "mode": "live", "reference": "gift"}
    for _ in range(2):
        await client.post(f"/api/admin/merchants/{merchant_id}/credits", json=credits_, headers=ADMIN)
    await client.put("/api/admin/settings", json={"payoutEnabled": False}, headers=ADMIN)
    await client.post("/api/admin/merchants/two-factor/reset", json={"email": merchant.email}, headers=ADMIN)
    reset = await client.post("/api/admin/password-resets", json={"email": merchant.email}, headers=ADMIN)
    confirm = {"token": reset.json()["token"], "password": "another long password of tests"}
    assert (await client.post("/api/auth/password-reset/confirm", json=confirm)).status_code == 200
    found = [one for one in await log() if one.actor_kind == "operator"]
    assert [(one.action, one.subject) for one in found] == [
        (Action.CREDITS_GRANTED, "gift"),
        (Action.PLATFORM_SETTINGS_CHANGED, None),
        (Action.TWO_FACTOR_RESET, (await log(Action.SESSION_OPENED))[0].actor),
        (Action.PASSWORD_RESET_ISSUED, None),
    ]
    assert found[1].details == {"changed": {"payoutEnabled": False}}
    (changed,) = await log(Action.PASSWORD_CHANGED)
    assert (changed.actor_kind, changed.merchant_id) == ("merchant", merchant_id)


async def test_the_second_factor_is_written_down(client, merchant, clock, log):
    before = len(await log())
    phone, _ = await enrol(merchant, clock)
    clock.advance(60)
    body = {"password": PASSWORD, "totpCode": phone.code()}
    path = "/api/dashboard/two-factor/recovery-codes"
    assert (await client.post(path, json=body, headers=merchant.bearer)).status_code == 200
    assert (await client.post(path, json=body, headers=merchant.bearer)).status_code == 403
    clock.advance(60)
    body = {"password": PASSWORD, "totpCode": phone.code()}
    path = "/api/dashboard/two-factor/disable"
    assert (await client.post(path, json=body, headers=merchant.bearer)).status_code == 200
    wanted = [
        Action.TWO_FACTOR_ENROLLED,
        Action.TWO_FACTOR_ENABLED,
        Action.RECOVERY_CODES_RENEWED,
        Action.TWO_FACTOR_DISABLED,
    ]
    assert [one.action for one in (await log())[before:] if one.action in wanted] == wanted
    (refused,) = await log(Action.CREDENTIAL_REFUSED)
    session = (await log(Action.SESSION_OPENED))[0].subject
    told = {"code": "TWO_FACTOR_INVALID", "session": session}
    assert (refused.details, refused.merchant_id) == (told, merchant.merchant_id)


@pytest.mark.slow
async def test_money_that_is_asked_for_is_written_down_once_for_each_key(client, clock, log):
    two_merchants = await TwoMerchants(client, clock).build()
    before = len(await log(Action.PAYOUT_ASKED))
    key = two_merchants.who["key"]
    pay = {"chain": "memory", "token": "USDX", "toAddress": person("carol"), "amount": "1", "idempotencyKey": "once"}
    made = [await client.post("/api/merchant/wallet/payout", json=pay, headers=key) for _ in range(3)]
    assert [answer.status_code for answer in made] == [201, 200, 200]
    paid = (await log(Action.PAYOUT_ASKED))[before:]
    assert [(one.subject, one.actor_kind) for one in paid] == [(made[0].json()["payout"]["payoutId"], "key")]
    assert paid[0].details["toAddress"] == pay["toAddress"]
    told = {one.action for one in await log()}
    assert told >= {Action.WITHDRAWAL_ASKED, Action.REFUND_ASKED, Action.BATCH_ASKED, Action.ADDRESS_APPROVED}


@pytest.mark.slow
async def test_no_secret_is_in_the_log_and_each_entry_has_its_line(client, clock, log):
    with capture_logs() as lines:
        two_merchants = await TwoMerchants(client, clock).build()
        await login(client, "ada@shop.example", "a password that is wrong")
        entries = await log()
    text = json.dumps([str(one) for one in entries]) + str(lines)
    headers = [value for who in two_merchants.who.values() for value in who.values() if len(value) > 20]
    for secret in (*headers, PASSWORD, "a password that is wrong", two_merchants.ada.webhook_secret):
        assert secret.removeprefix("Bearer ") not in text
    assert len(entries) == len([line for line in lines if line["event"] == "audit"])


async def test_two_lines_of_forwarded_for_and_an_ipv6_customer_are_written_down_as_they_came(
    database_url, redis_url, clock, ids
):
    settings = web_settings(database_url, redis_url, trusted_proxies=("192.0.2.0/24",))
    async with memory_gateway(settings, clock, ids) as gateway:
        async with web_client(gateway) as client:
            lines = [("X-Forwarded-For", "1.1.1.1"), ("X-Forwarded-For", "2001:db8::7")]
            body = {"email": "ada@shop.example", "password": PASSWORD, "name": "Ada"}
            assert (await client.post("/api/auth/register", json=body, headers=lines)).status_code == 201
            refused = {"X-Api-Key": "ck_live_guessed"}
            await asyncio.gather(*(client.get("/api/merchant/wallet", headers=refused) for _ in range(3)))
        # The app has ended: what it summed is written.
        async with gateway.db.autocommit() as conn:
            found = await newest(conn, limit=10)
    assert [(one.action, one.address, one.count) for one in found] == [
        (Action.CREDENTIAL_REFUSED, "192.0.2.7", 3),
        (Action.SESSION_OPENED, "2001:db8::7", 1),
        (Action.MERCHANT_REGISTERED, "2001:db8::7", 1),
    ]


async def test_what_a_merchant_does_with_sessions_and_password_is_written_down(client, merchant, log):
    before = len(await log())
    await merchant.step_up()
    other = await login(client, merchant.email, totpCode=merchant.phone.next_code())
    client.cookies.clear()
    first = (await log(Action.SESSION_OPENED))[0]
    member, session = first.actor, first.subject
    ended = next(one for one in (await merchant.ask("GET", "/api/auth/sessions"))["sessions"] if not one["current"])
    assert other.status_code == 200
    await merchant.ask("DELETE", f"/api/auth/sessions/{ended['sessionId']}")
    await merchant.ask("DELETE", "/api/auth/sessions")
    change = {"currentPassword": PASSWORD, "newPassword": "another long password of tests"}
    merchant.take(await client.post("/api/auth/password", json=change, headers=merchant.bearer))
    new = (await log())[before:]
    told = [(one.action, one.actor, one.subject) for one in new if not one.action.startswith("two_factor")]
    opened = [one.subject for one in new if one.action == Action.SESSION_OPENED]
    assert told == [
        (Action.STEPPED_UP, member, None),
        (Action.SESSION_OPENED, member, opened[0]),
        (Action.SESSION_ENDED, member, ended["sessionId"]),
        (Action.SESSION_ENDED, member, "all other sessions"),
        (Action.PASSWORD_CHANGED, member, member),
        (Action.SESSION_OPENED, member, opened[1]),
    ]
    in_sessions = [one.details["session"] for one in new if not one.action.startswith("two_factor")]
    assert in_sessions == [session, opened[0], *[session] * 3, opened[1]]
    assert {one.merchant_id for one in new} == {merchant.merchant_id}
    assert "another long password" not in repr(new)


async def test_who_is_asked_for_a_code_is_not_told_of_as_refused(client, merchant, clock, log):
    await enrol(merchant, clock)
    path = f"/api/merchant/projects/{merchant.project_id}/rotate-webhook-secret"
    for _ in range(2):
        assert (await client.post(path, headers=merchant.bearer)).json()["code"] == "STEP_UP_REQUIRED"
    (asked,) = await log(Action.CODE_ASKED)
    opened = (await log(Action.SESSION_OPENED))[-1]
    assert (asked.actor, asked.count, asked.details) == (
        opened.actor, 2, {"code": "STEP_UP_REQUIRED", "session": opened.subject},
    )  # fmt: skip
    assert await log(Action.ACCESS_REFUSED) == []


async def test_grants_of_live_mode_are_written_down(client, merchant, log):
    path = f"/api/admin/merchants/{merchant.merchant_id}"
    for live in (False, True):
        assert (await client.put(path, json={"live": live}, headers=ADMIN)).status_code == 200
    eve = {"email": "eve@shop.example", "name": "Eve", "live": True}
    assert (await client.post("/api/admin/merchants", json=eve, headers=ADMIN)).status_code == 201
    found = [one for one in await log() if one.actor_kind == "operator"]
    assert [one.action for one in found] == [Action.LIVE_TAKEN_BACK, Action.LIVE_GRANTED, Action.MERCHANT_MADE]
    assert {one.merchant_id for one in found[:2]} == {merchant.merchant_id}
    assert found[2].details == {"email": "eve@shop.example", "live": True}


async def test_a_session_that_was_idle_for_too_long_is_no_replay(client, merchant, clock, gateway, log):
    clock.advance(gateway.settings.auth.session_idle_s)
    cookie = {"Cookie": f"cambist_refresh={merchant.refresh_token}"}
    assert (await client.post("/api/auth/refresh", headers=cookie)).status_code == 401
    assert await log(Action.REFRESH_REPLAYED) == []


async def test_a_key_that_comes_from_elsewhere_is_named_with_the_address(client, merchant, log):
    await merchant.add_key(allowedIps=["198.51.100.0/24"])
    assert (await client.get("/api/merchant/wallet", headers=merchant.key)).status_code == 403
    (refused,) = await log(Action.ACCESS_REFUSED)
    assert (refused.actor, refused.address, refused.details) == (merchant.key_id, HERE, {"code": "IP_NOT_ALLOWED"})


async def test_what_is_being_written_when_the_app_ends_is_written_once(gateway, clock, monkeypatch):
    monkeypatch.setattr(app, "AUDIT_SUMS_INTERVAL_S", 0.01)
    held, writing = asyncio.Event(), asyncio.Event()

    async def hold():
        async with gateway.db.transaction() as conn:
            await conn.exec_driver_sql("LOCK TABLE audit_entries")
            held.set()
            await writing.wait()
            await asyncio.sleep(0.2)  # the app has begun to end by now

    async with web_client(gateway) as client:
        assert (await client.get("/api/merchant/wallet", headers={"X-Api-Key": "ck_live_guessed"})).status_code == 401
        sums = client._transport.app.state.web.audit_sums
        write = sums.write

        async def told(**how):
            if sums._minutes:
                writing.set()
            await write(**how)

        monkeypatch.setattr(sums, "write", told)
        holding = asyncio.create_task(hold())
        await held.wait()
        clock.advance(60)
        await client.get("/api/merchant/wallet", headers={"X-Api-Key": "ck_live_guessed"})
        await writing.wait()
    await holding
    async with gateway.db.autocommit() as conn:
        assert [one.count for one in await newest(conn, limit=10)] == [1, 1]


@pytest.mark.parametrize("path", ["/api/auth/login", "/api/auth/password-reset/request"])
async def test_a_stranger_who_gives_hundreds_of_addresses_fills_a_row_or_two(database_url, redis_url, clock, ids, path):
    limits = RateLimitSettings(login_per_address=10, per_address=0)
    settings = web_settings(database_url, redis_url, rate_limits=limits)
    async with memory_gateway(settings, clock, ids) as gateway:
        async with web_client(gateway, "2001:db8:1:2::3") as client:
            for number in range(60):
                body = {"email": f"{number}@shop.example"} | ({"password": "wrong"} if path.endswith("login") else {})
                await client.post(path, json=body)
        async with gateway.db.autocommit() as conn:
            found = await newest(conn, limit=1_000)
    limited, done = sorted(found, key=lambda one: one.details.get("code") != "RATE_LIMITED")
    assert {one.address for one in found} == {"2001:db8:1:2::/64"}
    assert (limited.actor, limited.details) == (None, {"code": "RATE_LIMITED"})
    assert done.actor is None
    assert list(done.details["emails"].values()) == [1] * min(done.count, EMAILS_MAX)
    assert done.details.get("other_emails", 0) == max(0, done.count - EMAILS_MAX)
    assert limited.count + done.count == 60
