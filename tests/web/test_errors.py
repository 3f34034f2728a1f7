"""Errors: one shape with a code for everything that can go wrong, at every endpoint, for every credential."""

from __future__ import annotations

import ast
import asyncio
import gzip
import json
import re
import time
from contextlib import AsyncExitStack
from itertools import cycle
from pathlib import Path

import pytest
from litestar.exceptions import InternalServerException
from msgspec.structs import replace
from structlog.testing import capture_logs

from cambist.services.errors import InvalidError
from cambist.services.metadata import check_shown
from cambist.services.trackers.addresses import ManyAddresses
from cambist.settings import DatabaseSettings
from cambist_web.api import coins, discovery
from cambist_web.errors import HTTP_ERRORS
from cambist_web.requests import decode_json
from tests.support.operators import Officer
from tests.support.tracker_api import CREATE, make
from tests.support.web import ADMIN_KEY, Merchant, memory_gateway, refused, web_client, web_settings

ROOT = Path(__file__).parents[2]
RAISING = re.compile(r"Error|error_response|\bfield|__init__")
CODE = re.compile(r"""["'][A-Z][A-Z_]+["']""")

OPEN = {
    ("GET", "/api/public/chains"),
    ("GET", "/api/public/tokens"),
    ("GET", "/api/public/cpt-calculator-config"),
    ("GET", "/api/status"),
    ("GET", "/api/payment/public/{public_id}"),
    ("GET", "/api/public/account/{public_id}"),
    ("POST", "/api/auth/invitations/read"),
    ("POST", "/api/auth/invitations/accept"),
    ("POST", "/api/auth/register"),
    ("POST", "/api/auth/login"),
    ("POST", "/api/auth/refresh"),
    ("POST", "/api/auth/logout"),
    ("POST", "/api/auth/password-reset/request"),
    ("POST", "/api/auth/password-reset/confirm"),
    ("POST", "/api/admin/auth/sign-in"),
    ("POST", "/api/admin/auth/two-factor/enrol"),
    ("POST", "/api/admin/auth/two-factor/confirm"),
    ("POST", "/api/admin/auth/refresh"),
    ("POST", "/api/admin/auth/sign-out"),
    ("POST", "/api/admin/auth/set-password"),
}
KEY_PREFIXES = (
    "/api/account",
    "/api/payment",
    "/api/merchant/wallet",
    "/api/merchant/swap-bridge",
    "/api/merchant/usage",
    "/api/merchant/plan",
    "/api/merchant/resolutions",
    "/api/sandbox",
    "/api/events",
)
PROJECT = {"project_id", "projectId"}
SESSION_PREFIXES = (
    "/api/merchant/webhooks",
    "/api/merchant/projects",
    "/api/dashboard",
    "/api/auth/step-up",
    "/api/auth/sessions",
    "/api/auth/password",
)


def api_routes(client):
    app = client._transport.app
    found = set()
    for route in app.routes:
        if not route.path.startswith("/api/") or route.path.startswith(
            ("/api/swagger", "/api/openapi")
        ):  # no credential
            continue
        path = re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path)
        found |= {(method, path) for method in route.methods if method != "OPTIONS"}
    return sorted(found)


def filled(path, merchant, **ids):
    ids |= dict.fromkeys(PROJECT, merchant.project_id)
    return re.sub(r"\{(\w+)\}", lambda found: ids.get(found[1], "unknown"), path)


def accepts(path, method):
    if (method, path) in OPEN:
        return "nothing"
    if path.startswith("/api/admin/auth"):
        return "operator"
    if path.startswith("/api/admin"):
        return "admin"
    if path == CREATE:
        return "key, session or admin"
    if path.startswith("/api/webhook"):
        return "token"
    if path.startswith(KEY_PREFIXES):
        return "key"
    assert path.startswith(SESSION_PREFIXES), f"{path} has no rule in this test"
    return "session"


@pytest.mark.slow
async def test_each_endpoint_refuses_query_parameters_that_it_does_not_know(merchant, client):
    operator = await Officer(client).sign_in("owner")
    credentials = {"key": merchant.key, "session": merchant.bearer, "admin": {"X-Admin-Key": ADMIN_KEY}, "nothing": {}}
    credentials["operator"] = operator.bearer
    await merchant.step_up()
    await merchant.add_project(mode="sandbox")
    credentials["key"] = credentials["key, session or admin"] = merchant.key
    credentials["token"] = (await make(client, merchant.key)).token
    for method, path in api_routes(client):
        headers = credentials[accepts(path, method)]
        if method == "POST" and path.endswith("/auth/refresh"):
            continue
        answer = await client.request(method, filled(path, merchant) + "?noSuchParameter=1", headers=headers)
        refused(answer, 400, "VALIDATION_ERROR", "noSuchParameter")
    refused(await client.get("/api/payment?page=1&page=2", headers=merchant.key), 400, "VALIDATION_ERROR", "page")
    refused(await client.get("/api/payment?noSuchParameter=1"), 401, "API_KEY_MISSING")
    for path in ("/health/live?now=1", "/pay/pub_x?utm_source=mail"):
        assert (await client.get(path)).status_code in {200, 404}, "what is no API is opened with anything"


OF_NO_TYPE = [
    (b"{", "INVALID_JSON"),
    (b"\xff\xfe", "INVALID_JSON"),
    (b'{"a":"\x00"}', None),
    (b'{"a":' + b"[" * 5000, None),
]
"""What is refused before anybody knows what a body must be: in one place for all endpoints."""
OF_ANOTHER_TYPE = [
    (b"[]", "VALIDATION_ERROR"),
    (b'"text"', "VALIDATION_ERROR"),
    (b"5", "VALIDATION_ERROR"),
]
JSON = {"Content-Type": "application/json"}
NOT_READ = [
    (b"a=b", {"Content-Type": "application/x-www-form-urlencoded"}),
    (gzip.compress(b"{}"), JSON | {"Content-Encoding": "gzip"}),
]


def taken(operation, schemas):
    """Return the types of JSON that an operation takes for a body."""
    (body,) = operation["requestBody"]["content"].values()
    kinds = body["schema"].get("oneOf", [body["schema"]])
    return {(schemas[one["$ref"].rpartition("/")[2]] if "$ref" in one else one)["type"] for one in kinds}


@pytest.mark.slow
async def test_each_endpoint_with_a_body_refuses_what_is_none(merchant, client):
    await merchant.step_up()
    await merchant.add_project(mode="sandbox")
    operator = await Officer(client).sign_in("owner")
    credentials = {"key": merchant.key, "session": merchant.bearer, "admin": {"X-Admin-Key": ADMIN_KEY}, "nothing": {}}
    credentials["operator"] = operator.bearer
    credentials["key, session or admin"] = merchant.key
    tracker = await make(client, merchant.key)
    credentials["token"] = tracker.token
    schema = (await client.get("/api/openapi.json")).json()
    large = {size: json.dumps({"name": "x" * size}).encode() for size in (300_000, 5_000_000)}
    of_no_type, of_another, not_read = cycle(OF_NO_TYPE), cycle(OF_ANOTHER_TYPE), cycle(NOT_READ)
    bodies = 0
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            if "requestBody" not in operation:
                continue
            bodies += 1
            # So what is of another type is asked in turn: each takes an object, or nothing.
            assert taken(operation, schema["components"]["schemas"]) <= {"object", "null"}, path
            # Whose tracker it is, is asked before the body is read.
            url = filled(path, merchant, webhookId=tracker.webhook_id)
            headers = credentials[accepts(path, method.upper())]
            wrong = [next(of_no_type), next(of_another), (b'{"noSuchField": 1}', None)]
            if operation["requestBody"]["required"]:
                wrong += [(b"", "INVALID_JSON"), (b"null", "VALIDATION_ERROR")]
            for body, code in wrong:
                response = await client.request(method, url, content=body, headers=headers | JSON)
                assert 400 <= response.status_code < 500, (method, path, body[:20], response.text)
                refused(response, response.status_code, code or response.json()["code"])
            body, told = next(not_read)
            response = await client.request(method, url, content=body, headers=headers | told)
            refused(response, 415, "UNSUPPORTED_MEDIA_TYPE")
            body = large[5_000_000 if path.endswith("-bulk") else 300_000]
            refused(await client.request(method, url, content=body, headers=headers | JSON), 413, "BODY_TOO_LARGE")
    assert bodies >= 12


@pytest.mark.parametrize(
    "path", ["/api/nothing", "/nothing", "/api", "/api/openapi/x", "/api/payment/a/b/c", "/api/public/chains/x"]
)
async def test_a_path_that_leads_nowhere_has_the_shape_of_errors(client, path):
    refused(await client.get(path), 404, "ROUTE_NOT_FOUND")


async def test_a_method_that_is_not_taken_names_those_that_are(client):
    response = await client.put("/api/public/chains")
    refused(response, 405, "METHOD_NOT_ALLOWED")
    assert "GET" in response.headers["allow"]


async def test_credentials_are_asked_for_before_the_body_is_read(client):
    response = await client.post("/api/merchant/projects", content=b"{", headers={"Content-Type": "text/plain"})
    refused(response, 401, "SESSION_REQUIRED")


async def test_nul_is_refused_wherever_it_hides(merchant, client):
    hidden = [
        (b'{"name":"a\\u0000b","mode":"live"}', "name"),
        (b'{"name":"\\\\u0000\\u0000","mode":"live"}', "name"),
    ]
    for body, field in hidden:
        response = await client.post(
            "/api/merchant/projects", content=body, headers={**merchant.bearer, "Content-Type": "application/json"}
        )
        refused(response, 400, "VALIDATION_ERROR", field)
    refused(await client.get("/api/payment/pay%00x", headers=merchant.key), 400, "VALIDATION_ERROR", "path")
    refused(await client.get("/api/payment?chain=%00", headers=merchant.key), 400, "VALIDATION_ERROR", "query")
    escaped = b'{"name":"\\\\u0000","mode":"live"}'  # a backslash and five characters, not NUL
    response = await client.post(
        "/api/merchant/projects", content=escaped, headers={**merchant.bearer, "Content-Type": "application/json"}
    )
    assert response.status_code == 201, response.text


@pytest.mark.slow
@pytest.mark.parametrize("hidden", ["\x1b[2J", "\u202e", "\u200b", "\ufeff", "\x85", "\n", "\x7f"], ids=ascii)
async def test_text_that_hides_something_is_refused_in_every_body_by_its_field(merchant, client, hidden):
    await merchant.step_up()
    order = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}
    key, bearer, projects = merchant.key, merchant.bearer, "/api/merchant/projects"
    project = f"{projects}/{merchant.project_id}"
    asked = [
        (
            "POST",
            "/api/auth/register",
            {"email": f"a{hidden}da@x.example", "password": "x", "name": "Ada"},
            {},
            "email",
        ),
        ("POST", projects, {"name": f"Sh{hidden}op", "mode": "live"}, bearer, "name"),
        ("PATCH", project, {"name": f"Sh{hidden}op"}, bearer, "name"),
        ("POST", f"{project}/api-keys", {"name": f"Ti{hidden}ll"}, bearer, "name"),
        ("POST", "/api/payment", order | {"orderId": f"A{hidden}1"}, key, "orderId"),
        ("POST", "/api/payment", order | {"customerName": f"A{hidden}da"}, key, "customerName"),
        ("POST", "/api/payment", order | {"idempotencyKey": f"A{hidden}1"}, key, "idempotencyKey"),
    ]
    if hidden != "\n":
        asked.append(("POST", "/api/payment", order | {"metadata": {"a": [f"x{hidden}y"]}}, key, "metadata.a[0]"))
    asked.append(("POST", "/api/payment", order | {"metadata": {f"x{hidden}y": 1}}, key, "metadata"))
    for method, path, body, headers, field in asked:
        for ensure_ascii in (True, False):
            content = json.dumps(body, ensure_ascii=ensure_ascii)
            headers = headers | {"Content-Type": "application/json"}  # noqa: PLW2901  the same each time
            answer = await client.request(method, path, content=content.encode(), headers=headers)
            refused(answer, 400, "VALIDATION_ERROR", field)
    query = {"orderId": f"A{hidden}1", "chain": f"memory{hidden}"}
    refused(await client.get("/api/payment", params=query, headers=key), 400, "VALIDATION_ERROR", "query")


def test_looking_for_what_hides_takes_no_longer_for_a_long_name_before_many_values():
    """A tracker's token sends four megabytes: where they stand was written anew for each value, for minutes."""
    metadata = {"n" * 600_000: [1] * 400_000, "b": "\u202e"}
    body = json.dumps({"addresses": [{"address": "mem1", "metadata": metadata}]}).encode()
    began = time.thread_time()
    decode_json(body, ManyAddresses)  # each row is judged alone
    with pytest.raises(InvalidError) as caught:
        check_shown(metadata)
    assert time.thread_time() - began < 2
    assert [one.field for one in caught.value.details] == ["metadata.b"]


async def test_what_people_write_is_stored_as_it_is(merchant, client):
    told = {
        "customerName": "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627",
        "orderId": "Größe 42 \U0001f469\u200d\U0001f4bb",
        "metadata": {"note": "one line\n\tand another"},
    }
    order = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}
    made = await client.post("/api/payment", json=order | told, headers=merchant.key)
    assert made.status_code == 201, made.text
    read = await client.get(f"/api/payment/{made.json()['payment']['paymentId']}", headers=merchant.key)
    assert {name: read.json()["payment"][name] for name in told} == told
    body = {"email": "zoe@x.example", "password": "\u200b hidden \x1b but long enough", "name": "Zoë"}
    assert (await client.post("/api/auth/register", json=body)).status_code == 201


@pytest.mark.parametrize(
    "query",
    ["page=0", "page=x", "page=1.5", "page=-1", "limit=0", "limit=101", "page=99999999999999999999999", "page=true"],
)
async def test_a_page_that_does_not_exist_is_refused_by_field(merchant, client, query):
    path = f"/api/dashboard/projects/{merchant.project_id}/deliveries"
    field = query.partition("=")[0]
    refused(await client.get(f"{path}?{query}", headers=merchant.bearer), 400, "VALIDATION_ERROR", field)


async def test_a_query_parameter_is_named_as_it_was_sent_and_told_its_values(merchant, client):
    """Also where our code calls it by another name, or reads it for every list alike."""
    statement = "/api/merchant/wallet/transactions"
    for path, query, credential in (
        (statement, "from=", merchant.key),
        (statement, "to=", merchant.key),
        (statement, "type=", merchant.key),
        ("/api/payment", f"from={'1' * 41}", merchant.key),
        ("/api/payment", "orderId=", merchant.key),
        ("/api/dashboard/overview", "timeZone=", merchant.bearer),
    ):
        answer = await client.get(f"{path}?{query}", headers=credential)
        refused(answer, 400, "VALIDATION_ERROR", query.partition("=")[0])
    answer = await client.get("/api/payment?format=xml", headers=merchant.key)
    refused(answer, 400, "VALIDATION_ERROR", "format")
    assert answer.json()["error"] == 'format must be one of "csv", "json"'


@pytest.mark.parametrize("kind", [RuntimeError, InternalServerException])
async def test_a_bug_of_ours_tells_the_caller_nothing_but_an_id_that_is_in_the_log(client, monkeypatch, kind):
    def bug(*_):
        raise kind("secret of the house")

    # No route is added for it: the app is the next test's, too.
    monkeypatch.setattr(discovery, "chain_view", bug)
    with capture_logs() as logs:
        response = await client.get("/api/public/chains")
    body = refused(response, 500, "INTERNAL_ERROR")
    assert "secret" not in response.text
    assert response.headers["x-request-id"] in body["error"]
    assert logs[0]["request_id"] == response.headers["x-request-id"]
    assert isinstance(logs[0]["exc_info"], kind)


async def test_every_answer_carries_the_headers_of_safety(merchant, client):
    for path in ("/api/public/chains", "/api/nothing", "/health/live", "/api/merchant/wallet"):
        headers = (await client.get(path, headers=merchant.key)).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["content-security-policy"].startswith("default-src 'none'"), path
        assert headers["cache-control"] == "no-store", path
        assert "server" not in headers


async def test_no_answer_lets_a_browser_load_frame_send_or_rebase_anything(client):
    for path in ("/api/public/chains", "/api/nothing", "/health/live", "/pay/pub_unknown", "/api/swagger"):
        policy = (await client.get(path)).headers["content-security-policy"].split("; ")
        wanted = {"default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"}
        assert wanted <= set(policy), path


@pytest.mark.slow
async def test_on_https_every_answer_tells_browsers_to_stay_there(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url)
    settings = replace(settings, web=replace(settings.web, public_url="https://pay.example.com"))
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        for path in ("/api/public/chains", "/api/nothing", "/pay/pub_unknown", "/checkout-assets/x"):
            told = (await client.get(path)).headers["strict-transport-security"]
            assert told == "max-age=31536000; includeSubDomains", path


async def test_text_names_its_encoding_and_json_is_called_so(client):
    types = {
        "/api/public/chains": "application/json",
        "/api/nothing": "application/json",
        "/pay/pub_unknown": "text/html; charset=utf-8",
        "/api/swagger": "text/html; charset=utf-8",
        "/api/swagger/start.js": "text/javascript; charset=utf-8",
    }
    for path, wanted in types.items():
        assert (await client.get(path)).headers["content-type"] == wanted, path


async def test_nothing_answers_trace(client):
    for path in ("/api/public/chains", "/pay/pub_unknown", "/health/live"):
        response = await client.request("TRACE", path, headers={"X-Api-Key": "ck_live_echoed"})
        refused(response, 405, "METHOD_NOT_ALLOWED")
        assert "echoed" not in response.text


async def test_a_query_says_everything_once(merchant, client):
    response = await client.get("/api/payment?page=1&limit=5&page=2", headers=merchant.key)
    refused(response, 400, "VALIDATION_ERROR", "page")


async def test_the_database_being_away_is_an_error_in_the_same_shape(merchant, client, gateway):
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("ALTER TABLE api_keys RENAME TO api_keys_away")
    with capture_logs():
        body = refused(await client.get("/api/merchant/wallet", headers=merchant.key), 500, "INTERNAL_ERROR")
    assert "api_keys" not in body["error"]


async def test_a_customers_page_says_in_words_that_the_database_is_away_and_tries_again(client, gateway):
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("ALTER TABLE payments RENAME TO payments_away")
    with capture_logs() as lines:
        page = await client.get("/pay/pub_1")
    assert page.status_code == 500
    assert page.headers["content-type"].startswith("text/html")
    assert "Not available just now" in page.text
    assert '<meta http-equiv="refresh" content="15">' in page.text
    assert "default-src 'none'; script-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["x-request-id"] == lines[-1]["request_id"]
    assert "payments_away" not in page.text
    assert "UndefinedTable" not in page.text


async def test_a_customers_page_says_in_words_that_a_link_is_wrong(client):
    page = await client.get(f"/account/pub_1?chain={65 * 'x'}")
    assert page.status_code == 400
    assert page.headers["content-type"].startswith("text/html")
    assert "This link does not lead to a page." in page.text
    assert 'http-equiv="refresh"' not in page.text


@pytest.mark.slow
def test_every_code_is_in_the_documentation():
    documented = (ROOT / "docs/merchants/errors.md").read_text()
    codes = set()
    for package in ("core/src/cambist/services", "web/src/cambist_web"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            if not CODE.search(text):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call):
                    strings = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
                    told = {text for text in strings if re.fullmatch(r"[A-Z][A-Z_]+", str(text))}
                    if told and RAISING.search(ast.unparse(node.func)):
                        codes |= told
    codes |= {code for code, _ in HTTP_ERRORS.values()}
    assert len(codes) > 30
    assert {code for code in codes if f"`{code}`" not in documented} == set()


@pytest.fixture
async def narrow(database_url, redis_url, clock, ids):
    """Serve a gateway that has one connection to the database."""
    settings = web_settings(database_url, redis_url)
    database = DatabaseSettings(url=database_url, pool_size=1, pool_overflow=0, pool_timeout_s=60)
    async with (
        memory_gateway(replace(settings, database=database), clock, ids) as gateway,
        web_client(gateway) as client,
    ):
        yield gateway, client


def wait_briefly(gateway):
    """Have nobody wait long for a connection from now on: before, a busy machine may take its time."""
    gateway.db.engine.pool._timeout = 0.2
    gateway.db.fetch_row.__self__._timeout_s = 0.2


@pytest.mark.slow
async def test_who_waits_in_vain_for_the_database_is_told_that_it_is_busy_and_the_log_once(narrow):
    gateway, client = narrow
    merchant = await Merchant(client).open(mode="sandbox")
    order = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}
    payment = (await client.post("/api/payment", json=order, headers=merchant.key)).json()["payment"]
    wait_briefly(gateway)
    with capture_logs() as lines:
        async with gateway.db.autocommit():
            for path in ("/api/merchant/projects", "/api/auth/sessions"):
                answer = await client.get(path, headers=merchant.bearer)
                refused(answer, 429, "BUSY")
                assert int(answer.headers["Retry-After"]) > 0
        fast_lane = gateway.db.fetch_row.__self__
        fast_lane._room = asyncio.Semaphore(0)
        refused(await client.get(f"/api/payment/public/{payment['publicId']}"), 429, "BUSY")
        refused(await client.post("/api/payment", json=order, headers=merchant.key), 429, "BUSY")
    # What follows the chains beside the requests waits in vain for the database as well, on a slow machine.
    told = [line for line in lines if line["event"] != "chains_not_followed"]
    assert [(line["event"], line["log_level"]) for line in told] == [("database_busy", "warning")]
    assert "exc_info" not in told[0]


@pytest.mark.slow
async def test_who_waits_in_vain_after_something_was_committed_is_not_told_that_nothing_happened(narrow, monkeypatch):
    gateway, client = narrow
    merchant = await Merchant(client).open(mode="sandbox")
    wait_briefly(gateway)
    held = AsyncExitStack()

    async def explain(*_):
        await held.enter_async_context(gateway.db.autocommit())
        async with gateway.db.autocommit():
            raise AssertionError("there was a connection")

    monkeypatch.setattr(coins, "explained", explain)
    body = {"coins": [{"chain": "memory", "token": "USDX"}]}
    async with held:
        refused(await client.put("/api/merchant/wallet/coins", json=body, headers=merchant.key), 503, "UNAVAILABLE")
