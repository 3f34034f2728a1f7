"""Every operation of each description, with input made up from it, by whom it is described for.

There is never an error of ours, no status and no type of content that is not described, and no answer but as its
schema says.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
from itertools import cycle
from pathlib import Path

import pytest
import schemathesis
from aiohttp import web
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core import NotSet
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from cambist_web.api import deliveries, signature_checks, trackers
from cambist_web.auth import ADMIN_SCHEME
from cambist_web.openapi.audiences import Audience
from cambist_web.ratelimit import RateLimit
from tests.support.operators import Officer
from tests.support.payout_env import person
from tests.support.tracker_api import CREATE, make
from tests.support.two_merchants import TwoMerchants
from tests.support.web import ADMIN_KEY, PASSWORD, Merchant, memory_gateway, refused, web_settings
from tests.support.webhooks import receiver

DOCUMENTED = (Path(__file__).parents[2] / "docs/merchants/errors.md").read_text()
SCHEMA = response_schema_conformance
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
CASES = 200 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 2
SENDS = re.compile(r"/(test|check)-webhook$|/webhook/test$|/webhook-endpoints/\{\w+\}/(test|check)$")
"""What sends to a server before it answers: to one on loopback, as whatever else may be sent to."""
URLS = ("url", "paymentWebhookUrl", "webhookUrl")
STREAM = re.compile(r"/stream$")
"""What does not end by itself: for this client it ends as soon as it has said that it is ready (``web_client()``)."""
GUESTS = re.compile(
    r"/auth/|/two-factor/|/password-resets|/api-keys|/admin/merchants/\{\w+\}(/sessions|/suspend|/reinstate)?$"
)
"""What would sign Ada out, suspend her, or take live mode or the key from her."""


ENDING = re.compile(r"/admin/(auth/|operators)")
"""What may end an operator's session."""
PLAIN = {"type", "description", "examples", "example", "title"}
"""What a schema says without bounds: of a text in a path like that, none is wrong."""


def modes_of(operation):
    """Return how its cases are made up, and how many each way.

    Where no input can be wrong, all are right ones: looking for a wrong one costs more than all the others.
    """
    raw = operation.definition.raw
    told = [one for one in raw.get("parameters", ()) if one["in"] != "cookie"]
    bounded = [one for one in told if one["in"] != "path" or one["schema"].keys() - PLAIN]
    if "requestBody" in raw or bounded:
        return ((GenerationMode.POSITIVE, CASES), (GenerationMode.NEGATIVE, CASES))
    return ((GenerationMode.POSITIVE, 2 * CASES if told else 1),)


def made_up(operation, mode, number, cases):
    """Return cases of an operation, the same ones every time."""
    found = []

    @seed(number)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode))
    def collect(case):
        found.append(case)

    with contextlib.suppress(Unsatisfiable):  # where there is no input, none can be wrong
        collect()
    return found


class Guest:
    """A merchant whom anything may happen to: who was signed out signs in, and is followed by another who cannot."""

    def __init__(self, client):
        self.client, self.merchant, self.number = client, Merchant(client), 0

    async def come(self):
        if await self._is_in() or await self._signs_in():
            return self.merchant
        self.number += 1
        self.merchant = await Merchant(self.client).open(f"guest{self.number}@shop.example", mode="sandbox")
        return self.merchant

    async def _is_in(self):
        return (await self.client.get("/api/auth/sessions", headers=self.merchant.bearer)).status_code == 200

    async def _signs_in(self):
        whose = {"email": self.merchant.email, "password": PASSWORD}
        answer = await self.client.post("/api/auth/login", json=whose)
        if answer.status_code == 200:
            self.merchant.take(answer)
        return answer.status_code == 200


async def follow(officer, path):
    """Open the operator's session anew where an operation has ended it."""
    if ENDING.search(path) and (await officer.ask("GET", "/api/admin/auth/me")).status_code == 401:
        await officer.open(stepped_up=True)


def keep_token(tracker, path, answer):
    """Go on with the token that a tracker was given in the place of the one before."""
    if path.endswith("/webhook/regenerate-secret") and answer.status_code == 200:
        tracker.token = {"X-Auth-Token": answer.json()["webhook"]["authToken"]}


def credential(two_merchants, merchant, audience, path, chance, schemes):
    """Return what an audience sends: an operator in person a session that has stepped up, a program the admin key."""
    if audience is Audience.OPERATOR:
        by_program = ADMIN_SCHEME in schemes and chance.random() < 0.5
        return {"X-Admin-Key": ADMIN_KEY} if by_program else two_merchants.officer.bearer
    if audience is Audience.DASHBOARD:
        return merchant.bearer
    return two_merchants.tracker.token if path.startswith("/api/webhook") and path != CREATE else merchant.key


@pytest.fixture
async def gateway(database_url, redis_url, clock, ids):
    """Have keys for all the guests that may come."""
    async with memory_gateway(web_settings(database_url, redis_url), clock, ids, stock=max(40, CASES)) as gateway:
        yield gateway


@pytest.fixture
async def receiving():
    """Give a server that what is sent goes to, and that answers now well, now not at all well."""
    statuses = cycle((200, 204, 400, 200, 302, 500))

    async def answer(_request):
        return web.Response(status=next(statuses), text="\x00 <noted>", headers={"Location": "http://127.0.0.1:9/"})

    async with receiver() as server:
        server.answer = answer
        yield server


@pytest.fixture
async def two_merchants(client, clock, station, receiving):
    two_merchants = await TwoMerchants(client, clock).build()
    ada, two_merchants.receiver = two_merchants.ada, receiving
    two_merchants.tracker = await make(client, ada.key, url=receiving.url)
    at = f"/api/merchant/projects/{ada.project_id}"
    await ada.ask("PATCH", at, {"paymentWebhookUrl": receiving.url})
    for name in ("hook_id", "tested_hook_id"):
        made = await ada.ask("POST", f"{at}/webhook-endpoints", {"url": receiving.url})
        two_merchants.ids[name] = made["endpoint"]["endpointId"]
    two_merchants.officer = await Officer(client).sign_in("owner", stepped_up=True)
    return two_merchants


def ids_of(two_merchants, merchant):
    """Return what there is by the names of parameters; where it belongs to a merchant, what this one has."""
    own = {"project_id": merchant.project_id, "merchant_id": merchant.merchant_id, "key_id": merchant.key_id}
    ids = {**two_merchants.ids, **own, "receiver_url": two_merchants.receiver.url}
    return {re.sub(r"_(\w)", lambda found: found[1].upper(), name): value for name, value in ids.items()}


def share_of(operation, mode):
    """Return how often what is made up gives way to what there is: for what sends something, always in right cases.

    Else a change of any description could have nothing be sent.
    """
    return 1.0 if mode is GenerationMode.POSITIVE and SENDS.search(operation.path) else 0.7


def known(ids, chance, share, parameters):
    """Put what there is in the place of names that are made up, most of the time."""
    return {
        name: ids[name] if name in ids and (name == "projectId" or chance.random() < share) else str(value)
        for name, value in parameters.items()
    }


def enlivened(ids, merchant, chance, share, body):
    """Have some fields of a body be right, so that a case comes further than the first look at it."""
    right = {
        "chain": "memory", "token": "USDX", "toAddress": person(), "amount": "1",
        "email": merchant.email, "password": PASSWORD, "currentPassword": PASSWORD,
        **{name: ids[name] for name in ("projectId", "paymentId", "payoutId")},
    }  # fmt: skip
    if share == 1:
        right |= {"event": "payment.paid", **dict.fromkeys(URLS, ids["receiverUrl"])}
    if not isinstance(body, dict):
        return body
    found = {name: right[name] if name in right and chance.random() < share else value for name, value in body.items()}
    # Nothing is looked up in the world outside, and nothing sent there.
    for name in URLS:
        if isinstance(found.get(name), str) and found[name].lower().startswith("http"):
            found[name] = ids["receiverUrl"]
    if found.get("isActive") is False:
        found["isActive"] = True  # else nobody could do anything in Ada's project any more
    return found


async def answer_of(two_merchants, merchant, audience, case, chance, share):
    ids = ids_of(two_merchants, merchant)
    headers = {str(name): str(value) for name, value in (case.headers or {}).items()}
    path = case.operation.path
    if "/webhook-endpoints/" in path:  # one that is sent to, and another one that may be deleted before
        ids["endpointId"] = ids["testedHookId" if SENDS.search(path) else "hookId"]
    sent = {"params": {name: value for name, value in (case.query or {}).items() if value is not None}}
    if not isinstance(case.body, NotSet):
        body = enlivened(ids, merchant, chance, share, case.body)
        sent["content"] = body if isinstance(body, bytes) else json.dumps(body, default=repr).encode()
        headers["Content-Type"] = case.media_type or "application/json"
    for name, value in known(ids, chance, share, case.path_parameters or {}).items():
        path = path.replace(f"{{{name}}}", re.sub(r"[^\w.~-]", lambda x: f"%{ord(x[0]) % 256:02x}", value) or "%20")
    headers = {name: value.encode("utf-8", "replace") for name, value in headers.items()}
    schemes = {name for way in case.operation.definition.raw.get("security", ()) for name in way}
    headers |= credential(two_merchants, merchant, audience, path, chance, schemes)
    return await two_merchants.client.request(case.method, path, headers=headers, **sent)


@pytest.mark.campaign
@pytest.mark.parametrize("audience", Audience, ids=[one.value for one in Audience])
async def test_every_operation_survives_what_is_made_up_for_it(two_merchants, client, audience, monkeypatch):
    for name, module in (("TESTS", deliveries), ("TESTS", trackers), ("CHECKS", signature_checks)):
        monkeypatch.setattr(module, name, RateLimit("as-often-as-it-takes", 1_000_000))
    schema = schemathesis.openapi.from_dict((await client.get(f"/api/openapi/{audience.value}.json")).json())
    chance = random.Random(11)
    guest, codes, sent, wrong, reached = Guest(client), set(), 0, {}, set()
    for found in schema.get_all_operations():
        operation = found.ok()
        for number, (mode, cases) in enumerate(modes_of(operation)):
            share = share_of(operation, mode)
            for case in made_up(operation, mode, number, cases):
                merchant = await guest.come() if GUESTS.search(operation.path) else two_merchants.ada
                answer = await answer_of(two_merchants, merchant, audience, case, chance, share)
                client.cookies.clear()
                keep_token(two_merchants.tracker, operation.path, answer)
                sent += 1
                codes.add(answer.status_code)
                sends = SENDS.search(operation.path) or STREAM.search(operation.path)
                if sends and answer.status_code == 200:
                    reached.add(sends[0])
                try:
                    judge(case, answer)
                except (AssertionError, FailureGroup) as error:  # each kind once: a run tells of all there are
                    wrong.setdefault((operation.label, answer.status_code), (error, answer.request.content))
                await follow(two_merchants.officer, operation.path)
    assert wrong == {}
    assert codes >= {200, 400, 404}
    assert sent > 25 * CASES
    named = {found[0] for path in schema.raw_schema["paths"] if (found := SENDS.search(path) or STREAM.search(path))}
    assert reached == named
    assert bool(two_merchants.receiver.received) == any(SENDS.search(path) for path in schema.raw_schema["paths"])
    assert (await two_merchants.officer.ask("GET", "/api/admin/auth/me")).status_code == 200, (
        "it asked without a session"
    )
    await two_merchants.picture()


def judge(case, answer):
    """Hold an answer against the description of its operation, and an error's code against the documentation."""
    is_stream = answer.headers["content-type"].startswith("text/event-stream")
    # A stream is described as the text that it is, and its schema says no more of it.
    case.validate_response(answer, checks=[one for one in CHECKS if not is_stream or one is not SCHEMA])
    if is_stream:
        events = [line for line in answer.text.splitlines() if line.startswith("event: ")]
        assert events == ["event: ready", "event: end"], answer.text
    if answer.status_code >= 400:
        code = refused(answer, answer.status_code, answer.json()["code"])["code"]
        assert f"`{code}`" in DOCUMENTED
