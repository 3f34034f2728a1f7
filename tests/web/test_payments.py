"""Payments over HTTP: made, quoted, listed, read by merchants and by customers."""

import asyncio
from contextlib import AsyncExitStack, suppress
from importlib.metadata import EntryPoint

import msgspec
import pytest

from cambist.db.engine import BusyError
from cambist.registry import GROUP, Registry
from tests.support.web import MEMORY, Merchant, memory_gateway, refused, web_settings

BODY = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
FIAT = {**BODY, "token": "MEM", "pricingMode": "fiat", "fiatCurrency": "usd"}
PRICES = EntryPoint("prices", "cambist_prices.plugin", GROUP)


def open_with_prices(database_url, redis_url, clock, ids, *, stock):
    """Open a gateway with fixed prices beside the chains in memory."""
    settings = web_settings(database_url, redis_url)
    plugins = {**settings.plugins, "prices": {"static": {"MEM": {"usd": "3"}, "USDX": {"usd": "1"}}}}
    settings = msgspec.structs.replace(settings, plugins=plugins)
    return memory_gateway(settings, clock, ids, stock=stock, registry=Registry(plugins, found=[MEMORY, PRICES]))


@pytest.fixture
def opening():
    return open_with_prices


@pytest.fixture
async def make(client, merchant):
    async def make(status=201, headers=None, **fields):
        response = await client.post(
            "/api/payment", json={**BODY, **fields}, headers={**merchant.key, **(headers or {})}
        )
        assert response.status_code == status, response.text
        return response.json()

    return make


async def test_a_payment_is_made_and_shown(client, merchant, make):
    answer = await make(orderId="A-1", customerName="Ada", metadata={"cart": {"items": 2}})
    payment = answer["payment"]
    assert set(answer) == {"success", "payment", "checkoutUrl"}
    assert answer["checkoutUrl"] == f"http://gateway.example/pay/{payment['publicId']}"
    assert (payment["status"], payment["expectedAmount"], payment["metadata"]) == (
        "pending",
        "10",
        {"cart": {"items": 2}},
    )
    assert payment["expiresAt"] == "2026-01-01T13:00:00.000Z"
    assert "exchangeRate" not in payment
    assert "customerName" not in payment
    shown = (await client.get(f"/api/payment/{payment['paymentId']}", headers=merchant.key)).json()
    assert shown["success"] is True
    more = {"customerName": "Ada", "customerEmail": None}
    none = {"deposits": [], "depositsLeftOut": 0, "orphanedDeposits": [], "orphanedDepositsLeftOut": 0}
    assert shown["payment"] == {**payment, **more, **none}


async def test_a_replay_is_200_and_idempotent(make):
    first = await make(headers={"Idempotency-Key": "k-1"})
    again = await make(200, headers={"Idempotency-Key": "k-1"})
    assert "idempotent" not in first
    assert again == {**first, "idempotent": True}
    refused_body = await make(409, headers={"Idempotency-Key": "k-1"}, amount="11")
    assert refused_body["code"] == "IDEMPOTENCY_KEY_REUSED"
    mismatch = await make(400, headers={"Idempotency-Key": "k-1"}, idempotencyKey="k-2")
    assert mismatch["code"] == "IDEMPOTENCY_KEY_MISMATCH"


@pytest.mark.slow
async def test_two_hundred_identical_requests_at_once_make_one_payment(client, merchant):
    headers = {**merchant.key, "Idempotency-Key": "order-7"}
    answers = await asyncio.gather(*(client.post("/api/payment", json=BODY, headers=headers) for _ in range(200)))
    assert sorted(answer.status_code for answer in answers) == [200] * 199 + [201]
    assert len({answer.json()["payment"]["paymentId"] for answer in answers}) == 1
    listed = (await client.get("/api/payment", headers=merchant.key)).json()
    assert listed["total"] == 1


async def test_a_key_of_another_project_is_a_conflict(client, merchant, make):
    await make(headers={"Idempotency-Key": "k"})
    await merchant.add_project()
    response = await client.post("/api/payment", json=BODY, headers={**merchant.key, "Idempotency-Key": "k"})
    refused(response, 409, "IDEMPOTENCY_KEY_OTHER_PROJECT")


async def test_a_fiat_price_is_locked(make):
    payment = (await make(**FIAT))["payment"]
    assert (payment["exchangeRate"], payment["expectedAmount"], payment["fiatCurrency"]) == ("3", "3.33333334", "usd")


async def test_a_quote_promises_nothing_and_says_everything(client, merchant):
    response = await client.post("/api/payment/quote", json=FIAT, headers=merchant.key)
    assert response.status_code == 200
    assert response.json() == {
        "success": True,
        "rate": "3",
        "expectedAmount": "3.33333334",
        "expectedAmountRaw": "3333333340000000000",
        "decimals": 18,
        "source": "static",
        "validUntil": "2026-01-01T12:01:00.000Z",
    }
    direct = (await client.post("/api/payment/quote", json=BODY, headers=merchant.key)).json()
    assert (direct["rate"], direct["expectedAmount"], direct["expectedAmountRaw"]) == (None, "10", "10000000")
    refused(
        await client.post("/api/payment/quote", json={**BODY, "chain": "x"}, headers=merchant.key),
        400,
        "UNSUPPORTED_CHAIN",
        "chain",
    )
    refused(
        await client.post("/api/payment/quote", json={**BODY, "orderId": "x"}, headers=merchant.key),
        400,
        "VALIDATION_ERROR",
        "orderId",
    )
    refused(await client.post("/api/payment/quote", json=BODY), 401, "API_KEY_MISSING")


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields, status, code, field",
    [
        ({"chain": "nowhere"}, 400, "UNSUPPORTED_CHAIN", "chain"),
        ({"token": "NOPE"}, 400, "UNSUPPORTED_TOKEN", "token"),
        ({"chain": "idle"}, 503, "CHAIN_UNAVAILABLE", None),
        ({"chain": "pretend"}, 503, "CHAIN_UNAVAILABLE", None),
        ({"amount": "-1"}, 400, "INVALID_AMOUNT", "amount"),
        ({"amount": "1e5"}, 400, "INVALID_AMOUNT", "amount"),
        ({"amount": "0.0000001"}, 400, "INVALID_AMOUNT", "amount"),
        ({"amount": "1" * 150}, 400, "INVALID_AMOUNT", "amount"),
        ({"amount": "1" * 200}, 400, "VALIDATION_ERROR", "amount"),
        ({"amount": 10}, 400, "VALIDATION_ERROR", "amount"),
        ({"amount": None}, 400, "VALIDATION_ERROR", "amount"),
        ({"pricingMode": "gift"}, 400, "VALIDATION_ERROR", "pricingMode"),
        ({"pricingMode": "fiat"}, 400, "VALIDATION_ERROR", "fiatCurrency"),
        ({"pricingMode": "fiat", "fiatCurrency": "gbp"}, 400, "UNSUPPORTED_CURRENCY", "fiatCurrency"),
        ({"pricingMode": "fiat", "fiatCurrency": "zzz"}, 400, "VALIDATION_ERROR", "fiatCurrency"),
        ({"expiresInMinutes": 1}, 400, "VALIDATION_ERROR", "expiresInMinutes"),
        ({"expiresInMinutes": 1.5}, 400, "VALIDATION_ERROR", "expiresInMinutes"),
        ({"webhookUrl": "gopher://x"}, 400, "VALIDATION_ERROR", "webhookUrl"),
        ({"successUrl": "data:text/html,x"}, 400, "VALIDATION_ERROR", "successUrl"),
        ({"orderId": "a\0b"}, 400, "VALIDATION_ERROR", "orderId"),
        ({"metadata": {"a": ["\0"]}}, 400, "VALIDATION_ERROR", "metadata.a[0]"),
        ({"metadata": "x"}, 400, "VALIDATION_ERROR", "metadata"),
        ({"metadata": {"x": "y" * 20_000}}, 400, "VALIDATION_ERROR", "metadata"),
        ({"surprise": 1}, 400, "VALIDATION_ERROR", "surprise"),
    ],
)
async def test_bad_input_is_refused_with_a_code_and_its_field(client, merchant, fields, status, code, field):
    response = await client.post("/api/payment", json={**BODY, **fields}, headers=merchant.key)
    refused(response, status, code, *([field] if field else []))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"metadata": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001,
        b'{"metadata": {"n": ' + b"9" * 10_000 + b"}}",
        b'{"metadata": {"n": 1e999}}',
        b'{"metadata": {"s": "\\ud800"}}',
        b"\xff\xfe",
    ],
)
async def test_what_is_no_json_of_ours_is_refused(client, merchant, content):
    if b"metadata" in content:
        start = msgspec.json.encode(BODY)[:-1]
        content = start + b"," + content[1:]
    headers = {**merchant.key, "Content-Type": "application/json"}
    response = await client.post("/api/payment", content=content, headers=headers)
    assert response.status_code == 400, response.text
    assert response.json()["success"] is False


async def test_required_fields_are_named(client, merchant):
    for field in BODY:
        body = {name: value for name, value in BODY.items() if name != field}
        refused(await client.post("/api/payment", json=body, headers=merchant.key), 400, "VALIDATION_ERROR", field)


async def test_payments_are_listed_with_filters_and_pages(client, merchant, make):
    made = [(await make())["payment"]["paymentId"] for _ in range(3)]
    listed = (await client.get("/api/payment?limit=2&page=1", headers=merchant.key)).json()
    assert ([item["paymentId"] for item in listed["payments"]], listed["page"], listed["limit"], listed["total"]) == (
        [made[2], made[1]], 1, 2, 3,
    )  # fmt: skip
    assert (await client.get("/api/payment?status=paid", headers=merchant.key)).json()["payments"] == []
    assert (await client.get("/api/payment?status=pending&chain=memory", headers=merchant.key)).json()["total"] == 3
    assert "customerEmail" not in listed["payments"][0]


@pytest.mark.parametrize(
    "query, field",
    [("page=0", "page"), ("page=x", "page"), ("limit=0", "limit"), ("limit=101", "limit"), ("status=nope", "status")],
)
async def test_a_bad_filter_is_refused(client, merchant, query, field):
    refused(await client.get(f"/api/payment?{query}", headers=merchant.key), 400, "VALIDATION_ERROR", field)


async def test_somebody_elses_payment_is_not_found(client, merchant, make):
    payment_id = (await make())["payment"]["paymentId"]
    other = await Merchant(client).open("eve@shop.example")
    for path in (f"/api/payment/{payment_id}", f"/api/payment/{payment_id}/receipt-links"):
        refused(await client.get(path, headers=other.key), 404, "PAYMENT_NOT_FOUND")
        refused(await client.get(path), 401, "API_KEY_MISSING")
    assert (await client.get("/api/payment", headers=other.key)).json()["total"] == 0


async def test_receipt_links(client, merchant, make):
    payment = (await make())["payment"]
    answer = (await client.get(f"/api/payment/{payment['paymentId']}/receipt-links", headers=merchant.key)).json()
    assert answer == {
        "success": True,
        "paymentId": payment["paymentId"],
        "publicId": payment["publicId"],
        "status": "pending",
        "receiptUrl": f"http://gateway.example/receipt/{payment['publicId']}",
        "checkoutUrl": f"http://gateway.example/pay/{payment['publicId']}",
    }


async def test_the_public_view_needs_no_key_and_tells_nothing_about_the_customer(client, make):
    made = (await make(customerName="Ada", customerEmail="ada@example.com", metadata={"x": 1}))["payment"]
    answer = (await client.get(f"/api/payment/public/{made['publicId']}")).json()
    assert set(answer) == {"success", "payment"}
    assert answer["payment"]["remainingAmount"] == "10"
    # Every field by name: what is added for merchants, refunds for one, must not come here by itself.
    assert set(answer["payment"]) == {
        "paymentId", "publicId", "shopName", "mode", "status", "chain", "chainName", "token", "tokenLabel",
        "contractAddress", "decimals", "depositAddress", "pricingMode", "amount", "expectedAmount", "receivedAmount",
        "remainingAmount", "requiredConfirmations", "txHash", "orderId", "successUrl", "cancelUrl", "expiresAt",
        "createdAt", "deposits", "depositsLeftOut",
    }  # fmt: skip
    refused(await client.get("/api/payment/public/pub_nothing"), 404, "PAYMENT_NOT_FOUND")
    refused(await client.get(f"/api/payment/public/{made['paymentId']}"), 404, "PAYMENT_NOT_FOUND")


async def test_the_dashboard_has_the_same_payments_behind_a_session(client, merchant, make):
    payment = (await make())["payment"]
    base = f"/api/dashboard/projects/{merchant.project_id}/payments"
    listed = (await client.get(base, headers=merchant.bearer)).json()
    assert [item["paymentId"] for item in listed["payments"]] == [payment["paymentId"]]
    shown = await client.get(f"{base}/{payment['paymentId']}", headers=merchant.bearer)
    assert shown.json()["payment"]["paymentId"] == payment["paymentId"]
    assert (await client.post(base, json=BODY, headers=merchant.bearer)).status_code == 201
    assert (await client.post(f"{base}/quote", json=BODY, headers=merchant.bearer)).status_code == 200
    assert (await client.get(base, headers=merchant.key)).status_code == 401
    other = await Merchant(client).open("eve@shop.example")
    assert (await client.get(base, headers=other.bearer)).status_code == 403


async def test_an_expired_fiat_payment_gets_a_new_rate_from_a_person_only(client, merchant):
    await merchant.add_project(mode="sandbox")
    made = (await client.post("/api/payment", json=FIAT, headers=merchant.key)).json()["payment"]
    path = f"/api/dashboard/projects/{merchant.project_id}/payments/{made['paymentId']}/recalculate"
    refused(await client.post(path, headers=merchant.bearer), 409, "PAYMENT_NOT_EXPIRED")
    await client.post("/api/sandbox/advance-time", json={"seconds": 3600}, headers=merchant.key)
    assert (await client.post(path, headers=merchant.key)).status_code == 401
    refused(await client.post(path, json={"expiresInMinutes": 1}, headers=merchant.bearer), 400, "VALIDATION_ERROR")
    answer = await client.post(path, json={"expiresInMinutes": 10}, headers=merchant.bearer)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["payment"]["status"], answer.json()["payment"]["expiresAt"]) == (
        "pending",
        "2026-01-01T12:10:00.000Z",
    )


async def expired_at_a_rate(client, merchant, clock) -> str:
    """Return where a new rate is asked for of a payment whose time has run out, with no rate that is kept any more."""
    await merchant.add_project(mode="sandbox")
    made = (await client.post("/api/payment", json=FIAT, headers=merchant.key)).json()["payment"]
    await client.post("/api/sandbox/advance-time", json={"seconds": 3600}, headers=merchant.key)
    clock.advance(60)
    return f"/api/dashboard/projects/{merchant.project_id}/payments/{made['paymentId']}/recalculate"


async def test_no_connection_is_held_while_price_sources_are_asked_for_a_new_rate(
    client, gateway, merchant, clock, monkeypatch
):
    path = await expired_at_a_rate(client, merchant, clock)
    (source,) = gateway.rates._sources
    said, held = source.prices, []

    async def prices(pairs):
        held.append(gateway.db.engine.pool.checkedout())
        return await said(pairs)

    monkeypatch.setattr(source, "prices", prices)
    assert (await client.post(path, headers=merchant.bearer)).status_code == 200
    assert held == [0]


async def test_a_new_rate_that_no_connection_is_left_for_is_told_to_have_done_nothing(
    client, gateway, merchant, clock, monkeypatch
):
    path = await expired_at_a_rate(client, merchant, clock)
    (source,) = gateway.rates._sources
    said, pool = source.prices, gateway.db.engine.pool
    async with AsyncExitStack() as held:

        async def prices(pairs):
            monkeypatch.setattr(pool, "_timeout", 0.2)
            with suppress(BusyError):
                while True:
                    await held.enter_async_context(gateway.db.autocommit())
            return await said(pairs)

        monkeypatch.setattr(source, "prices", prices)
        refused(await client.post(path, headers=merchant.bearer), 429, "BUSY")
    monkeypatch.undo()
    assert (await client.post(path, headers=merchant.bearer)).status_code == 200


async def test_lists_are_searched_by_order_time_and_amount_over_http(client, merchant):
    body = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "12.50", "orderId": "A&1"}
    made = (await client.post("/api/payment", json=body, headers=merchant.key)).json()["payment"]
    assert (made["amount"], made["expectedAmount"]) == ("12.50", "12.50")

    async def total(**query):
        answer = await client.get("/api/payment", params=query, headers=merchant.key)
        assert answer.status_code == 200, answer.text
        return answer.json()["total"]

    assert await total(orderId="A&1") == await total(amount="12.5") == 1
    assert await total(**{"from": "2026-01-01", "to": "2026-01-02"}) == 1
    assert await total(**{"from": "2026-01-02"}) == await total(to="2026-01-01") == await total(orderId="A") == 0
    for query, field in (({"from": "today"}, "from"), ({"from": "2026-02-01", "to": "2026-01-01"}, "to")):
        answer = await client.get("/api/payment", params=query, headers=merchant.key)
        refused(answer, 400, "VALIDATION_ERROR", field)
    refused(await client.get("/api/payment?amount=1e3", headers=merchant.key), 400, "INVALID_AMOUNT", "amount")


async def test_every_time_has_milliseconds_whatever_the_merchant_sent(client, merchant, clock):
    clock.advance(0.123456)
    sent = {"at": "2026-01-01T12:00:00.5Z"}
    body = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1", "metadata": sent}
    made = (await client.post("/api/payment", json=body, headers=merchant.key)).json()["payment"]
    assert (made["createdAt"], made["metadata"]) == ("2026-01-01T12:00:00.123Z", sent)
    listed = (await client.get("/api/payment", headers=merchant.key)).json()["payments"]
    read = (await client.get(f"/api/payment/{made['paymentId']}", headers=merchant.key)).json()["payment"]
    public = (await client.get(f"/api/payment/public/{made['publicId']}")).json()["payment"]
    assert [one["createdAt"] for one in (*listed, read, public)] == [made["createdAt"]] * 3
    projects = (await client.get("/api/merchant/projects", headers=merchant.bearer)).json()["projects"]
    assert projects[0]["createdAt"].endswith("Z")
    assert len(projects[0]["createdAt"]) == len(made["createdAt"])


async def test_a_number_in_metadata_comes_back_with_all_its_digits(client, merchant):
    """Each was made a float, and a shop's rate of eighteen digits came back with sixteen."""
    numbers = (
        b'{"rate": 0.123456789012345678901, "price": 12.50, "sum": [100000000000000000000.05], "id": 9007199254740993}'
    )
    asked = msgspec.json.encode(BODY | {"metadata": msgspec.Raw(numbers)})
    headers = {**merchant.key, "Content-Type": "application/json", "Idempotency-Key": "A-1"}
    made = await client.post("/api/payment", content=asked, headers=headers)
    assert made.status_code == 201, made.text
    read = await client.get(f"/api/payment/{made.json()['payment']['paymentId']}", headers=merchant.key)
    for answer in (made, read):
        assert b'"metadata":' + numbers.replace(b" ", b"") in answer.content.replace(b" ", b"")
    again = await client.post("/api/payment", content=asked, headers=headers)
    assert (again.status_code, again.json()["idempotent"]) == (200, True)
    for other in (b"12.5000000000000000001", b'"12.50"'):
        changed = await client.post("/api/payment", content=asked.replace(b"12.50", other), headers=headers)
        refused(changed, 409, "IDEMPOTENCY_KEY_REUSED")
