"""The API's description shows bodies that are read and answers as they are sent."""

from __future__ import annotations

import json

import msgspec
import pytest
from litestar.response import Stream
from litestar.routes import HTTPRoute
from msgspec import Struct

from cambist_web import openapi_examples
from cambist_web.openapi import described
from cambist_web.openapi_examples import answer_example, answered_by, body_example
from cambist_web.requests import decode_json
from cambist_web.schemas import with_moments


@pytest.fixture
def app(client):
    return client._transport.app


@pytest.fixture
def operations(app):
    """Return every operation, with its handler and its description."""
    paths = {path.lower(): item for path, item in json.loads(described(app))["paths"].items()}
    found = [
        (handler, paths[route.path_format.replace("_", "").lower()][method.lower()])
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for method, (handler, _) in route.route_handler_map.items()
        if method not in {"HEAD", "OPTIONS"} and handler.resolve_include_in_schema()
    ]
    assert len(found) == sum(len(item) for item in paths.values()) > 100
    return found


async def test_every_operation_shows_an_answer_that_it_could_send(operations):
    for handler, operation in operations:
        shown = {status: one for status, one in operation["responses"].items() if status[0] == "2"}
        assert shown, operation["operationId"]
        for status, response in shown.items():
            for kind, content in response["content"].items():
                if answered_by(handler) is Stream:
                    assert (kind, content["example"][:3]) == ("text/csv", "id,")
                    continue
                sent = json.dumps(content["example"]).encode()
                answer = msgspec.json.decode(sent, type=answered_by(handler))
                assert msgspec.to_builtins(with_moments(answer)) == content["example"], operation["operationId"]
                assert content["example"]["success"] is True
                assert ("idempotent" in content["example"]) == (len(shown) == 2 and status == "200")


async def test_every_operation_with_a_body_shows_one_that_is_read(operations):
    bodies = 0
    for handler, operation in operations:
        assert (handler.parsed_data_field is None) == ("requestBody" not in operation)
        if handler.parsed_data_field is not None:
            example = operation["requestBody"]["content"]["application/json"]["example"]
            assert example, operation["operationId"]
            decode_json(json.dumps(example).encode(), handler.parsed_data_field.annotation)
            bodies += 1
    assert bodies > 40


async def test_a_body_that_is_shown_is_taken(client, merchant, operations):
    (order,) = (
        one["requestBody"]["content"]["application/json"]["example"]
        for _, one in operations
        if one["operationId"] == "postPayment"
    )
    made = await client.post("/api/payment", json=order | {"chain": "memory", "token": "USDX"}, headers=merchant.key)
    assert made.status_code == 201, made.text


async def test_every_value_is_an_example_of_something(app, monkeypatch):
    used = set()

    class Noted(dict):
        def __contains__(self, name):
            used.add(name)
            return super().__contains__(name)

    monkeypatch.setattr(openapi_examples, "VALUES", Noted(openapi_examples.VALUES))
    openapi_examples.examples_of(app)
    assert openapi_examples.VALUES.keys() - used == set()


def test_a_field_without_an_example_fails_and_so_does_a_value_that_does_not_fit():
    class Unheard(Struct, rename="camel"):
        no_such_name: str

    class Fits(Struct):
        decimals: str

    with pytest.raises(LookupError, match=r"Unheard\.no_such_name"):
        body_example(Unheard)
    with pytest.raises(msgspec.ValidationError):
        answer_example(Fits)
