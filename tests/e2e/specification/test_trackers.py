"""4.6 and 2.7: trackers, their lists, and what they are told."""

from __future__ import annotations

import pytest

from tests.support.gateway import ADMIN_KEY
from tests.support.receiver import Receiver

from .replay import Replay

CREATE = "POST /api/webhook/create"
OPERATOR = {"X-Admin-Key": ADMIN_KEY}


@pytest.fixture
async def receiver():
    async with Receiver() as receiver:
        yield receiver
        assert receiver.rejected == []


@pytest.fixture
def body(network, receiver) -> dict[str, object]:
    return {"url": receiver.url, "name": "Desk", "chain": network.chain, "metadata": {"team": 3}}


@pytest.fixture
async def tracker(shop: Replay, body, receiver) -> dict:
    """Make a tracker by the project's key, and hold its token."""
    made = (await shop.ask(CREATE, body))["webhook"]
    receiver.secret, shop.token = made["secretKey"], {"X-Auth-Token": made["authToken"]}
    return made


async def test_it_is_made_by_key_session_or_operator(shop: Replay, body, session):
    merchant = shop.merchant
    by_key = await shop.ask(CREATE, body | {"projectId": "prj_ignored"})
    assert {name: by_key["webhook"][name] for name in ("url", "name", "chain")} == {
        name: body[name] for name in ("url", "name", "chain")
    }
    by_session = [body, body | {"projectId": shop.project_id}]
    made = [await shop.ask(CREATE, one, headers=merchant.bearer) for one in by_session]
    by_operator = [body | {"merchantId": merchant.merchant_id}, body | {"projectId": shop.project_id}]
    made += [await shop.ask(CREATE, one, headers=OPERATOR) for one in by_operator]
    assert {one["webhook"]["projectId"] for one in [by_key, *made]} == {shop.project_id}
    await shop.ask(CREATE, body, headers=OPERATOR, status=400)
    wrong = {"X-Api-Key": "ck_live_nobody"}
    await shop.refused(CREATE, body, 401, "API_KEY_INVALID", headers=wrong)
    listed = (await shop.ask("GET /api/merchant/webhooks"))["webhooks"]
    tokens = {one["webhookId"]: one["authToken"] for one in listed}
    assert all(tokens[one["webhook"]["webhookId"]] == one["webhook"]["authToken"] for one in [by_key, *made])


async def test_a_plan_has_to_allow_it(stranger: Replay, body):
    merchant = stranger.merchant
    for plan in ({"hasTracker": False}, {"chains": ["base"]}, {"maxWebhooks": 0}):
        name = f"{merchant.merchant_id} {next(iter(plan))}"
        wanted = {"name": name, "hasTracker": True, "maxWebhooks": 5, "maxAddresses": 5, **plan}
        made = (await merchant.post("/api/admin/plans", wanted, headers=OPERATOR, status=201))["plan"]
        path, given = f"/api/admin/merchants/{merchant.merchant_id}/plan", {"planId": made["planId"]}
        await merchant.put(path, given, headers=OPERATOR)
        await stranger.refused(CREATE, body, 403, "PLAN_LIMIT")


async def test_it_is_read_changed_and_switched_off_and_on(shop: Replay, tracker, body, receiver):
    read = (await shop.ask("GET /api/webhook/get"))["webhook"]
    shown = ("webhookId", "url", "name", "chain", "startBlock")
    assert {name: read[name] for name in shown} == {name: tracker[name] for name in shown}
    assert (read["metadata"], read["isActive"]) == (body["metadata"], True)
    changes = {"url": f"{receiver.url}?new", "name": "Office", "maxAddresses": 7}
    await shop.ask("POST /api/webhook/update", changes)
    read = (await shop.ask("GET /api/webhook/get"))["webhook"]
    assert {name: read[name] for name in changes} == changes
    await shop.ask("POST /api/webhook/update", {"maxAddresses": 0}, status=400)
    for row, is_active in (("POST /api/webhook/deactivate", False), ("POST /api/webhook/activate", True)):
        await shop.ask(row)
        assert (await shop.ask("GET /api/webhook/get"))["webhook"]["isActive"] is is_active


async def test_new_credentials_end_the_old_ones_at_once(shop: Replay, tracker, receiver):
    fresh = (await shop.ask("POST /api/webhook/regenerate-secret"))["webhook"]
    await shop.merchant.get("/api/webhook/get", headers=shop.token, status=401)
    shop.token, receiver.secret = {"X-Auth-Token": fresh["authToken"]}, fresh["secretKey"]
    tested = await shop.ask("POST /api/webhook/test")
    assert (tested["delivered"], tested["statusCode"]) == (True, 200)
    assert receiver.headers[0]["X-Webhook-Test"] == "true"


async def test_what_moves_at_a_watched_address_is_told_and_listed(shop: Replay, tracker, network, receiver):
    here, there, gone = (network.stranger() for _ in range(3))
    await shop.ask("POST /api/webhook/address/add", {"address": here, "label": "Till"})
    await shop.ask("POST /api/webhook/address/add-bulk", {"addresses": [there, {"address": gone}]})
    await shop.ask("POST /api/webhook/address/update", {"address": here, "label": "Till 4"})
    await shop.ask("POST /api/webhook/address/remove", {"address": gone})
    await shop.ask("POST /api/webhook/address/remove-bulk", {"addresses": [there]})
    listed = await shop.ask("GET /api/webhook/address/list", query={"page": "1", "limit": "100"})
    assert [(one["address"], one["label"]) for one in listed["addresses"]] == [(here, "Till 4")]

    tx_hash = await network.usdx.send(here, 2)
    await receiver.until(lambda: len(receiver.received) == 2)
    assert [one["event"] for one in receiver.received] == ["transaction.detected", "transaction.confirmed"]
    assert {one["webhookId"] for one in receiver.received} == {tracker["webhookId"]}
    (found,) = (await shop.ask("GET /api/webhook/transaction/list"))["transactions"]
    assert (found["txHash"], found["address"], found["amount"]) == (tx_hash, here, "2")
