"""4.1 and 3.1: payments and refunds."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.support.networks import Network

from .replay import Replay, check
from .shapes import PaymentData

NAMES = {"orderId": "order-1", "customerName": "Ada Lovelace", "customerEmail": "ada@example.com"}
DEFAULTS = {"page": 1, "limit": 25}


def asked(network: Network, **more: object) -> dict[str, object]:
    return {
        "chain": network.chain, "token": "USDX", "pricingMode": "direct_crypto", "amount": "25.50", **more
    }  # fmt: skip


async def test_a_quote(shop: Replay, network):
    told = await shop.ask("POST /api/payment/quote", asked(network))
    assert (told["rate"], told["expectedAmount"], told["expectedAmountRaw"]) == (None, "25.50", "25500000")
    told = await shop.ask("POST /api/payment/quote", asked(network, pricingMode="fiat", fiatCurrency="eur"))
    assert (told["rate"], told["decimals"], told["source"]) == ("0.92", 6, "static")
    for wrong in ({"chain": "nowhere"}, {"token": "NOTHING"}):
        code = f"UNSUPPORTED_{next(iter(wrong)).upper()}"
        await shop.refused("POST /api/payment/quote", asked(network, **wrong), 400, code)
        await shop.refused("POST /api/payment", asked(network, **wrong), 400, code)


async def test_a_project_that_is_switched_off_is_forbidden_to_ask(stranger: Replay, network):
    merchant = stranger.merchant
    path = f"/api/merchant/projects/{stranger.project_id}"
    await merchant.patch(path, {"isActive": False}, headers=merchant.bearer)
    for row in ("POST /api/payment/quote", "POST /api/payment"):
        await stranger.refused(row, asked(network), 403, "PROJECT_INACTIVE")


async def test_a_payment_answers_every_field_that_was_sent(shop: Replay, network):
    body = asked(
        network, pricingMode="fiat", amount="46.00", fiatCurrency="eur", webhookUrl=f"{shop.receiver.url}", **NAMES,
        successUrl="https://shop.example/thanks", cancelUrl="https://shop.example/cart", expiresInMinutes=30,
        metadata={"cart": 7}, idempotencyKey="in-the-body",
    )  # fmt: skip
    made = (await shop.ask("POST /api/payment", body))["payment"]
    assert (made["exchangeRate"], made["expectedAmount"], made["status"]) == ("0.92", "50", "pending")
    assert not {"customerName", "customerEmail"} & set(made)
    created, expires = (datetime.fromisoformat(made[name]) for name in ("createdAt", "expiresAt"))
    assert expires - created == timedelta(minutes=30)
    replayed = await shop.ask("POST /api/payment", body, status=200)
    assert (replayed["idempotent"], replayed["payment"]) == (True, made)

    ids = {"paymentId": made["paymentId"], "publicId": made["publicId"]}
    read = (await shop.ask("GET /api/payment/{paymentId}", **ids))["payment"]
    sent = ("orderId", "customerName", "customerEmail", "successUrl", "cancelUrl", "metadata", "chain", "token")
    assert {name: read[name] for name in sent} == {name: body[name] for name in sent}
    links = await shop.ask("GET /api/payment/{paymentId}/receipt-links", **ids)
    assert {name: links[name] for name in ids} == ids
    public = (await shop.ask("GET /api/payment/public/{publicId}", **ids))["payment"]
    assert not {"customerName", "customerEmail"} & set(public)
    for row in ("GET /api/payment/{paymentId}", "GET /api/payment/{paymentId}/receipt-links"):
        await shop.refused(row, None, 404, "PAYMENT_NOT_FOUND", paymentId="pay_nobody")
    row = "GET /api/payment/public/{publicId}"
    await shop.refused(row, None, 404, "PAYMENT_NOT_FOUND", publicId="pub_nobody")


async def test_an_idempotency_key_is_bound_to_one_project(shop: Replay, network):
    merchant, key = shop.merchant, {"Idempotency-Key": "in-the-header"}
    first = await shop.ask("POST /api/payment", asked(network), headers=key)
    again = await shop.ask("POST /api/payment", asked(network), headers=key, status=200)
    assert (again["idempotent"], again["payment"]["paymentId"]) == (True, first["payment"]["paymentId"])
    made = await shop.ask("POST /api/merchant/projects", {"name": "Second", "mode": "live"})
    path = f"/api/merchant/projects/{made['project']['projectId']}/api-keys"
    other = (await merchant.post(path, {"name": "till"}, headers=merchant.bearer, status=201))["apiKey"]
    headers = {"X-Api-Key": other, **key}
    await shop.refused("POST /api/payment", asked(network), 409, "IDEMPOTENCY_KEY_OTHER_PROJECT", headers=headers)


async def test_lists_begin_with_page_1_of_25_and_have_100_at_most(shop: Replay, network):
    for row in ("GET /api/payment", "GET /api/payment/refunds/list"):
        told = await shop.ask(row)
        assert {name: told[name] for name in DEFAULTS} == DEFAULTS
        await shop.ask(row, query={"page": "2", "limit": "100"})
    query = {"status": "paid", "chain": network.chain}
    found = (await shop.ask("GET /api/payment", query=query))["payments"]
    assert found
    assert {(one["status"], one["chain"]) for one in found} == {("paid", network.chain)}
    for wrong in ({"limit": "101"}, {"page": "0"}, {"status": "rich"}):
        async with shop.merchant.session.get(
            f"{shop.merchant.url}/api/payment", params=wrong, headers=shop.merchant.headers
        ) as answer:
            assert answer.status == 400


async def test_a_payment_is_detected_confirmed_paid_and_refunded(shop: Replay, network):
    made = (await shop.ask("POST /api/payment", asked(network, amount="20", **NAMES)))["payment"]
    tx_hash = await network.usdx.send(made["depositAddress"], 20)
    for status in ("detected", "confirming", "paid"):
        told = await shop.receiver.wait(made["paymentId"], f"payment.{status}")
        check(told, PaymentData)
        assert (told["status"], told["txHash"], told["receivedAmount"]) == (status, tx_hash, "20")
    public = (await shop.ask("GET /api/payment/public/{publicId}", publicId=made["publicId"]))["payment"]
    assert [one["txHash"] for one in public["deposits"]] == [tx_hash]

    body = {"toAddress": network.stranger(), "amount": "5.25", "reason": "came back in the box"}
    row, payment_id = "POST /api/payment/{paymentId}/refund", made["paymentId"]
    await shop.merchant.post(f"/api/payment/{payment_id}/refund", {"amount": "1"}, status=400)
    part = (await shop.ask(row, body, paymentId=payment_id))["refund"]
    assert (part["amount"], part["reason"]) == ("5.25", body["reason"])
    rest = (await shop.ask(row, {"toAddress": network.stranger()}, paymentId=payment_id))["refund"]
    assert rest["amount"] == "14.75"
    told = await shop.receiver.wait(payment_id, "payment.refunded")
    assert told["status"] == "refunded"
    listed = await shop.ask("GET /api/payment/refunds/list", query={"status": "failed"})
    assert listed["refunds"] == []
    listed = await shop.ask("GET /api/payment/refunds/list")
    assert {rest["refundId"], part["refundId"]} <= {one["refundId"] for one in listed["refunds"]}


@pytest.mark.parametrize("amount", ["1e5", "-1", "٣", 12.5, "0"])
async def test_amounts_are_decimal_strings(shop: Replay, network, amount):
    for row in ("POST /api/payment/quote", "POST /api/payment"):
        told = await shop.ask(row, asked(network, amount=amount), status=400)
        assert told["code"] in {"INVALID_AMOUNT", "VALIDATION_ERROR"}
