"""The API's description shows bodies that are read and answers as they are sent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from litestar.response import Stream
from msgspec import Struct
from structlog.testing import capture_logs

from cambist_web.csv_columns import columns_of
from cambist_web.lists import items_of
from cambist_web.live.response import LiveStream
from cambist_web.openapi import errors, examples, fields
from cambist_web.openapi.description import _camel_path, described, handlers_of
from cambist_web.openapi.examples import answer_example, answered_by, body_example
from cambist_web.openapi.fields import describe_parameter, describe_schemas
from cambist_web.openapi.pages import descriptions
from cambist_web.requests import decode_json
from cambist_web.schemas import with_moments
from tests.e2e.specification.rows import ROWS
from tests.support import web


@pytest.fixture
def app(client):
    return client._transport.app


@pytest.fixture
def description(app):
    return json.loads(descriptions(app)["whole"])


@pytest.fixture
def operations(app, description):
    """Return every operation, with its handler and its description."""
    paths = description["paths"]
    found = [(handler, paths[_camel_path(path)][method]) for (path, method), handler in handlers_of(app).items()]
    assert len(found) == sum(len(item) for item in paths.values()) > 100
    return found


async def test_every_operation_shows_an_answer_that_it_could_send(operations):
    for handler, operation in operations:
        shown = {status: one for status, one in operation["responses"].items() if status[0] == "2"}
        assert shown, operation["operationId"]
        for status, response in shown.items():
            for kind, content in response["content"].items():
                if answered_by(handler) is LiveStream:
                    assert (kind, content["example"][:20]) == ("text/event-stream", "id: 8Jm2\nevent: chan")
                    continue
                if answered_by(handler) is Stream:
                    assert (kind, content["example"][:3]) == ("text/csv", "id,")
                    continue
                if kind == "text/csv":
                    assert content["example"].split(",") == [
                        one.name for one in columns_of(items_of(answered_by(handler))[1])
                    ]
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
        if one["operationId"] == "createPayment"
    )
    made = await client.post("/api/payment", json=order | {"chain": "memory", "token": "USDX"}, headers=merchant.key)
    assert made.status_code == 201, made.text


class Noted(dict):
    """A table that keeps in mind what was found in it."""

    def __init__(self, table):
        super().__init__(table)
        self.used = set()

    def __contains__(self, name):
        if super().__contains__(name):
            self.used.add(name)
            return True
        return False


@pytest.mark.slow
async def test_every_value_and_every_sentence_is_of_something(app, monkeypatch):
    tables = {
        (module, name): Noted(getattr(module, name))
        for module, name in (
            (examples, "VALUES"),
            (fields, "WORDS"),
            (fields, "OWN_WORDS"),
            (fields, "CHOICES"),
        )
    }
    for (module, name), table in tables.items():
        monkeypatch.setattr(module, name, table)
    described(app)
    unused = {name: sorted(table.keys() - table.used) for (_, name), table in tables.items()}
    assert not any(unused.values()), f"nothing has these names any more, take them out: {unused}"


@pytest.mark.slow
async def test_every_field_and_parameter_has_words_an_example_and_its_choices(app):
    with capture_logs() as logs:
        described(app)
    lacking = [entry["what"] for entry in logs if entry["event"] == "not_described"]
    assert lacking == [], "\n".join(lacking)


def test_a_field_or_parameter_without_words_example_or_choices_is_told_of():
    class Unheard(Struct, rename="camel"):
        no_such_name: str

    class Vague(Struct, rename="camel"):
        status: str

    with capture_logs() as logs:
        for cls in (Unheard, Vague):
            (name,) = (field.encode_name for field in msgspec.structs.fields(cls))
            describe_schemas({cls.__name__: {"properties": {name: {"type": "string"}}}}, {cls}, ())
        describe_parameter("listPayments", {"in": "query", "name": "noSuchName", "schema": {"type": "string"}})
    assert [entry["what"] for entry in logs] == [
        "Unheard.no_such_name has no words: add a line to openapi/words.txt that says what it is.",
        "Unheard.no_such_name has no example in VALUES",
        "Vague.status may be any text: say in CHOICES of openapi/own_words.py which.",
        "The parameter noSuchName of listPayments has no words: add a line to openapi/own_words.py.",
    ]


async def test_the_names_of_schemas_are_names_in_clients_too(description):
    assert {
        name for name in description["components"]["schemas"] if not re.fullmatch("[A-Z][A-Za-z0-9]+", name)
    } == set()


async def test_the_description_has_every_row_of_the_specification(client):
    page = await client.get("/api/swagger")
    assert (page.status_code, page.headers["content-type"].partition(";")[0]) == (200, "text/html")
    told = (await client.get("/api/openapi.json")).json()
    assert told["info"]["version"] == "1.0.0"
    assert {f"{method.upper()} {path}" for path, ways in told["paths"].items() for method in ways} > set(ROWS)


async def test_a_description_that_is_known_already_is_not_sent_again(client):
    for path in ("/api/openapi.json", "/api/openapi/merchant.json"):
        first = await client.get(path)
        tag = first.headers["etag"]
        for known in (tag, f'"other", W/{tag}'):
            again = await client.get(path, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert (await client.get(path, headers={"If-None-Match": '"other"'})).content == first.content


def test_a_field_without_an_example_fails_and_so_does_a_value_that_does_not_fit():
    class Unheard(Struct, rename="camel"):
        no_such_name: str

    class Fits(Struct):
        decimals: str

    with pytest.raises(LookupError, match=r"Unheard\.no_such_name"):
        body_example(Unheard)
    with pytest.raises(msgspec.ValidationError):
        answer_example(Fits)


FORBIDDEN = {
    "stepUp": {"TWO_FACTOR_NOT_ENROLLED", "TWO_FACTOR_REQUIRED", "TWO_FACTOR_INVALID"},
    "changePassword": {"PASSWORD_INVALID", "STEP_UP_REQUIRED"},
    "enrolTwoFactor": {"PASSWORD_INVALID", "TWO_FACTOR_REQUIRED", "TWO_FACTOR_INVALID"},
    "createPayout": {"SCOPE_MISSING", "IP_NOT_ALLOWED", "LIVE_NOT_GRANTED", "PROJECT_INACTIVE"},
    "createPayoutInProject": {"STEP_UP_REQUIRED", "LIVE_NOT_GRANTED", "PROJECT_INACTIVE"},
    "listPayments": {"SCOPE_MISSING", "IP_NOT_ALLOWED"},
}


async def test_an_operation_says_what_its_guards_refuse(operations):
    told = {
        operation["operationId"]: {
            code
            for status, one in operation["responses"].items()
            if status == "403"
            for code in re.findall("`([A-Z_]+)`", one["description"])
        }
        for _, operation in operations
    }
    for name, codes in FORBIDDEN.items():
        assert codes <= told[name], name
    assert "LIVE_NOT_GRANTED" not in told["listPayments"]
    assert all(told[name] for name in ("createPayment", "createPayoutBatch", "executeSwap", "sandboxMine"))


DESCRIBED = {
    "approveAddress": ({"403 LIVE_NOT_GRANTED"}, set()),
    "createWithdrawal": (set(), {"403 LIVE_NOT_GRANTED"}),
    "changeProject": (set(), {"403 LIVE_NOT_GRANTED"}),
    "createPayoutBatch": (
        {"400 IDEMPOTENCY_KEY_MISMATCH"},
        {"403 TARGET_NOT_ALLOWED", "403 PAYOUT_LIMIT_EXCEEDED"},
    ),
    "recalculatePaymentInProject": (
        {"503 CHAIN_UNAVAILABLE", "400 UNSUPPORTED_CHAIN", "400 UNSUPPORTED_TOKEN"},
        set(),
    ),
    "getReadiness": ({"503 NOT_READY"}, {"429 RATE_LIMITED"}),
    "getLiveness": (set(), {"429 RATE_LIMITED"}),
    "sandboxFailPayout": ({"400 UNSUPPORTED_CHAIN"}, {"503 SANDBOX_BUSY"}),
    "getWallet": ({"429 BUSY", "503 UNAVAILABLE"}, set()),
    "createPayout": ({"429 BUSY", "503 UNAVAILABLE"}, set()),
}
"""What only rare answers would show; all that come in tests are checked by ``tests/support/web.py``."""


async def test_what_an_operation_rarely_answers_is_described_and_what_it_never_does_is_not(operations):
    told = {
        operation["operationId"]: {
            f"{status} {code}"
            for status, one in operation["responses"].items()
            for code in re.findall("`([A-Z_]+)`", one["description"])
        }
        for _, operation in operations
    }
    for name, (wanted, never) in DESCRIBED.items():
        assert wanted <= told[name], name
        assert not never & told[name], name


@pytest.mark.slow
async def test_an_error_that_is_not_described_fails_in_every_test(client, merchant, monkeypatch):
    monkeypatch.setattr(web, "_errors", {})
    monkeypatch.setattr(errors, "_OF_SCHEME", {name: {} for name in errors._OF_SCHEME})
    monkeypatch.setattr(client._transport.app.state, "description", None, raising=False)
    with pytest.raises(AssertionError, match=r"GET /api/merchant/wallet: 401 API_KEY_MISSING is not described"):
        await client.get("/api/merchant/wallet")


def test_every_row_of_the_errors_is_about_an_operation_and_no_code_is_unknown(description):
    documented = (Path(__file__).parents[2] / "docs/merchants/errors.md").read_text()
    paths = [(path, method) for path, item in description["paths"].items() for method in item]
    for pattern, method, codes in errors._OF_NOUN:
        about = any(pattern.search(path) and name.startswith(method) for path, name in paths)
        assert about, (pattern.pattern, method)
        for status, names in codes.items():
            rows = [re.search(rf"`{name}`.*?\| ([^|]*) \|", documented) for name in names]
            assert all(row is not None and str(status) in row[1] for row in rows), (pattern.pattern, status, names)
