"""4.5 and 2.8: a project's signing secret, and test deliveries."""

from __future__ import annotations

import hmac
import json
import time

import pytest

from cambist.domain.webhooks import EVENTS
from tests.support.receiver import Receiver

from .replay import Replay, check
from .shapes import DATA, Event

ROTATE = "POST /api/merchant/projects/{projectId}/rotate-webhook-secret"
TEST = "POST /api/merchant/projects/{projectId}/test-webhook"


@pytest.fixture(scope="module")
async def project(sandbox: Replay) -> str:
    """Make another project, whose secret may change."""
    made = await sandbox.ask("POST /api/merchant/projects", {"name": "Second", "mode": "sandbox"})
    project_id: str = made["project"]["projectId"]
    return project_id


@pytest.fixture
async def receiver():
    async with Receiver() as receiver:
        yield receiver


async def test_a_rotated_secret_signs_from_now_on(sandbox: Replay, project, receiver):
    old = (await sandbox.ask(ROTATE, projectId=project))["webhookSecret"]
    receiver.secret = (await sandbox.ask(ROTATE, projectId=project))["webhookSecret"]
    assert receiver.secret != old
    body = {"event": "payment.paid", "url": receiver.url}
    assert (await sandbox.ask(TEST, body, projectId=project))["delivered"] is True
    assert receiver.rejected == []
    receiver.secret = old
    await sandbox.ask(TEST, body, projectId=project)
    assert len(receiver.rejected) == 1


@pytest.mark.parametrize("event, resource", EVENTS.items())
async def test_a_test_delivery_of_every_event_of_the_catalogue(sandbox: Replay, project, receiver, event, resource):
    receiver.secret = (await sandbox.ask(ROTATE, projectId=project))["webhookSecret"]
    told = await sandbox.ask(TEST, {"event": event, "url": receiver.url}, projectId=project)
    assert (told["delivered"], told["statusCode"]) == (True, 200)
    (sent,), (headers,) = receiver.received, receiver.headers
    assert receiver.rejected == []
    check(sent, Event)
    check(sent["data"], DATA[resource])
    assert (sent["event"], sent["webhookId"], sent["data"]["isTest"]) == (event, project, True)
    assert "_test_" in sent["data"].get(f"{resource}Id", sent["data"].get("depositId", ""))
    assert told["payload"] == sent
    assert (headers["X-Webhook-Event"], headers["X-Webhook-Test"]) == (event, "true")
    assert (told["timestamp"], told["signature"]) == (headers["X-Webhook-Timestamp"], headers["X-Webhook-Signature"])
    signed = f"{told['timestamp']}.{json.dumps(sent, separators=(',', ':'))}".encode()
    assert told["signature"] == hmac.new(receiver.secret.encode(), signed, "sha256").hexdigest()
    assert abs(time.time() * 1000 - int(told["timestamp"])) < 300_000


async def test_the_projects_own_url_is_the_default_and_the_preview_is_short(sandbox: Replay):
    sandbox.receiver.text = "x" * 2_000
    told = await sandbox.ask(TEST, {"event": "payout.failed"}, projectId=sandbox.project_id)
    sandbox.receiver.text = ""
    assert (told["delivered"], told["responseBody"]) == (True, "x" * 500)


@pytest.mark.parametrize("event, code", [("payment.x", "INVALID_EVENT"), ("payment.paid", "NO_WEBHOOK_TARGET")])
async def test_what_cannot_be_sent_is_refused(sandbox: Replay, project, event, code):
    await sandbox.refused(TEST, {"event": event}, 400, code, projectId=project)


@pytest.mark.parametrize("row", [ROTATE, TEST])
async def test_whose_project_it_is(sandbox: Replay, shop: Replay, row):
    body, theirs = {"event": "payment.paid"} if row == TEST else None, shop.project_id
    await sandbox.refused(row, body, 403, "PROJECT_NOT_OWNED", projectId=theirs)
    await sandbox.refused(row, body, 404, "PROJECT_NOT_FOUND", projectId="prj_nobody")
    wrong = {"Authorization": "Bearer nobody"}
    await sandbox.refused(row, body, 401, "INVALID_TOKEN", projectId=theirs, headers=wrong)
