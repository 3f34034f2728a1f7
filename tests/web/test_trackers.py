"""Trackers over the API: made with three kinds of credentials, managed with a fourth, switched, replaced, tried out."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from structlog.testing import capture_logs

from cambist.domain.plans import BUILT_IN
from cambist.services.audit.entries import Action, newest
from cambist.services.trackers.create import SWITCHED_OFF_MAX
from cambist.services.trackers.credentials import TrackerSecrets
from cambist.settings import RateLimitSettings
from cambist_web.context import BAD_CREDENTIALS_PER_MINUTE
from tests.support.tracker_api import CREATE, URL, make, watched
from tests.support.web import ADMIN_KEY, Merchant, memory_gateway, refused, web_client, web_settings
from tests.support.webhooks import receiver

OPERATOR = {"X-Admin-Key": ADMIN_KEY}
BODY = {"url": URL, "name": "Desk", "chain": "memory"}
LIST = "/api/merchant/webhooks"


@pytest.fixture
def merchant(sandbox_merchant):
    return sandbox_merchant


@pytest.fixture
async def head(gateway):
    """Have the gateway know the newest block of the live chain."""
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO chain_cursors (chain, scope, height, hash, head, updated_at)"
            " VALUES ('memory', 0, 690, 'h', 700, now())"
        )
    return 700


async def stored(gateway, query="SELECT * FROM trackers ORDER BY id"):
    async with gateway.db.autocommit() as conn:
        return (await conn.exec_driver_sql(query)).all()


async def test_a_key_makes_a_tracker_whose_token_and_secret_are_shown_once_and_stored_sealed(client, gateway, merchant):
    answer = await client.post(CREATE, json=BODY | {"metadata": {"desk": 7}}, headers=merchant.key)
    assert answer.status_code == 201, answer.text
    made = answer.json()["webhook"]
    assert "authToken" in answer.json()["warning"]
    assert len(bytes.fromhex(made["secretKey"])) == 32
    assert made.items() >= (BODY | {"startBlock": 0, "maxAddresses": 1_000, "projectId": merchant.project_id}).items()
    read = await client.get("/api/webhook/get", headers={"X-Auth-Token": made["authToken"]})
    webhook = read.json()["webhook"]
    assert made["secretKey"] not in read.text
    assert made["authToken"] not in read.text
    expected = {"metadata": {"desk": 7}, "isActive": True, "addresses": 0, "mode": "sandbox"}
    assert webhook.items() >= expected.items()
    (row,) = await stored(gateway)
    kept = b"|".join(value for value in row if isinstance(value, bytes))
    assert not any(made[name].encode() in kept for name in ("authToken", "secretKey"))
    secrets = TrackerSecrets(gateway.secrets)
    assert secrets.reveal_secret(made["webhookId"], row.secret_encrypted) == made["secretKey"]
    assert (row.scope, row.mode) == (row.project_pk, "sandbox")


async def test_without_a_start_block_it_begins_at_the_newest_block_that_is_known(client, head):
    merchant = await Merchant(client).open("zoe@shop.example")
    newest, past = await make(client, merchant.key), await make(client, merchant.key, startBlock=12)
    assert (newest.made["startBlock"], past.made["startBlock"]) == (head, 12)
    assert [(await one.told())["webhook"]["readsPast"] for one in (newest, past)] == [False, True]
    assert (await make(client, merchant.key, startBlock=9_000)).made["startBlock"] == 9_000
    await merchant.add_project(mode="sandbox")
    await client.post("/api/sandbox/mine", json={"chain": "memory", "blocks": 5}, headers=merchant.key)
    assert (await make(client, merchant.key)).made["startBlock"] == 5, "its own simulated chain"


async def test_a_live_chain_that_the_gateway_has_not_read_or_cannot_read_is_refused(client, gateway):
    merchant = await Merchant(client).open("zoe@shop.example")
    refused(await client.post(CREATE, json=BODY, headers=merchant.key), 503, "CHAIN_UNAVAILABLE")
    answer = await client.post(CREATE, json=BODY | {"chain": "idle", "startBlock": 1}, headers=merchant.key)
    refused(answer, 503, "CHAIN_UNAVAILABLE")
    assert await stored(gateway) == []
    await make(client, merchant.key, startBlock=1)


@pytest.mark.parametrize(
    "wrong, code, field",
    [
        ({"url": "ftp://watch.example/"}, "VALIDATION_ERROR", "url"),
        ({"url": "https://ada:secret@watch.example/"}, "VALIDATION_ERROR", "url"),
        ({"url": ""}, "VALIDATION_ERROR", "url"),
        ({"name": "  "}, "VALIDATION_ERROR", "name"),
        ({"name": "x" * 101}, "VALIDATION_ERROR", "name"),
        ({"chain": "nowhere"}, "UNSUPPORTED_CHAIN", "chain"),
        ({"startBlock": -1}, "VALIDATION_ERROR", "startBlock"),
        ({"startBlock": 2**60}, "VALIDATION_ERROR", "startBlock"),
        ({"startBlock": "latest"}, "VALIDATION_ERROR", "startBlock"),
        ({"maxAddresses": 0}, "VALIDATION_ERROR", "maxAddresses"),
        ({"metadata": {"x": "y" * 20_000}}, "VALIDATION_ERROR", "metadata"),
        ({"metadata": [1]}, "VALIDATION_ERROR", "metadata"),
        ({"secretKey": "mine"}, "VALIDATION_ERROR", "secretKey"),
    ],
)
async def test_what_cannot_be_meant_is_refused_by_its_field(client, gateway, merchant, wrong, code, field):
    refused(await client.post(CREATE, json=BODY | wrong, headers=merchant.key), 400, code, field)
    assert await stored(gateway) == []


async def test_a_key_makes_it_for_its_own_project_whatever_the_body_says(client, merchant):
    other = await Merchant(client).open("bob@shop.example", mode="sandbox")
    wanted = {"projectId": other.project_id, "merchantId": other.merchant_id}
    assert (await make(client, merchant.key, **wanted)).made["projectId"] == merchant.project_id
    await merchant.add_key(scopes=["read", "payments", "payouts", "accounts"])
    refused(await client.post(CREATE, json=BODY, headers=merchant.key), 403, "SCOPE_MISSING")


async def test_a_session_makes_it_for_the_project_that_is_named_or_for_the_first_active_one(client, merchant):
    first, other = merchant.project_id, await Merchant(client).open("bob@shop.example", mode="sandbox")
    await merchant.add_project(mode="sandbox")
    second = merchant.project_id
    assert (await make(client, merchant.bearer)).made["projectId"] == first
    assert (await make(client, merchant.bearer, projectId=second)).made["projectId"] == second
    assert (await make(client, merchant.bearer, merchantId=other.merchant_id)).made["projectId"] == first
    for project_id, status, code in ((other.project_id, 403, "PROJECT_NOT_OWNED"), ("prj_x", 404, "PROJECT_NOT_FOUND")):
        answer = await client.post(CREATE, json=BODY | {"projectId": project_id}, headers=merchant.bearer)
        refused(answer, status, code)
    await merchant.ask("PATCH", f"/api/merchant/projects/{first}", {"isActive": False})
    assert (await make(client, merchant.bearer)).made["projectId"] == second
    answer = await client.post(CREATE, json=BODY | {"projectId": first}, headers=merchant.bearer)
    refused(answer, 403, "PROJECT_INACTIVE")
    await merchant.ask("PATCH", f"/api/merchant/projects/{second}", {"isActive": False})
    refused(await client.post(CREATE, json=BODY, headers=merchant.bearer), 404, "PROJECT_NOT_FOUND")


async def test_the_operator_says_whose_it_is(client, merchant):
    other = await Merchant(client).open("bob@shop.example", mode="sandbox")
    assert (await make(client, OPERATOR, projectId=merchant.project_id)).made["projectId"] == merchant.project_id
    assert (await make(client, OPERATOR, merchantId=other.merchant_id)).made["projectId"] == other.project_id
    refused(await client.post(CREATE, json=BODY, headers=OPERATOR), 400, "VALIDATION_ERROR", "projectId")
    both = BODY | {"projectId": merchant.project_id, "merchantId": other.merchant_id}
    refused(await client.post(CREATE, json=both, headers=OPERATOR), 404, "PROJECT_NOT_FOUND")
    answer = await client.post(CREATE, json=BODY | {"merchantId": "mer_x"}, headers=OPERATOR)
    refused(answer, 404, "MERCHANT_NOT_FOUND")


async def test_of_several_credentials_the_first_kind_counts_good_or_not(client, merchant):
    bad_key, bad_session = {"X-Api-Key": "ck_test_x"}, {"Authorization": "Bearer e30.e30."}
    body = BODY | {"projectId": merchant.project_id}
    answers = [
        (bad_key | merchant.bearer | OPERATOR, "API_KEY_INVALID"),
        (bad_session | OPERATOR, "INVALID_TOKEN"),
        ({"X-Admin-Key": "guessed"}, "ADMIN_KEY_INVALID"),
        ({}, "API_KEY_MISSING"),
        ({"X-Api-Key": ""} | merchant.bearer, "API_KEY_MISSING"),
        ((await make(client, merchant.key)).token, "API_KEY_MISSING"),
    ]
    for headers, code in answers:
        refused(await client.post(CREATE, json=body, headers=headers), 401, code)


async def test_who_has_no_live_mode_makes_no_live_tracker(client, head):
    merchant = await Merchant(client).open("zoe@shop.example")
    made = await make(client, merchant.key)
    await client.put(f"/api/admin/merchants/{merchant.merchant_id}", json={"live": False}, headers=OPERATOR)
    for headers in (merchant.key, merchant.bearer):
        refused(await client.post(CREATE, json=BODY, headers=headers), 403, "LIVE_NOT_GRANTED")
    assert (await made.told())["webhook"]["isActive"] is True


async def test_the_plan_bounds_active_trackers_and_their_addresses_and_is_named(client, merchant):
    made = [await make(client, merchant.key) for _ in range(10)]
    answer = await client.post(CREATE, json=BODY, headers=merchant.key)
    assert "maxWebhooks" in refused(answer, 403, "PLAN_LIMIT")["error"]
    await made[0].done("deactivate")
    await make(client, merchant.key)
    assert "maxWebhooks" in refused(await made[0].post("activate"), 403, "PLAN_LIMIT")["error"]
    await made[1].done("activate")
    await made[1].done("deactivate")
    await made[0].done("activate")
    for path, body in ((CREATE, BODY), ("/api/webhook/update", {})):
        headers = merchant.key if path == CREATE else made[0].token
        if path == CREATE:
            await made[2].done("deactivate")
        answer = await client.post(path, json=body | {"maxAddresses": 1_001}, headers=headers)
        assert "maxAddresses" in refused(answer, 403, "PLAN_LIMIT")["error"]
    await made[0].done("update", {"maxAddresses": 1_000})


@pytest.mark.slow
async def test_however_many_are_made_or_switched_on_at_once_the_plan_holds(client, gateway, merchant):
    answers = await asyncio.gather(*[client.post(CREATE, json=BODY, headers=merchant.key) for _ in range(16)])
    assert Counter(answer.status_code for answer in answers) == {201: 10, 403: 6}
    tokens = [{"X-Auth-Token": one.json()["webhook"]["authToken"]} for one in answers if one.is_success]
    for token in tokens[:4]:
        await client.post("/api/webhook/deactivate", headers=token)
    again = [client.post("/api/webhook/activate", headers=token) for token in tokens[:4] * 2]
    more = [client.post(CREATE, json=BODY, headers=merchant.key) for _ in range(4)]
    await asyncio.gather(*again, *more)
    assert sum(row.is_active for row in await stored(gateway)) == 10


async def test_a_merchant_has_a_bounded_number_of_trackers_even_switched_off(client, gateway, merchant):
    await make(client, merchant.key)
    before = merchant.key
    await merchant.add_project(mode="sandbox")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO trackers (webhook_id, project_pk, mode, chain, scope, url, name, start_block, max_addresses,"
            " is_active, token_hash, token_encrypted, secret_encrypted) SELECT 'x' || n, project_pk, mode, chain,"
            " scope, url, name, 0, 1, false, ('x' || n)::bytea, '', '' FROM trackers, generate_series(2, $1) n",
            (BUILT_IN.webhooks_max + SWITCHED_OFF_MAX,),
        )
    for key in (before, merchant.key):
        refused(await client.post(CREATE, json=BODY, headers=key), 409, "TOO_MANY_TRACKERS")
    await merchant.add_project(mode="live")
    await make(client, merchant.key, startBlock=1)


async def test_a_merchant_lists_the_trackers_of_all_projects_with_their_tokens(client, merchant):
    other = await Merchant(client).open("bob@shop.example", mode="sandbox")
    await make(client, other.key)
    first = await make(client, merchant.key)
    before = merchant.project_id
    await merchant.add_project(mode="sandbox")
    second = await make(client, merchant.key, name="Second")
    found = await merchant.ask("GET", LIST)
    assert [one["webhookId"] for one in found["webhooks"]] == [first.webhook_id, second.webhook_id]
    assert [one["authToken"] for one in found["webhooks"]] == [one.token["X-Auth-Token"] for one in (first, second)]
    assert "secretKey" not in found["webhooks"][0]
    assert (found["page"], found["limit"], found["total"]) == (1, 25, 2)
    named = await merchant.ask("GET", f"{LIST}?projectId={before}")
    assert [one["webhookId"] for one in named["webhooks"]] == [first.webhook_id]
    assert (await merchant.ask("GET", f"{LIST}?projectId={other.project_id}"))["webhooks"] == []
    page = await merchant.ask("GET", f"{LIST}?limit=1&page=2")
    assert [one["name"] for one in page["webhooks"]] == ["Second"]


async def test_what_is_sent_is_changed_and_the_rest_stays(client, merchant):
    tracker = await make(client, merchant.key, maxAddresses=5)
    changed = (await tracker.done("update", {"name": "Other", "url": "https://other.example/"}))["webhook"]
    assert (changed["name"], changed["url"], changed["maxAddresses"]) == ("Other", "https://other.example/", 5)
    assert (await tracker.done("update", {}))["webhook"] == changed
    await tracker.done("address/add-bulk", {"addresses": [watched(n) for n in range(4)]})
    refused(await tracker.post("update", {"maxAddresses": 3, "name": "Not"}), 409, "TOO_MANY_ADDRESSES")
    refused(await tracker.post("update", {"url": "nowhere"}), 400, "VALIDATION_ERROR", "url")
    refused(await tracker.post("update", {"maxAddresses": 0}), 400, "VALIDATION_ERROR", "maxAddresses")
    refused(await tracker.post("update", {"chain": "pretend"}), 400, "VALIDATION_ERROR", "chain")
    webhook = (await tracker.done("update", {"maxAddresses": 4}))["webhook"]
    assert (webhook["name"], webhook["maxAddresses"], webhook["addresses"]) == ("Other", 4, 4)


async def test_the_token_of_a_tracker_that_is_switched_off_still_works(client, merchant):
    tracker = await make(client, merchant.key)
    for _ in range(2):
        assert (await tracker.done("deactivate"))["webhook"]["isActive"] is False
    assert (await tracker.told())["webhook"]["isActive"] is False
    await tracker.done("address/add", {"address": watched(1)})
    for _ in range(2):
        assert (await tracker.done("activate"))["webhook"]["isActive"] is True


async def test_new_credentials_are_the_only_ones_at_once(client, gateway, merchant):
    tracker, other = await make(client, merchant.key), await make(client, merchant.key)
    old = dict(tracker.token)
    await tracker.told()
    fresh = (await tracker.done("regenerate-secret"))["webhook"]
    refused(await tracker.get(), 401, "AUTH_TOKEN_INVALID")
    tracker.token = {"X-Auth-Token": fresh["authToken"]}
    assert (await tracker.told())["webhook"]["credentialsRotatedAt"] == fresh["rotatedAt"]
    assert fresh["secretKey"] != tracker.made["secretKey"]
    assert fresh["authToken"] != old["X-Auth-Token"]
    row = (await stored(gateway))[0]
    assert TrackerSecrets(gateway.secrets).reveal_secret(fresh["webhookId"], row.secret_encrypted) == fresh["secretKey"]
    listed = (await merchant.ask("GET", LIST))["webhooks"]
    assert [one["authToken"] for one in listed] == [fresh["authToken"], other.token["X-Auth-Token"]]


async def test_of_many_who_replace_the_same_token_one_does(client, merchant):
    tracker = await make(client, merchant.key)
    answers = await asyncio.gather(*[tracker.post("regenerate-secret") for _ in range(8)])
    assert Counter(answer.status_code for answer in answers) == {200: 1, 401: 7}
    (fresh,) = [answer.json()["webhook"] for answer in answers if answer.is_success]
    tracker.token = {"X-Auth-Token": fresh["authToken"]}
    await tracker.told()


async def test_a_test_delivery_is_signed_with_the_trackers_own_secret(client, merchant):
    async with receiver() as shop:
        tracker = await make(client, merchant.key, url=shop.url)
        result = await tracker.done("test")
        (received,) = shop.received
        assert (result["delivered"], result["statusCode"], result["responseBody"]) == (True, 200, "noted")
        received.verify(tracker.made["secretKey"])
        assert received.headers["X-Webhook-Test"] == "true"
        body = result["payload"]
        assert (body["webhookId"], body["event"]) == (tracker.webhook_id, received.headers["X-Webhook-Event"])
        assert (body["data"]["isTest"], body["data"]["chain"]) == (True, "memory")
        await tracker.done("deactivate")
        shop.statuses = [500]
        failed = await tracker.done("test")
        assert (failed["delivered"], failed["statusCode"]) == (False, 500)
        fresh = (await tracker.done("regenerate-secret"))["webhook"]
        tracker.token = {"X-Auth-Token": fresh["authToken"]}
        await tracker.done("test")
        shop.received[-1].verify(fresh["secretKey"])
    assert (await tracker.done("test"))["delivered"] is False


async def test_a_token_is_good_for_its_own_tracker_alone(client, merchant):
    tracker, other = await make(client, merchant.key), await make(client, merchant.key)
    await other.done("address/add", {"address": watched(1)})
    assert (await tracker.told("address/list"))["addresses"] == []
    refused(await tracker.post("address/remove", {"address": watched(1)}), 404, "ADDRESS_NOT_WATCHED")
    cursor = (await other.done("address/add-bulk", {"addresses": [watched(2)]})) and (
        await other.told("address/list?limit=1")
    )["nextCursor"]
    refused(await tracker.get(f"address/list?cursor={cursor}"), 400, "VALIDATION_ERROR", "cursor")
    for path in ("/api/payment", "/api/merchant/wallet"):
        refused(await client.get(path, headers=tracker.token), 401, "API_KEY_MISSING")
    refused(await client.get(LIST, headers=tracker.token), 401, "SESSION_REQUIRED")


async def test_a_project_that_is_switched_off_lets_its_trackers_be_read_alone(client, merchant):
    tracker = await make(client, merchant.key)
    await merchant.ask("PATCH", f"/api/merchant/projects/{merchant.project_id}", {"isActive": False})
    await tracker.told()
    await tracker.told("address/list")
    for path, body in (("deactivate", None), ("address/add", {"address": watched(1)}), ("regenerate-secret", None)):
        refused(await tracker.post(path, body), 403, "PROJECT_INACTIVE")
    refused(await client.post(CREATE, json=BODY, headers=merchant.key), 403, "PROJECT_INACTIVE")


async def test_in_person_a_projects_trackers_are_made_switched_and_deleted_without_their_tokens(
    client, gateway, merchant
):
    base = f"/api/dashboard/projects/{merchant.project_id}/trackers"
    made = await merchant.ask("POST", base, BODY)
    webhook_id, token = made["webhook"]["webhookId"], {"X-Auth-Token": made["webhook"]["authToken"]}
    await client.post("/api/webhook/address/add", json={"address": watched(1)}, headers=token)
    listed = await merchant.ask("GET", base)
    assert [(one["webhookId"], one["addresses"]) for one in listed["webhooks"]] == [(webhook_id, 1)]
    assert "authToken" not in listed["webhooks"][0]
    for word, active in (("deactivate", False), ("activate", True)):
        assert (await merchant.ask("POST", f"{base}/{webhook_id}/{word}"))["webhook"]["isActive"] is active
    bob = await Merchant(client).open("bob@shop.example", mode="sandbox")
    theirs = f"/api/dashboard/projects/{bob.project_id}/trackers/{webhook_id}"
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/activate"), ("POST", "/deactivate")):
        refused(await client.request(method, theirs + path, headers=bob.bearer), 404, "TRACKER_NOT_FOUND")
        mine = f"{base}/{webhook_id}{path}"
        refused(await client.request(method, mine, headers=bob.bearer), 403, "PROJECT_NOT_OWNED")
    await merchant.ask("DELETE", f"{base}/{webhook_id}")
    refused(await client.get("/api/webhook/get", headers=token), 401, "AUTH_TOKEN_INVALID")
    refused(await client.delete(f"{base}/{webhook_id}", headers=merchant.bearer), 404, "TRACKER_NOT_FOUND")
    assert (await merchant.ask("GET", base))["total"] == (await merchant.ask("GET", LIST))["total"] == 0
    (row,) = await stored(gateway)
    assert (row.is_active, row.deleted_at is None) == (False, False)
    assert await stored(gateway, "SELECT * FROM tracker_addresses") == []
    assert len(await stored(gateway, "SELECT * FROM tracked_addresses")) == 1


async def test_what_is_done_stands_in_the_audit_log_with_who_did_it_and_no_secret(client, gateway, merchant):
    with capture_logs() as lines:
        tracker = await make(client, merchant.key)
        await tracker.done("update", {"name": "Other"})
        await tracker.done("address/add-bulk", {"addresses": [watched(1), watched(2)]})
        await tracker.done("address/remove", {"address": watched(1)})
        fresh = (await tracker.done("regenerate-secret"))["webhook"]
        await make(client, OPERATOR, projectId=merchant.project_id)
        await client._transport.app.state.web.audit_sums.write(unfinished=True)
    async with gateway.db.autocommit() as conn:
        entries = [entry for entry in await newest(conn, limit=50) if entry.action.startswith("tracker.")]
    found = {(one.action, one.actor_kind, one.count) for one in entries}
    assert found == {
        (Action.TRACKER_MADE, "key", 1),
        (Action.TRACKER_MADE, "operator", 1),
        (Action.TRACKER_CHANGED, "tracker", 1),
        (Action.TRACKER_CREDENTIALS_REPLACED, "tracker", 1),
        (Action.TRACKER_LIST_CHANGED, "tracker", 2),
    }
    assert {one.actor for one in entries if one.actor_kind == "tracker"} == {tracker.webhook_id}
    assert {one.merchant_id for one in entries} == {merchant.merchant_id}
    for secret in (tracker.made["secretKey"], tracker.made["authToken"], fresh["secretKey"], fresh["authToken"]):
        assert secret not in str(entries) + str(lines)


@pytest.mark.slow
async def test_guesses_at_tokens_are_counted_and_a_token_that_was_good_works_meanwhile(
    database_url, redis_url, clock, ids
):
    settings = web_settings(database_url, redis_url, rate_limits=RateLimitSettings(login_per_address=0))
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        merchant = await Merchant(client).open(mode="sandbox")
        tracker = await make(client, merchant.key)
        for _ in range(80):
            await tracker.told()
        guesses = [
            client.get("/api/webhook/get", headers={"X-Auth-Token": f"tok_{number:052}"}) for number in range(100)
        ]
        codes = Counter(answer.status_code for answer in await asyncio.gather(*guesses))
        assert codes[401] + codes[429] == 100
        assert 50 <= codes[401] <= BAD_CREDENTIALS_PER_MINUTE + 10
        await tracker.told()
        refused(await client.get("/api/webhook/get", headers={"X-Auth-Token": "x"}), 429, "RATE_LIMITED")


@pytest.mark.slow
async def test_each_tracker_has_a_limit_of_its_own(database_url, redis_url, clock, ids):
    limits = RateLimitSettings(per_key=20, per_address=0, login_per_address=0)
    settings = web_settings(database_url, redis_url, rate_limits=limits)
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        merchant = await Merchant(client).open(mode="sandbox")
        tracker, other = await make(client, merchant.key), await make(client, merchant.key)
        statuses = [(await tracker.get()).status_code for _ in range(25)]
        assert Counter(statuses) == {200: 20, 429: 5}
        await other.told()
        # A plan that says how many says it of trackers' tokens, too, as of keys.
        plan = {"name": "Busy", "hasTracker": True, "maxWebhooks": 9, "maxAddresses": 9}
        plan |= {"requestsPerMinute": 30, "isDefault": True}
        (await client.post("/api/admin/plans", json=plan, headers=OPERATOR)).raise_for_status()
        third = await make(client, merchant.key)
        assert Counter([(await third.get()).status_code for _ in range(35)]) == {200: 30, 429: 5}
