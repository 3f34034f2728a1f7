"""The sandbox over HTTP: the story of a payment, told by its merchant."""

import pytest

from cambist.testing.memory.family import named_address
from tests.support.web import refused

pytestmark = pytest.mark.slow

BODY = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}


@pytest.fixture
async def shop(client, merchant):
    await merchant.add_project(mode="sandbox")
    assert merchant.key["X-Api-Key"].startswith("ck_test_")
    return merchant


@pytest.fixture
async def call(client, shop):
    async def call(path, **body):
        response = await client.post(f"/api/sandbox/{path}", json=body, headers=shop.key)
        assert response.status_code == 200, response.text
        return response.json()

    return call


async def made(client, shop, **fields):
    response = await client.post("/api/payment", json={**BODY, **fields}, headers=shop.key)
    assert response.status_code == 201, response.text
    return response.json()["payment"]


async def test_the_story_of_a_payment(client, shop, call):
    payment = await made(client, shop)
    paid = await call("deposit", paymentId=payment["paymentId"])
    assert (paid["payment"]["status"], paid["payment"]["txHash"], paid["height"]) == ("detected", paid["txHash"], 1)
    mined = await call("mine", chain="memory", blocks=1)
    assert (mined["success"], mined["chain"], mined["height"]) == (True, "memory", 2)
    shown = (await client.get(f"/api/payment/public/{payment['publicId']}")).json()["payment"]
    assert (shown["status"], shown["deposits"][0]["confirmations"]) == ("confirming", 1)
    gone = await call("reorg", chain="memory", depth=2, transactions="return")
    assert gone["height"] == 2
    shown = (await client.get(f"/api/payment/public/{payment['publicId']}")).json()["payment"]
    assert (shown["status"], shown["deposits"]) == ("pending", [])
    await call("mine", chain="memory", blocks=4)
    wallet = await client.get("/api/merchant/wallet/balance?chain=memory&token=USDX", headers=shop.key)
    assert '"available":"10"' in wallet.text


async def test_time_passes(client, shop, call):
    payment = await made(client, shop, expiresInMinutes=5)
    answer = await call("advance-time", seconds=300)
    assert [chain["chain"] for chain in answer["chains"]] == ["memory"]
    shown = (await client.get(f"/api/payment/{payment['paymentId']}", headers=shop.key)).json()["payment"]
    assert shown["status"] == "expired"


async def test_a_simulated_or_unconfigured_chain_serves_the_sandbox(client, shop, call):
    for chain in ("pretend", "idle"):
        payment = await made(client, shop, chain=chain)
        paid = await call("deposit", paymentId=payment["paymentId"], confirmations=3)
        assert paid["payment"]["status"] == "paid"


@pytest.mark.parametrize(
    "path, body, code, field",
    [
        ("deposit", {}, "VALIDATION_ERROR", "paymentId"),
        ("deposit", {"address": "x" * 200}, "VALIDATION_ERROR", "address"),
        ("deposit", {"address": "x"}, "INVALID_ADDRESS", "address"),
        ("deposit", {"paymentId": "pay_1", "amount": 1}, "VALIDATION_ERROR", "amount"),
        ("deposit", {"paymentId": "pay_1", "confirmations": 1001}, "VALIDATION_ERROR", "confirmations"),
        ("mine", {}, "VALIDATION_ERROR", "chain"),
        ("mine", {"chain": "nowhere"}, "UNSUPPORTED_CHAIN", "chain"),
        ("mine", {"chain": "memory", "blocks": 0}, "VALIDATION_ERROR", "blocks"),
        ("mine", {"chain": "memory", "blocks": 1001}, "VALIDATION_ERROR", "blocks"),
        ("reorg", {"chain": "memory", "depth": 0}, "VALIDATION_ERROR", "depth"),
        ("reorg", {"chain": "memory", "depth": 10**30}, "REORG_TOO_DEEP", "depth"),
        ("reorg", {"chain": "memory", "depth": 1}, "REORG_TOO_DEEP", "depth"),
        ("reorg", {"chain": "memory", "depth": 1, "transactions": "keep"}, "VALIDATION_ERROR", "transactions"),
        ("advance-time", {"seconds": 0}, "VALIDATION_ERROR", "seconds"),
        ("advance-time", {"seconds": 10**9}, "VALIDATION_ERROR", "seconds"),
        ("advance-time", {"seconds": 1, "chain": "nowhere"}, "UNSUPPORTED_CHAIN", "chain"),
    ],
)
async def test_bad_input_is_refused_with_a_code_and_its_field(client, shop, path, body, code, field):
    refused(await client.post(f"/api/sandbox/{path}", json=body, headers=shop.key), 400, code, field)


async def test_a_payment_that_is_not_there_gets_no_deposit(client, shop):
    response = await client.post("/api/sandbox/deposit", json={"paymentId": "pay_1"}, headers=shop.key)
    refused(response, 404, "PAYMENT_NOT_FOUND")


async def test_live_keys_have_no_sandbox(client, merchant):
    for path, body in (
        ("deposit", {"paymentId": "pay_1"}),
        ("mine", {"chain": "memory"}),
        ("reorg", {"chain": "memory", "depth": 1}),
        ("advance-time", {"seconds": 1}),
        ("fail-payout", {"payoutId": "po_1"}),
    ):
        response = await client.post(f"/api/sandbox/{path}", json=body, headers=merchant.key)
        refused(response, 403, "SANDBOX_ONLY")
        refused(await client.post(f"/api/sandbox/{path}", json=body), 401, "API_KEY_MISSING")


async def test_the_dashboard_has_the_sandbox_too(client, shop):
    path = f"/api/dashboard/projects/{shop.project_id}/sandbox/mine"
    response = await client.post(path, json={"chain": "memory", "blocks": 2}, headers=shop.bearer)
    assert (response.status_code, response.json()["height"]) == (200, 2)


async def paid_out(client, shop, call, **fields):
    """Be paid 10 USDX, and ask for a payout of 4."""
    payment = await made(client, shop)
    await call("deposit", paymentId=payment["paymentId"], confirmations=3)
    body = {"chain": "memory", "token": "USDX", "amount": "4", "toAddress": named_address("ann"), **fields}
    response = await client.post("/api/merchant/wallet/payout", json=body, headers=shop.key)
    assert response.status_code == 201, response.text
    return response.json()["payout"]["payoutId"]


async def payout_of(client, shop, payout_id):
    return (await client.get(f"/api/merchant/wallet/payouts/{payout_id}", headers=shop.key)).json()["payout"]


async def available(client, shop):
    answer = await client.get("/api/merchant/wallet/balance?chain=memory&token=USDX", headers=shop.key)
    return answer.json()["balance"]["available"]


async def test_the_story_of_a_payout(client, shop, call):
    payout_id = await paid_out(client, shop, call)
    assert (await payout_of(client, shop, payout_id))["status"] == "broadcast"
    await call("mine", chain="memory", blocks=4)
    payout = await payout_of(client, shop, payout_id)
    assert (payout["status"], payout["amount"], len(payout["txHash"])) == ("completed", "4", 64)
    assert await available(client, shop) == "6"
    await call("reorg", chain="memory", depth=4)
    assert (await payout_of(client, shop, payout_id))["status"] == "broadcast"


async def test_a_payout_fails_on_request(client, shop, call):
    payout_id = await paid_out(client, shop, call)
    answer = await call("fail-payout", payoutId=payout_id)
    assert (answer["payout"]["payoutId"], answer["payout"]["status"]) == (payout_id, "broadcast")
    await call("mine", chain="memory", blocks=4)
    assert (await payout_of(client, shop, payout_id))["status"] == "failed"
    assert await available(client, shop) == "10"
    again = await client.post("/api/sandbox/fail-payout", json={"payoutId": payout_id}, headers=shop.key)
    refused(again, 409, "PAYOUT_ALREADY_MINED")


async def test_a_payout_of_a_project_that_mines_by_itself_is_complete_when_it_is_read(client, shop, call):
    path = f"/api/merchant/projects/{shop.project_id}"
    response = await client.patch(path, json={"sandboxAutoMine": True}, headers=shop.bearer)
    assert response.status_code == 200, response.text
    payout_id = await paid_out(client, shop, call)
    assert (await payout_of(client, shop, payout_id))["status"] == "completed"


@pytest.mark.parametrize(
    "body, status, code",
    [
        ({}, 400, "VALIDATION_ERROR"),
        ({"payoutId": "x" * 65}, 400, "VALIDATION_ERROR"),
        ({"payoutId": "po_1", "more": 1}, 400, "VALIDATION_ERROR"),
        ({"payoutId": "po_1"}, 404, "PAYOUT_NOT_FOUND"),
    ],
)
async def test_a_payout_that_cannot_be_meant_is_not_made_to_fail(client, shop, body, status, code):
    refused(await client.post("/api/sandbox/fail-payout", json=body, headers=shop.key), status, code)


async def test_the_story_of_a_refund(client, shop, call):
    payment = await made(client, shop)
    await call("deposit", paymentId=payment["paymentId"], confirmations=3)
    path = f"/api/payment/{payment['paymentId']}"
    body = {"toAddress": named_address("bob"), "toTag": "9", "amount": "4"}
    response = await client.post(f"{path}/refund", json=body, headers=shop.key)
    assert response.status_code == 201, response.text
    refund_id = response.json()["refund"]["refundId"]
    assert (await client.get(path, headers=shop.key)).json()["payment"]["status"] == "refunded"
    events = (await client.get("/api/events", headers=shop.key)).json()["events"]
    told = {one["event"]: one["payload"]["data"] for one in events}
    assert [told[name]["toTag"] for name in ("payment.refunded", "refund.sent")] == ["9", "9"]
    await call("fail-payout", payoutId=refund_id)
    await call("mine", chain="memory", blocks=4)
    assert (await client.get(path, headers=shop.key)).json()["payment"]["status"] == "paid"
    assert await available(client, shop) == "10"
