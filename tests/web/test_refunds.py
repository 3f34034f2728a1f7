"""Refunds and the resolution list over HTTP: the shapes of answers, to programs and to people alike."""

from __future__ import annotations

import pytest

from tests.support.payout_env import person
from tests.support.web import Merchant, refused

pytestmark = pytest.mark.slow

BODY = {"toAddress": person("customer")}
LIST = "/api/payment/refunds/list"
RESOLUTIONS = "/api/merchant/resolutions"
REQUIRED = 3


@pytest.fixture
def shop(sandbox_merchant):
    return sandbox_merchant


async def post(shop, path, status=200, headers=None, **body):
    response = await shop.client.post(path, json=body, headers={**shop.key, **(headers or {})})
    assert response.status_code == status, response.text
    return response.json()


async def get(shop, path, status=200, headers=None):
    response = await shop.client.get(path, headers=headers or shop.key)
    assert response.status_code == status, response.text
    return response.json()


async def paid(shop, amount="10"):
    """Make a payment of 10 USDX and deposit the amount for good."""
    asked = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
    payment = (await post(shop, "/api/payment", 201, **asked))["payment"]
    await post(shop, "/api/sandbox/deposit", paymentId=payment["paymentId"], amount=amount, confirmations=REQUIRED)
    return payment["paymentId"]


async def test_a_refund_is_queued_sent_and_listed(shop):
    payment_id = await paid(shop)
    made = await post(shop, f"/api/payment/{payment_id}/refund", 201, **BODY, amount="4", reason="a scratch")
    assert set(made) == {"success", "refund"}
    refund = made["refund"]
    assert refund == {
        "refundId": refund["refundId"],
        "paymentId": payment_id,
        "depositId": None,
        "status": "requested",
        "chain": "memory",
        "token": "USDX",
        "contractAddress": refund["contractAddress"],
        "decimals": 6,
        "amount": "4",
        "toAddress": BODY["toAddress"],
        "reason": "a scratch",
        "txHash": None,
        "error": None,
        "errorCode": None,
        "waitsFor": None,
        "waitsForText": None,
        "createdAt": refund["createdAt"],
        "updatedAt": refund["updatedAt"],
        "completedAt": None,
    }
    payment = (await get(shop, f"/api/payment/{payment_id}"))["payment"]
    assert (payment["status"], payment["receivedAmount"], payment["refundedAmount"]) == ("refunded", "10", "4")
    await post(shop, "/api/sandbox/mine", chain="memory", blocks=1 + REQUIRED)
    done = (await get(shop, f"/api/payment/refunds/{refund['refundId']}"))["refund"]
    assert done["status"] == "completed"
    assert done["txHash"]
    assert done["completedAt"]
    listed = await get(shop, LIST)
    assert (listed["refunds"], listed["page"], listed["limit"], listed["total"]) == ([done], 1, 25, 1)
    assert (await get(shop, f"{LIST}?status=failed"))["refunds"] == []
    assert (await get(shop, f"{LIST}?page=2"))["refunds"] == []
    in_person = f"/api/dashboard/projects/{shop.project_id}/payments/refunds"
    assert (await get(shop, f"{in_person}/list", headers=shop.bearer))["refunds"] == [done]
    assert (await get(shop, f"{in_person}/{refund['refundId']}", headers=shop.bearer))["refund"] == done


async def test_the_refunds_of_one_payment_are_listed_alone_also_those_of_a_deposit_of_it(shop, client):
    first, other = await paid(shop, "13"), await paid(shop)
    (held,) = (await get(shop, RESOLUTIONS))["resolutions"]
    of_deposit = (await post(shop, f"{RESOLUTIONS}/{held['depositId']}/refund", 201, **BODY, amount="1"))["refund"]
    of_payment = (await post(shop, f"/api/payment/{first}/refund", 201, **BODY, amount="4"))["refund"]
    of_other = (await post(shop, f"/api/payment/{other}/refund", 201, **BODY, amount="2"))["refund"]

    async def found(query, who=shop):
        listed = await get(who, f"{LIST}?{query}")
        assert listed["total"] == len(listed["refunds"])
        return [one["refundId"] for one in listed["refunds"]]

    assert await found(f"paymentId={first}") == [of_payment["refundId"], of_deposit["refundId"]]
    assert await found(f"paymentId={first}&status=failed") == []
    assert await found(f"paymentId={other}") == [of_other["refundId"]]
    assert await found("paymentId=pay_nothing") == []
    stranger = await Merchant(client).open("bob@shop.example", mode="sandbox")
    assert await found(f"paymentId={first}", stranger) == []
    page = await get(shop, f"{LIST}?paymentId={first}&limit=1")
    refused(
        await client.get(f"{LIST}?paymentId={other}&cursor={page['nextCursor']}", headers=shop.key),
        400, "VALIDATION_ERROR", "cursor",
    )  # fmt: skip


async def test_a_repetition_answers_with_the_first_refund(shop):
    payment_id = await paid(shop)
    path, key = f"/api/payment/{payment_id}/refund", {"Idempotency-Key": "r-1"}
    first = await post(shop, path, 201, key, **BODY, amount="1")
    again = await post(shop, path, 200, **BODY, amount="1", idempotencyKey="r-1")
    assert again["idempotent"] is True
    assert again["refund"]["refundId"] == first["refund"]["refundId"]
    answer = await shop.client.post(path, json={**BODY, "amount": "2"}, headers={**shop.key, **key})
    refused(answer, 409, "IDEMPOTENCY_KEY_REUSED")
    in_person = f"/api/dashboard/projects/{shop.project_id}/payments/{payment_id}/refund"
    answer = await shop.client.post(in_person, json=BODY, headers=shop.bearer)
    assert answer.status_code == 201, answer.text
    assert answer.json()["refund"]["amount"] == "9"


async def test_what_cannot_be_refunded_is_refused_by_name(shop, client):
    payment_id = await paid(shop)
    path = f"/api/payment/{payment_id}/refund"

    async def ask(where=path, key=shop.key, **fields):
        return await client.post(where, json={**BODY, **fields}, headers=key)

    refused(await ask(amount="10.5"), 409, "REFUND_EXCEEDS_RECEIVED")
    refused(await ask(amount=5), 400, "VALIDATION_ERROR", "amount")
    refused(await ask(amount="-5"), 400, "INVALID_AMOUNT", "amount")
    refused(await ask(toAddress="nowhere"), 400, "INVALID_ADDRESS", "toAddress")
    refused(await ask(reason="x" * 501), 400, "VALIDATION_ERROR", "reason")
    refused(await ask(why="x"), 400, "VALIDATION_ERROR", "why")
    refused(await ask(reason="\0"), 400, "VALIDATION_ERROR", "reason")
    refused(await client.post(path, json={}, headers=shop.key), 400, "VALIDATION_ERROR", "toAddress")
    refused(await ask("/api/payment/pay_nothing/refund"), 404, "PAYMENT_NOT_FOUND")
    other = await Merchant(client).open("bob@shop.example", mode="sandbox")
    refused(await ask(key=other.key), 404, "PAYMENT_NOT_FOUND")
    refused(await client.get("/api/payment/refunds/ref_nothing", headers=shop.key), 404, "REFUND_NOT_FOUND")
    refused(await client.get(f"{LIST}?limit=101", headers=shop.key), 400, "VALIDATION_ERROR", "limit")
    refused(await client.get(f"{LIST}?status=gone", headers=shop.key), 400, "VALIDATION_ERROR", "status")


async def test_surplus_is_listed_accepted_and_gone(shop, client):
    payment_id = await paid(shop, "13")
    listed = await get(shop, RESOLUTIONS)
    (one,) = listed["resolutions"]
    assert listed["total"] == 1
    expected = {
        "reason": "surplus", "resolution": None, "canAccept": True, "chain": "memory", "token": "USDX",
        "amount": "13", "heldAmount": "3", "refundableAmount": "3", "paymentId": payment_id,
        "paymentStatus": "overpaid",
    }  # fmt: skip
    assert expected.items() <= one.items()
    path = f"{RESOLUTIONS}/{one['depositId']}"
    assert (await get(shop, path))["resolution"] == one
    assert (await get(shop, f"{RESOLUTIONS}?reason=late"))["resolutions"] == []
    in_person = f"/api/dashboard/projects/{shop.project_id}/resolutions"
    assert (await get(shop, in_person, headers=shop.bearer))["resolutions"] == [one]
    other = await Merchant(client).open("bob@shop.example", mode="sandbox")
    assert (await get(other, RESOLUTIONS))["resolutions"] == []
    refused(await client.post(f"{path}/accept", headers=other.key), 404, "DEPOSIT_NOT_FOUND")
    accepted = (await post(shop, f"{path}/accept"))["resolution"]
    assert (accepted["resolution"], accepted["heldAmount"]) == ("accepted", "0")
    refused(await client.post(f"{path}/release", headers=shop.key), 409, "ALREADY_RESOLVED")
    refused(await client.post(f"{path}/refund", json=BODY, headers=shop.key), 409, "ALREADY_RESOLVED")
    assert (await get(shop, RESOLUTIONS))["resolutions"] == []


async def test_a_deposit_is_sent_back_or_released(shop, client):
    await paid(shop, "13")
    (one,) = (await get(shop, RESOLUTIONS))["resolutions"]
    path = f"{RESOLUTIONS}/{one['depositId']}"
    too_much = await client.post(f"{path}/refund", json={**BODY, "amount": "4"}, headers=shop.key)
    refused(too_much, 409, "REFUND_EXCEEDS_HELD")
    refund = (await post(shop, f"{path}/refund", 201, **BODY, amount="1"))["refund"]
    assert (refund["depositId"], refund["amount"], refund["paymentId"]) == (one["depositId"], "1", one["paymentId"])
    released = (await post(shop, f"{path}/release"))["resolution"]
    assert released["resolution"] == "released"
    refused(await client.post(f"{RESOLUTIONS}/dep_nothing/release", headers=shop.key), 404, "DEPOSIT_NOT_FOUND")
