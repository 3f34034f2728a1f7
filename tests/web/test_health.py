"""What load balancers, monitoring and curious people are told."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from cambist.services.recovery import unfinished
from cambist.settings import RateLimitSettings
from cambist_web.status_board import StatusBoard
from tests.support.checkout import serving
from tests.support.valkey import mortal_valkey
from tests.support.web import Merchant, lent_app, memory_gateway, refused, web_client, web_settings


async def test_a_process_that_answers_is_alive(client):
    assert (await client.get("/health/live")).json() == {"success": True, "status": "live"}


async def test_ready_means_that_the_database_is_there_and_migrated(client, gateway):
    answer = await client.get("/health/ready")
    assert (answer.status_code, answer.json()) == (
        200,
        {"success": True, "status": "ready", "checks": {"database": "ok", "redis": "ok"}},
    )
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE schema_version SET version_num = 'older'")
    answer = await client.get("/health/ready")
    assert answer.status_code == 503
    assert answer.json()["code"] == "NOT_READY"
    assert answer.json()["checks"]["database"] == "not migrated"


async def test_a_database_that_takes_no_writes_is_not_ready(databases, redis_url, clock, ids):
    with databases.fresh() as url:
        settings = web_settings(url, redis_url, rate_limits=RateLimitSettings())
        async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
            assert (await client.get("/health/ready")).status_code == 200
            async with gateway.db.autocommit() as conn:
                name = (await conn.exec_driver_sql("SELECT current_database()")).scalar_one()
                await conn.exec_driver_sql(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
            await gateway.db.engine.dispose()  # as when it fails over to a standby: new connections
            answer = await client.get("/health/ready")
            assert (answer.status_code, answer.json()["code"]) == (503, "NOT_READY")
            assert answer.json()["checks"] == {"database": "read-only", "redis": "ok"}


FULL = """
    CREATE FUNCTION full_disk_{kind}() RETURNS {kind} LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$
"""


async def test_a_database_without_room_on_its_disk_is_not_ready_until_it_has_some(databases, redis_url, clock, ids):
    """PostgreSQL says so to whoever needs more room, and answers all that is read. It lies here, as it would."""
    with databases.fresh() as url:
        settings = web_settings(url, redis_url, rate_limits=RateLimitSettings())
        async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
            merchant = await Merchant(client).open()
            async with gateway.db.transaction() as conn:
                for statement in (
                    FULL.format(kind="trigger"),
                    FULL.format(kind="event_trigger"),
                    "CREATE TRIGGER full_disk BEFORE INSERT ON payments EXECUTE FUNCTION full_disk_trigger()",
                    "CREATE EVENT TRIGGER full_disk ON ddl_command_start EXECUTE FUNCTION full_disk_event_trigger()",
                ):
                    await conn.exec_driver_sql(statement)
            order = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
            refused(await client.post("/api/payment", json=order, headers=merchant.key), 503, "UNAVAILABLE")
            for _ in range(2):
                answer = await client.get("/health/ready")
                assert (answer.status_code, answer.json()["code"]) == (503, "NOT_READY")
                assert answer.json()["checks"] == {"database": "disk full", "redis": "ok"}
            async with gateway.db.transaction() as conn:
                await conn.exec_driver_sql("DROP EVENT TRIGGER full_disk")
                await conn.exec_driver_sql("DROP TRIGGER full_disk ON payments")
            assert (await client.get("/health/ready")).status_code == 200
            assert (await client.post("/api/payment", json=order, headers=merchant.key)).status_code == 201


async def test_losing_redis_costs_nothing_but_the_word_ready(database_url, clock, ids):
    settings = web_settings(database_url, "redis://127.0.0.1:1", rate_limits=RateLimitSettings())
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        answer = await client.get("/health/ready")
        assert answer.status_code == 200
        assert answer.json()["status"] == "degraded"
        assert answer.json()["checks"] == {"database": "ok", "redis": "degraded"}
        merchant = await Merchant(client).open()
        assert (await client.get("/api/merchant/wallet", headers=merchant.key)).status_code == 200


async def test_a_redis_that_takes_no_writes_is_as_good_as_lost(database_url, clock, ids, tmp_path):
    with mortal_valkey(tmp_path) as valkey:
        settings = web_settings(database_url, valkey.url, rate_limits=RateLimitSettings())
        async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
            assert (await client.get("/health/ready")).json()["checks"]["redis"] == "ok"
            await gateway.redis.config_set("maxmemory", "1")
            answer = await client.get("/health/ready")
            assert (answer.status_code, answer.json()["checks"]["redis"]) == (200, "degraded")
            assert (await StatusBoard(gateway).snapshot()).has_redis is False
            await gateway.redis.config_set("maxmemory", "0")
            assert (await StatusBoard(gateway).snapshot()).has_redis is True


async def test_metrics_name_routes_by_template(client, merchant):
    await client.get(f"/api/merchant/projects/{merchant.project_id}", headers=merchant.bearer)
    text = (await client.get("/metrics")).text
    assert 'cambist_http_requests_total{method="GET",route="/api/merchant/projects/{project_id}",status="200"}' in text
    assert "cambist_http_request_seconds_bucket" in text
    assert merchant.project_id not in text


async def test_metrics_are_for_the_inside(client, gateway):
    assert (await client.get("/metrics")).status_code == 200
    for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        refused(await client.get("/metrics", headers={header: "10.0.0.1"}), 404, "ROUTE_NOT_FOUND")
    async with web_client(gateway, "93.184.215.14") as stranger:
        refused(await stranger.get("/metrics"), 404, "ROUTE_NOT_FOUND")
        assert (await stranger.get("/health/ready")).status_code == 200


async def test_swagger_needs_nothing_from_elsewhere(client):
    page = await client.get("/api/swagger")
    assert page.status_code == 200
    assert "unsafe-eval" not in page.headers["content-security-policy"]
    assert "script-src 'self';" in page.headers["content-security-policy"]
    links = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(links) >= 4
    for link in links:
        assert link.startswith("/api/swagger/"), link
        answer = await client.get(link)
        assert answer.status_code == 200, link
        assert len(answer.content) > 100
    assert not re.search(r"<script>|<style|style=", page.text)
    refused(await client.get("/api/swagger/files/..%2f..%2fcore.py"), 404, "ROUTE_NOT_FOUND")
    refused(await client.get("/api/swagger/files/core.py"), 404, "ROUTE_NOT_FOUND")


async def test_the_description_names_every_operation_its_credential_and_its_errors(client):
    answer = await client.get("/api/openapi.json")
    assert answer.headers["content-type"].startswith("application/json")
    schema = answer.json()
    assert schema["info"]["version"] == "1.0.0"
    assert {"/api/payment", "/api/payment/quote", "/api/merchant/projects/{projectId}/test-webhook"} <= set(
        schema["paths"]
    )
    operations = [operation for item in schema["paths"].values() for operation in item.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    assert {name for name in names if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name)} == set()
    tags = {tag["name"] for tag in schema["tags"]}
    for operation in operations:
        assert operation["summary"], operation
        assert operation["description"], operation
        assert operation["security"], operation["operationId"]
        assert set(operation["tags"]) <= tags, operation["operationId"]
        errors = [one for status, one in operation["responses"].items() if status[0] in "45"]
        assert all("/Error" in str(one["content"]["application/json"]["schema"]) for one in errors), operation
        assert errors or operation["security"] == [{}], operation["operationId"]
        for parameter in operation.get("parameters", ()):
            assert "_" not in parameter["name"] or parameter["in"] == "cookie", parameter
    schemas = schema["components"]["schemas"]
    assert schemas["PayoutRequest"]["properties"]["slippage"]["oneOf"] == [{"type": "number"}, {"type": "null"}]
    keys = {
        one["operationId"]: parameter["description"]
        for one in operations
        for parameter in one.get("parameters", ())
        if parameter["name"] == "Idempotency-Key"
    }
    # What has its answer kept is answered alike: nothing says that it is a repetition.
    kept = [one for one in operations if "answered alike" in keys.get(one["operationId"], "")]
    assert len(kept) > 8
    assert {sum(status[0] == "2" for status in one["responses"]) for one in kept} == {1}
    repeatable = [one for one in operations if one["operationId"] in keys and one not in kept]
    assert len(repeatable) > 8
    # Swaps and bridges answer 200 the first time, too: the specification says so.
    once = [one for one in repeatable if "201" in one["responses"]]
    assert {one["operationId"].startswith("execute") for one in repeatable if one not in once} == {True}
    for operation in once:
        again, first = (operation["responses"][status]["content"]["application/json"] for status in ("200", "201"))
        assert again == first | {"example": first["example"] | {"idempotent": True}}
    for scheme in ("apiKey", "session", "adminKey"):
        assert scheme in schema["components"]["securitySchemes"]


async def test_operations_keep_the_names_that_clients_call_them_by(client):
    """A new one is added to the list. Whatever changes in it breaks clients that were generated before."""
    paths = (await client.get("/api/openapi.json")).json()["paths"]
    operations = [(path, method.upper(), one) for path, item in paths.items() for method, one in item.items()]
    found = {f"{one['operationId']} {method} {path}" for path, method, one in operations}
    recorded = Path(__file__).with_name("operation_ids.txt").read_text().splitlines()
    assert recorded == sorted(recorded)
    assert found == set(recorded)


async def test_errors_of_operations_are_told_by_status_and_code(merchant, client):
    paths = (await client.get("/api/openapi.json")).json()["paths"]
    documented = Path(__file__).parents[2].joinpath("docs/merchants/errors.md").read_text()
    for path, item in paths.items():
        for method, operation in item.items():
            errors = {int(status): one for status, one in operation["responses"].items() if status[0] in "45"}
            assert {400, 500} <= set(errors), (method, path)
            assert (429 in errors) != path.startswith("/health/"), (method, path)
            shows_its_own = re.search(r"/auth/(login|sign-in|refresh|two-factor/\w+)$", path) is not None
            assert (401 in errors) == (operation["security"] != [{}] or shows_its_own), (method, path)
            for status, one in errors.items():
                codes = re.findall(r"`([A-Z_]+)`", one["description"])
                rows = [re.search(rf"`{code}`.*?\| ([^|]*) \|", documented) for code in codes]
                assert all(row is not None and str(status) in row[1] for row in rows), (path, status, codes)
                ((code, example),) = one["content"]["application/json"]["examples"].items()
                assert (example["value"]["code"], example["value"]["success"]) == (code, False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method, path, body, as_person",
    [
        ("get", "/api/payment/{paymentId}", None, False),
        ("post", "/api/payment", {"chain": "nowhere", "token": "X", "pricingMode": "fiat", "amount": "1"}, False),
        (
            "post",
            "/api/merchant/wallet/payout",
            {"chain": "memory", "token": "X", "toAddress": "x", "amount": "1"},
            False,
        ),
        ("post", "/api/payment/{paymentId}/refund", {"toAddress": "x"}, False),
        ("post", "/api/sandbox/mine", {"chain": "memory", "blocks": 1}, False),
        ("get", "/api/dashboard/projects/{projectId}/payments", None, True),
        ("post", "/api/merchant/resolutions/{depositId}/accept", None, False),
    ],
)
async def test_what_goes_wrong_is_what_is_described(merchant, client, method, path, body, as_person):
    operation = (await client.get("/api/openapi.json")).json()["paths"][path][method]
    url = re.sub(r"\{\w+\}", "unknown", path)
    for headers in (merchant.bearer if as_person else merchant.key, {}):
        answer = await client.request(method, url, json=body, headers=headers)
        described = operation["responses"][str(answer.status_code)]["description"]
        assert f"`{answer.json()['code']}`" in described


async def test_monitors_may_ask_without_a_body(gateway, merchant, client):
    order = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
    made = await client.post("/api/payment", json=order, headers=merchant.key)
    page = made.json()["checkoutUrl"].replace("http://gateway.example", "")
    paths = ("/health/live", "/health/ready", "/", "/dashboard/", "/operator/merchants", page, "/pay/pub_unknown")
    async with lent_app(gateway) as app, serving(app) as url, httpx.AsyncClient(base_url=url) as real:
        for path in paths:
            shown, asked = await real.get(path), await real.head(path)
            assert (asked.status_code, asked.content) == (shown.status_code, b""), path
            assert asked.status_code < 400 or path == "/pay/pub_unknown", path
            for name in ("content-type", "cache-control", "content-security-policy"):
                assert asked.headers.get(name) == shown.headers.get(name), (path, name)
        assert (await real.head("/api/payment")).status_code == 405
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE schema_version SET version_num = 'older'")
    assert (await client.head("/health/ready")).status_code == 503


async def test_nothing_is_changed_while_the_database_is_being_restored(databases, redis_url, clock, ids):
    """Half-way, what was paid out before is not booked yet: a merchant would spend it once more."""
    with databases.fresh() as url:
        settings = web_settings(url, redis_url, rate_limits=RateLimitSettings())
        async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
            refused(await client.post("/api/auth/register", json={}), 400, "VALIDATION_ERROR")
            async with gateway.db.transaction() as conn:
                await unfinished.begin(conn)
            for _ in range(2):
                body = refused(await client.post("/api/auth/register", json={}), 503, "UNAVAILABLE")
                assert "is being restored. Nothing was done" in body["error"]
            assert (await client.get("/api/public/chains")).status_code == 200
            async with gateway.db.transaction() as conn:
                await unfinished.finish(conn)
            refused(await client.post("/api/auth/register", json={}), 400, "VALIDATION_ERROR")
