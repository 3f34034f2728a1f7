"""Whose a resource is: every route that names one is asked for another's, by everybody who is let in there.

Who is let in, ``test_access.py`` says: role, mode, scope and step-up. This is the owner's part of that product. Which
routes name what is read from the API's description, so that a new one is tried here, or fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import pytest
from msgspec import Struct

from cambist_web.openapi.pages import whole_description
from tests.support.access import MIRRORED, Access, decided
from tests.support.payout_env import person
from tests.support.strangers import NOBODYS, Caller, Strangers, sign_in_strangers
from tests.support.web import ADMIN_KEY
from tests.web.test_access import of_key, of_member

pytestmark = pytest.mark.slow

ROWS = {(row.method, row.path): row for row in decided()}
DOORS = ("key", "project", "session", "creator", "tracker")
"""Behind these, things are somebody's. Operators see everybody's, and what is public has an id that nobody guesses."""
METHODS = ("GET", "PATCH", "POST", "DELETE")
NAMES = re.compile(r"\w*Ids?|project|subject|actor|address|q")
"""What a parameter or a field is called that may name what is somebody's."""
KEYS = {
    "projectIds": "project_id", "project": "project_id", "subject": "approval_id",
    "q": "payment_id",
}  # fmt: skip
"""What is asked for by a name of another kind than its own."""
PROJECTS = {"projectId", "projectIds", "project"}
OWN_WORDS = {
    ("POST", "/api/account", "externalId"): "names the account that is made",
    ("POST", "/api/payment", "orderId"): "goes with the payment that is made",
    ("POST", "/api/dashboard/approved-addresses", "address"): "anybody's may be approved",
    ("GET", "/api/dashboard/audit", "address"): "is where an act came from",
    ("POST", "/api/webhook/create", "merchantId"): "is for operators",
    ("POST", "/api/webhook/address/add", "address"): "anybody's may be watched",
    ("POST", "/api/webhook/address/add-bulk", "address"): "anybody's may be watched",
    ("GET", "/api/webhook/transaction/list", "address"): "is of what the tracker itself has told",
}
"""What names nothing that there is, though it is called so."""

BACK = {"toAddress": person("thief"), "amount": "1"}
SINCE = {"since": "2020-01-01"}
THIEF = {"chain": "memory", "token": "USDX", **BACK}
TRACKER = {"url": "http://127.0.0.1:1025/thief", "name": "Thief", "chain": "memory"}
BODIES: Mapping[str, tuple[dict[str, Any], ...]] = {
    "POST /api/account/{accountId}/chains": ({"chains": ["pretend"]},),
    "POST /api/payment/{paymentId}/refund": (BACK,),
    "POST /api/merchant/resolutions/{depositId}/refund": (BACK,),
    "POST /api/events/redeliver": (SINCE | {"endpointId": "{endpoint_id}"},),
    "POST /api/events/{eventId}/redeliver": ({}, {"endpointId": "{endpoint_id}"}),
    "POST /api/sandbox/deposit": (
        {"paymentId": "{payment_id}", "amount": "1"},
        {"accountId": "{account_id}", "amount": "1", "token": "USDX", "chain": "memory"},
        {"address": "{address}", "amount": "1", "token": "USDX", "chain": "memory"},
    ),
    "POST /api/sandbox/fail-exchange": ({"txnId": "{txn_id}"},),
    "POST /api/sandbox/fail-payout": ({"payoutId": "{payout_id}"},),
    "POST /api/dashboard/projects/{projectId}/trackers/{webhookId}/redeliver": (SINCE,),
    "PATCH /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}": ({"paused": True},),
    "POST /api/merchant/projects/{projectId}/webhook-endpoints/{endpointId}/test": ({"event": "payment.paid"},),
    "POST /api/dashboard/withdrawals": (THIEF | {"projectId": "{project_id}", "totpCode": "000000"},),
    "PATCH /api/dashboard/members/{memberId}": (
        {"role": "viewer"},
        {"role": "viewer", "version": 0, "projectIds": ["{project_id}"]},
    ),
    "POST /api/dashboard/invitations": (
        {"email": "thief@team.example", "name": "Thief", "role": "viewer", "projectIds": ["{project_id}"]},
    ),
    "POST /api/webhook/create": (TRACKER | {"projectId": "{project_id}"},),
    "POST /api/webhook/address/update": ({"address": "{tracked}", "label": "mine"},),
    "POST /api/webhook/address/remove": ({"address": "{tracked}"},),
    "POST /api/webhook/address/remove-bulk": ({"addresses": [{"address": "{tracked_too}"}]},),
}
"""What is sent, but for the name: of several, the first that has it."""


class Try(Struct, frozen=True):
    """A request that names something of Ada's: in its path, its query or its body."""

    row: Access
    where: str
    name: str

    @property
    def key(self) -> str:
        """Return what it names, as the strangers' ids are called."""
        if self.name == "address" and self.row.door == "tracker":
            return "tracked_too" if self.row.path.endswith("-bulk") else "tracked"
        return KEYS.get(self.name) or re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", self.name)

    def bodies(self) -> tuple[dict[str, Any], ...]:
        return BODIES.get(f"{self.row.method} {key_path(self.row)}", ())


def key_path(row):
    """Return where keys do the same, for what members do below a project."""
    for path, rest in MIRRORED.items():
        below = f"/api/dashboard/projects/{{projectId}}{rest}"
        if row.path == below or row.path.startswith(f"{below}/"):
            return path + row.path.removeprefix(below)
    return row.path


def named_in(schema: Any, schemas: Any) -> Iterator[str]:
    """Yield the names of all fields that a body can have."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    for kind in ("oneOf", "anyOf", "allOf"):
        for one in schema.get(kind, ()):
            yield from named_in(one, schemas)
    if "items" in schema:
        yield from named_in(schema["items"], schemas)
    for name, one in schema.get("properties", {}).items():
        yield name
        yield from named_in(one, schemas)


def tries_of(app) -> Iterator[Try]:
    """Yield everything that a route names. That a project in the path is another's, ``test_access.py`` tries."""
    described = json.loads(whole_description(app))
    schemas = described["components"]["schemas"]
    for row in ROWS.values():
        if row.door not in DOORS:
            continue
        operation = described["paths"][row.path][row.method.lower()]
        told = [(one["in"], one["name"]) for one in operation.get("parameters", ())]
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        told += [("body", name) for name in named_in(body, schemas)]
        for where, name in dict.fromkeys(told):
            is_named = NAMES.fullmatch(name) and (where, name) != ("path", "projectId")
            if is_named and (row.method, key_path(row), name) not in OWN_WORDS:
                yield Try(row, where, name)


@pytest.fixture
def plays():
    return {"strangers": sign_in_strangers}


@pytest.fixture
def strangers(scene, client, clock) -> Strangers:
    return scene.copy(client, clock)


@pytest.fixture
def tries(client):
    """Give what is tried, in an order in which nothing is ended before it was read."""
    found = list(tries_of(client._transport.app))
    return sorted(found, key=lambda one: (METHODS.index(one.row.method), one.where))


async def ask(strangers, one, headers, values, project_id):
    """Send a request whose names stand for these values, and for nobody's where there is none."""

    def filled(text):
        return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], "unknown"), text)

    path = re.sub(
        r"\{(\w+)\}",
        lambda found: project_id if found[1] == "projectId" else values.get(Try(one.row, "path", found[1]).key, "no"),
        one.row.path,
    )
    bodies = [body for body in one.bodies() if one.where != "body" or f'"{one.name}"' in json.dumps(body)]
    sent = json.loads(filled(json.dumps(bodies[0]))) if bodies else None
    query = {one.name: values[one.key]} if one.where == "query" else {}
    if one.row.path.endswith("/overview"):
        query |= {"mode": "sandbox"}
    return await strangers.two.client.request(one.row.method, path, params=query, json=sent, headers=headers)


def guard_of(row, caller):
    """Return why somebody is not let in for what the caller has, None where only the thing named is another's."""
    if caller.scope is not None:
        return of_key(row, caller.mode, caller.scope, granted=True)
    return None if caller.member is None else of_member(row, caller.member, caller.mode, granted=True)


def is_anothers(one: Try, caller: Caller) -> bool:
    """Whether what is named is not the caller's, either. A merchant's team shares what belongs to no project.

    Of those some see only what is of their projects, and nobody sees another's sessions.
    """
    if one.row.door == "creator" and caller.scope is not None:
        return False  # a key makes trackers for its own project, whichever is named
    if caller.is_bobs:
        return True
    if one.row.door in {"key", "project", "tracker"} or one.name == "sessionId":
        return True
    return one.name in PROJECTS and caller.member is not None and caller.member.open_to is not None


async def test_every_name_in_a_route_is_known_here(strangers, tries):
    assert len(tries) > 100
    unknown = [(one.row.method, one.row.path, one.name) for one in tries if one.key not in strangers.ids]
    assert unknown == [], "what is that? Say whose, in tests/support/strangers.py"
    bodiless = [
        (one.row.method, one.row.path)
        for one in tries
        if one.where == "body" and not any(f'"{one.name}"' in json.dumps(body) for body in one.bodies())
    ]
    assert bodiless == [], "no body names it"
    told = {(one.row.method, key_path(one.row), one.name) for one in tries}
    assert told & OWN_WORDS.keys() == set()
    assert {f"{method} {path}" for method, path, _ in told} >= BODIES.keys(), "nothing is named there any more"


def who_asks(strangers, one, number):
    """Yield of each project one who may do everything there, and one of the others in turn.

    What lets them in does not depend on what is named, and ``test_access.py`` tries all of that.
    """
    for _, those in groupby(strangers.callers, key=lambda caller: (caller.project, caller.member is None)):
        strange = [caller for caller in those if caller.comes_through(one.row) and is_anothers(one, caller)]
        whole = [caller for caller in strange if caller.may_all]
        others = [caller for caller in strange if not caller.may_all]
        yield from whole[:1]
        yield from others[number % len(others) :][:1] if others else ()


async def ask_twice(strangers, one, caller, own, at):
    """Ask for what Ada has, and for what nobody has; return both answers, without the name that was asked for."""
    real, nobodys = strangers.ids[one.key], NOBODYS.get(one.name, "nobody_has_this")
    answer = await ask(strangers, one, caller, own | {one.key: real}, at)
    other = await ask(strangers, one, caller, own | {one.key: nobodys}, at)
    return (
        answer,
        (answer.status_code, answer.text.replace(real, "...")),
        (
            other.status_code,
            other.text.replace(nobodys, "..."),
        ),
    )


def refusal_of(one, caller, answer, seen, nobodys):
    """Return whether somebody was answered as is right about what is not the caller's."""
    guard = guard_of(one.row, caller)
    if guard is not None:
        return seen == nobodys and answer.json()["code"] == guard
    if one.name in PROJECTS and answer.status_code == 403:
        # Projects are told apart, by ids that nobody guesses.
        return answer.json()["code"] == ("PROJECT_NOT_OWNED" if caller.is_bobs else "PROJECT_NOT_OPEN")
    if one.row.method == "GET" and one.where == "query":
        found = [value for value in answer.json().values() if isinstance(value, list) and value]
        return seen == nobodys and answer.status_code in {200, 404} and not found
    if one.row.path.endswith("-bulk"):
        return seen == nobodys and [row["result"] for row in answer.json()["results"]] == ["not_watched"]
    return seen == nobodys and answer.status_code in {400, 403, 404}


async def test_what_has_an_id_is_there_for_its_project_alone(strangers, tries):
    """Whoever is let in is answered about another's as about what nobody has, and changes nothing of it."""
    before, tried, wrong = await strangers.two.picture(), set(), []
    for number, one in enumerate(tries):
        for caller in who_asks(strangers, one, number):
            own, at = strangers.own[caller.project], strangers.projects[caller.project]
            answer, seen, nobodys = await ask_twice(strangers, one, caller.headers, own, at)
            if guard_of(one.row, caller) is None:
                tried.add(one)
            if not refusal_of(one, caller, answer, seen, nobodys):
                wrong.append((one.row.method, one.row.path, one.name, caller.project, caller.who, seen, nobodys))
    assert wrong == [], "\n".join(map(str, wrong))
    assert await strangers.two.picture() == before
    assert set(tries) - tried == set()


async def test_whose_it_is_reaches_all_of_it_by_the_same_requests(strangers, tries):
    """Else what strangers are refused would prove nothing: each names what there is, well enough."""
    wrong = []
    for one in tries:
        headers, at = strangers.owners[one.row.door], strangers.projects["ada's"]
        answer, seen, nobodys = await ask_twice(strangers, one, headers, strangers.ids, at)
        if seen == nobodys or answer.status_code in {400, 404}:
            wrong.append((one.row.method, one.row.path, one.name, seen, nobodys))
    assert wrong == [], "\n".join(map(str, wrong))


SHARED = re.compile(r"/wallet(/|$)|/(usage|plan)$")
"""What projects of one merchant and mode have together."""
QUERIES = {
    "/wallet/balance": "?chain=memory&token=USDX",
    "/swap-bridge/pairs": "?srcChain=memory&srcToken=USDX",
    "/search": "?q=nothing",
}
"""What cannot be left out."""


def reads(*doors):
    """Yield the routes that read without naming what, and what they must be asked."""
    for row in ROWS.values():
        if row.door in doors and row.method == "GET" and not re.search(r"\{(?!projectId)\w+\}", row.path):
            yield row, next((query for end, query in QUERIES.items() if row.path.endswith(end)), "")


async def test_lists_tell_strangers_of_nothing(strangers):
    told, wrong, client = 0, [], strangers.two.client
    secret = [value for name, value in strangers.ids.items() if "_" in value and name != "actor"]
    assert len(secret) > 12
    for row, query in reads(*DOORS):
        for caller in strangers.callers:
            if not caller.may_all or not caller.comes_through(row):
                continue
            if not caller.is_bobs and (row.door == "session" or SHARED.search(row.path)):
                continue
            path = row.path.replace("{projectId}", strangers.projects[caller.project])
            answer = await client.get(f"{path}{query}", headers=caller.headers)
            seen = [one for one in secret if one in answer.text]
            if answer.status_code != 200 or seen:
                wrong.append((row.path, caller.project, caller.who, answer.status_code, seen))
            told += 1
    assert wrong == [], "\n".join(map(str, wrong))
    assert told > 100


async def test_the_right_credential_is_let_in_everywhere(strangers):
    """Whoever owns it reads every list, and operators read all there are."""
    operator, wrong = {"X-Admin-Key": ADMIN_KEY}, []
    for row, query in reads(*DOORS, "operator"):
        headers = strangers.owners.get(row.door, operator)
        path = row.path.replace("{projectId}", strangers.projects["ada's"])
        answer = await strangers.two.client.get(f"{path}{query}", headers=headers)
        if answer.status_code != 200:
            wrong.append((row.path, answer.text))
    assert wrong == [], "\n".join(map(str, wrong))
