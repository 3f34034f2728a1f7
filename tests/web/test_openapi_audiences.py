"""The description split by audience: each operation is told to those who can call it, and each part stands alone."""

from __future__ import annotations

import json
import re

import pytest

from cambist.services.webhooks.payloads import PAYLOADS
from cambist_web.auth import SCOPE, STEP_UP
from cambist_web.openapi.audiences import SCHEMES, Audience, of_audience
from cambist_web.openapi.description import _camel_path, handlers_of
from cambist_web.openapi.pages import descriptions
from cambist_web.openapi.webhooks import example
from cambist_web.permissions import PERMISSION, PERMISSIONS
from tests.support.payloads import as_described
from tests.support.web import refused


@pytest.fixture
def app(client):
    return client._transport.app


@pytest.fixture
def whole(app):
    return json.loads(descriptions(app)["whole"])


@pytest.fixture
def parts(whole):
    return {one: of_audience(whole, one) for one in Audience}


def calls(description):
    return {
        (method, path): operation for path, item in description["paths"].items() for method, operation in item.items()
    }


async def test_every_operation_is_told_to_those_who_have_a_credential_for_it(whole, parts):
    assert set(whole["components"]["securitySchemes"]) == set().union(*SCHEMES.values()), "give it an audience"
    for call, operation in calls(whole).items():
        wanted = {one for one in Audience if any(way and way.keys() <= SCHEMES[one] for way in operation["security"])}
        told = {one for one in Audience if call in calls(parts[one])}
        if wanted:
            assert told == wanted, call
        else:
            assert told or not call[1].startswith("/api/"), f"{call} is told to nobody: see _OPEN"
    for audience, part in parts.items():
        assert len(calls(part)) > 20, audience
        for call, operation in calls(part).items():
            named = {name for way in operation["security"] for name in way}
            assert named <= SCHEMES[audience], (audience, call)
    for audience in (Audience.MERCHANT, Audience.DASHBOARD):
        assert [path for path in parts[audience]["paths"] if path.startswith("/api/admin")] == []


async def test_each_part_has_what_it_refers_to_and_nothing_else(parts):
    for audience, part in parts.items():
        text = json.dumps(part)
        assert set(re.findall(r"#/components/schemas/([^\"]+)", text)) == set(part["components"]["schemas"]), audience
        tags = {tag for operation in calls(part).values() for tag in operation["tags"]}
        assert {tag["name"] for tag in part["tags"]} == tags, audience
        names = [operation["operationId"] for operation in calls(part).values()]
        assert len(names) == len(set(names)), audience


@pytest.mark.parametrize("name", [one.value for one in Audience])
async def test_each_has_its_description_and_its_page(client, parts, name):
    answer = await client.get(f"/api/openapi/{name}.json")
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json() == parts[Audience(name)]
    page = await client.get(f"/api/swagger/{name}")
    assert f'data-description="/api/openapi/{name}.json"' in page.text
    assert "script-src 'self';" in page.headers["content-security-policy"]
    for link in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        assert (await client.get(link)).status_code == 200, link
    for path in ("/api/openapi/nobody.json", "/api/swagger/nobody"):
        refused(await client.get(path), 404, "ROUTE_NOT_FOUND")


async def test_an_operation_says_which_scope_permission_and_step_up_it_takes(app, parts):
    handlers = {(method, _camel_path(path)): one for (path, method), one in handlers_of(app).items()}
    for audience, part in parts.items():
        for call, operation in calls(part).items():
            opt = handlers[call].opt
            named = opt.get(PERMISSION)
            if audience is Audience.OPERATOR and named is not None:
                permission = PERMISSIONS[named]
                assert (operation["x-permission"], operation["x-roles"]) == (named, list(permission.roles)), call
                assert operation["x-step-up"] is permission.step_up, call
                assert f"`{named}`" in operation["description"], call
            else:
                assert not operation.keys() & {"x-permission", "x-roles"}, call
            if audience is Audience.DASHBOARD:
                assert operation.get("x-step-up", False) is bool(opt.get(STEP_UP)), call
            scope = opt.get(SCOPE) if audience is Audience.MERCHANT else None
            assert operation.get("x-scope") == (scope and str(getattr(scope, "value", scope))), call
    assert calls(parts[Audience.MERCHANT])["post", "/api/payment"]["x-scope"]


async def test_every_event_is_described_to_merchants_as_a_webhook_and_to_operators_none(parts, whole):
    assert set(parts[Audience.MERCHANT]["webhooks"]) == set(parts[Audience.DASHBOARD]["webhooks"]) == set(PAYLOADS)
    assert parts[Audience.OPERATOR]["webhooks"] == {}
    names = [one["post"]["operationId"] for one in whole["webhooks"].values()]
    assert len(set(names)) == len(PAYLOADS)
    assert {"onPaymentPaid", "onPaymentRateRecalculated", "onAccountDepositReceived"} <= set(names)
    assert {name for name in names if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name)} == set()


def test_the_examples_of_webhooks_are_what_their_schemas_say():
    for event in PAYLOADS:
        body = example(event)
        assert body["event"] == event
        as_described(event, body["data"])
