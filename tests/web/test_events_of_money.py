"""What merchants are told of money on its way, and that what is made up to try a receiver looks the same."""

from __future__ import annotations

import json

import pytest

from cambist.domain.failures import code_of
from cambist.domain.webhooks import EVENTS, EXTENDED_EVENTS
from tests.support.payout_env import person
from tests.support.two_merchants import APPROVED, CONFIRMED, WALLET, WITHDRAWALS
from tests.support.webhooks import receiver

OPTIONAL = {"orderId", "batchId"}
BY_HAND = {"payment.rate_recalculated"}  # of a fiat price; tests/core/test_payments_recalculate.py
EXCHANGES = {"exchange.succeeded", "exchange.failed"}  # of swaps and bridges; tests/web/test_exchanges.py


@pytest.fixture
async def told(two_merchants, gateway):
    """Let everything happen to Ada's money; return what she was told, by the event's name."""
    mine = {"chain": "memory", "blocks": CONFIRMED + 2}
    await two_merchants.post("/api/sandbox/mine", mine)
    coin = {"chain": "memory", "token": "USDX"}
    paid = await two_merchants.paid()
    pay = {**coin, "toAddress": person(), "amount": "1"}
    payout = (await two_merchants.post(f"{WALLET}/payout", pay))["payout"]["payoutId"]
    taken = {**pay, "projectId": two_merchants.ada.project_id, "totpCode": two_merchants.phone.code()}
    withdrawal = (await two_merchants.post(WITHDRAWALS, taken, two_merchants.ada.bearer))["withdrawal"]["withdrawalId"]
    back = {"toAddress": person(), "amount": "1"}
    refund = (await two_merchants.post(f"/api/payment/{paid}/refund", back))["refund"]["refundId"]
    for one in (payout, withdrawal, refund):
        await two_merchants.post("/api/sandbox/fail-payout", {"payoutId": one})
    await two_merchants.post(
        "/api/payment", {**coin, "pricingMode": "direct_crypto", "amount": "7", "expiresInMinutes": 5}
    )
    short = {**coin, "pricingMode": "direct_crypto", "amount": "7", "expiresInMinutes": 5}
    short = (await two_merchants.post("/api/payment", short))["payment"]["paymentId"]
    await two_merchants.post("/api/sandbox/deposit", {"paymentId": short, "amount": "3", "confirmations": CONFIRMED})
    elsewhere = {**coin, "chain": "pretend", "pricingMode": "direct_crypto", "amount": "7"}
    elsewhere = (await two_merchants.post("/api/payment", elsewhere))["payment"]["paymentId"]
    await two_merchants.post("/api/sandbox/deposit", {"paymentId": elsewhere, "confirmations": CONFIRMED})
    await two_merchants.post("/api/sandbox/reorg", {"chain": "pretend", "depth": CONFIRMED + 1})
    await two_merchants.post("/api/sandbox/mine", {"chain": "pretend", "blocks": 1})
    async with gateway.db.transaction() as conn:
        point = "INSERT INTO price_points VALUES ('USDX', $1, $2, 1, 'board')"
        for currency in ("usd", "eur"):
            await conn.exec_driver_sql(point, (currency, two_merchants.clock.now()))
    user = {"externalId": "user-1", "chains": ["pretend"]}
    user = {"accountId": (await two_merchants.post("/api/account", user))["account"]["accountId"], "token": "USDX"}
    for chain in ("memory", "pretend"):
        sent = {**user, "chain": chain, "amount": "3", "confirmations": CONFIRMED}
        await two_merchants.post("/api/sandbox/deposit", sent)
    await two_merchants.post("/api/sandbox/reorg", {"chain": "pretend", "depth": CONFIRMED + 1})
    await two_merchants.post("/api/sandbox/advance-time", {"seconds": 3600})
    await two_merchants.post("/api/sandbox/mine", mine)
    async with gateway.db.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT w.event, w.resource_id, w.body, p.project_id FROM webhook_events w"
            " JOIN projects p ON p.id = w.project_pk ORDER BY w.id"
        )
        found = {}
        for row in rows:
            body = json.loads(row.body)
            assert set(body) == {"event", "webhookId", "data"}
            assert (
                (body["event"], body["webhookId"])
                == (row.event, two_merchants.ada.project_id)
                == (row.event, row.project_id)
            )
            assert row.resource_id in body["data"].values()
            found.setdefault(row.event, []).append(body["data"])
    return found


async def test_every_event_happens_and_carries_what_the_made_up_one_carries(told, two_merchants):
    assert set(told) == set(EVENTS | EXTENDED_EVENTS) - BY_HAND - EXCHANGES
    async with receiver() as shop:
        for event, resource in (EVENTS | EXTENDED_EVENTS).items():
            body = {"event": event, "url": shop.url}
            path = f"/api/merchant/projects/{two_merchants.ada.project_id}/test-webhook"
            made_up = (await two_merchants.post(path, body, two_merchants.ada.bearer))["payload"]["data"]
            assert made_up["resource"] == resource
            for real in told.get(event, ()):
                assert set(real) - OPTIONAL == set(made_up) - {"isTest"}, event
                kinds = {name: type(value) for name, value in real.items() if name not in OPTIONAL}
                if event == "payment.expired" and real["receivedAmount"] != "0":
                    assert kinds.pop("txHash") is str
                    kinds["txHash"] = type(None)
                assert kinds == {name: type(value) for name, value in made_up.items() if name != "isTest"}, event
                assert made_up["status"] == real["status"]


async def test_events_of_payouts_name_what_they_are_about(told, two_merchants):
    for name, resource in (("payout", "payout"), ("withdrawal", "withdrawal")):
        for outcome in ("completed", "failed"):
            for data in told[f"{name}.{outcome}"]:
                assert (data["resource"], data["status"]) == (resource, outcome)
                assert data[f"{name}Id"].startswith({"payout": "po_", "withdrawal": "wd_"}[name])
                assert (data["chain"], data["token"], data["amount"]) == ("memory", "USDX", "1")
                assert data["toAddress"] in {person(), person("bert")}
                assert data["txHash"]
                assert ("error" in data) is ("errorCode" in data) is (outcome == "failed")
                assert data.get("errorCode") == code_of(data.get("error"))
    (batched,) = [data for data in told["payout.completed"] if "batchId" in data]
    assert batched["batchId"] == two_merchants.ids["batch_id"]
    payment_id = two_merchants.ids["payment_id"]
    (refunded,) = [data for data in told["payment.refunded"] if data["paymentId"] == payment_id]
    assert (refunded["refundId"], refunded["amount"]) == (two_merchants.ids["refund_id"], "2")
    assert (refunded["receivedAmount"], refunded["refundedAmount"]) == ("105", "2")
    held = {data["depositId"]: data for data in told["payment.held"]}
    surplus = held[two_merchants.ids["deposit_id"]]
    assert (surplus["amount"], surplus["heldAmount"], surplus["reason"]) == ("105", "5", "surplus")
    assert (surplus["paymentId"], surplus["status"]) == (two_merchants.ids["payment_id"], "overpaid")
    (partial,) = told["payment.partial"]
    assert (partial["amount"], partial["expectedAmount"], partial["receivedAmount"]) == ("3", "7", "3")
    (failed,) = told["payment.failed"]
    assert (failed["status"], failed["receivedAmount"], failed["txHash"]) == ("failed", "0", None)
    assert {data["refundId"] for data in told["refund.sent"]} > {data["refundId"] for data in told["refund.failed"]}
    for data in [*told["payout.completed"], *told["payout.failed"]]:
        assert data["kind"] == "payout"
    events = [data for many in told.values() for data in many]
    assert not any(
        two_merchants.ids["refund_id"] in (data.get("payoutId"), data.get("withdrawalId")) for data in events
    )


async def test_nobody_is_told_of_customers_or_of_secrets(two_merchants, gateway):
    asked = {
        "chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "5", "orderId": "=1+1",
        "customerName": "Grace Hopper", "customerEmail": "grace@customer.example",
        "metadata": {"note": "a private note"},
    }  # fmt: skip
    payment = (await two_merchants.post("/api/payment", asked))["payment"]
    paid = {"paymentId": payment["paymentId"], "amount": "6", "confirmations": CONFIRMED}
    await two_merchants.post("/api/sandbox/deposit", paid)
    back = {"toAddress": person(), "amount": "1", "reason": "a private reason"}
    await two_merchants.post(f"/api/payment/{payment['paymentId']}/refund", back)
    public = await two_merchants.get(f"/api/payment/public/{payment['publicId']}", {})
    file = (await two_merchants.client.get(f"{WALLET}/transactions.csv", headers=two_merchants.ada.key)).text
    picture = await two_merchants.picture()
    lists = json.dumps({path: value for path, value in picture.items() if not path.endswith("/payments")})
    async with gateway.db.transaction() as conn:
        bodies = str((await conn.exec_driver_sql("SELECT body FROM webhook_events")).scalars().all())
    for text in (json.dumps(public), file, lists, bodies):
        for private in ("Grace", "grace@", "private note"):
            assert private not in text
    for text in (json.dumps(public), file, bodies):
        assert "private reason" not in text
    secrets = [two_merchants.phone.key.hex(), two_merchants.ada.webhook_secret, two_merchants.ada.key["X-Api-Key"]]
    for text in (json.dumps(public), file, json.dumps(picture), bodies):
        assert not any(secret in text for secret in secrets)
    assert "refund" not in set(public["payment"]) | {name[:6] for name in public["payment"]}
    assert (await two_merchants.client.get(APPROVED, headers=two_merchants.bob.bearer)).json()[
        "approvedAddresses"
    ] == []
