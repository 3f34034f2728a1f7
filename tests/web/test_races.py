"""Many at the same door at once: one code opens it once, and what is there is given away once."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from cambist.services.actor import Actor
from cambist.services.payouts import coin_settings
from cambist.services.payouts.coin_settings import Coin, CoinPatch
from tests.support.payout_env import person
from tests.support.two_merchants import APPROVED, RESOLUTIONS, WALLET, WITHDRAWALS
from tests.support.web import PASSWORD

pytestmark = pytest.mark.slow

SETTINGS = "/api/admin/settings"
COIN = {"chain": "memory", "token": "USDX"}
PAY = {**COIN, "toAddress": person(), "amount": "1"}


@pytest.fixture
async def at_once(two_merchants):
    async def at_once(*asked):
        """Ask for everything at once: pairs of path and body. Return how often each status and code was answered."""
        answers = await asyncio.gather(
            *[
                two_merchants.client.post(path, json=body, headers=headers or two_merchants.ada.key)
                for path, body, headers in asked
            ]
        )
        return Counter((answer.status_code, answer.json().get("code")) for answer in answers)

    return at_once


async def balance(two_merchants):
    found = (await two_merchants.get(f"{WALLET}/balance?chain=memory&token=USDX"))["balance"]
    return {name: float(found[name]) for name in ("available", "pending", "held")}


async def test_one_code_is_good_for_one_withdrawal_however_many_ask(two_merchants, at_once):
    body = {**PAY, "projectId": two_merchants.ada.project_id, "totpCode": two_merchants.phone.code()}
    before = await balance(two_merchants)
    asked = [(WITHDRAWALS, {**body, "amount": str(1 + n)}, two_merchants.ada.bearer) for n in range(12)]
    assert await at_once(*asked) == {(201, None): 1, (403, "TWO_FACTOR_INVALID"): 11}
    assert (await two_merchants.get(WITHDRAWALS, two_merchants.ada.bearer))["total"] == 2
    after = await balance(two_merchants)
    assert after["available"] + after["pending"] == before["available"] + before["pending"]


async def test_one_code_opens_one_door_of_many(two_merchants, at_once):
    code = {"totpCode": two_merchants.phone.code()}
    asked = [
        (WITHDRAWALS, {**PAY, "projectId": two_merchants.ada.project_id, **code}, two_merchants.ada.bearer),
        (APPROVED, {"chain": "memory", "address": person("mine"), **code}, two_merchants.ada.bearer),
        ("/api/dashboard/two-factor/recovery-codes", {"password": PASSWORD, **code}, two_merchants.ada.bearer),
    ]
    found = await at_once(*asked, *asked)
    assert found[403, "TWO_FACTOR_INVALID"] == 5
    assert found[200, None] + found[201, None] == 1


async def test_the_same_withdrawal_sent_twice_at_once_is_made_once(two_merchants, at_once):
    body = {
        **PAY,
        "projectId": two_merchants.ada.project_id,
        "totpCode": two_merchants.phone.code(),
        "idempotencyKey": "w",
    }
    found = await at_once(*[(WITHDRAWALS, body, two_merchants.ada.bearer)] * 8)
    assert found[201, None] == 1
    assert set(found) <= {(201, None), (200, None), (403, "TWO_FACTOR_INVALID")}
    assert (await two_merchants.get(WITHDRAWALS, two_merchants.ada.bearer))["total"] == 2
    assert await at_once((WITHDRAWALS, body, two_merchants.ada.bearer)) == {(200, None): 1}


async def test_refunds_at_once_never_send_back_more_than_was_received(two_merchants, at_once):
    path = f"/api/payment/{two_merchants.ids['payment_id']}/refund"
    back = {"toAddress": person("customer"), "amount": "30"}
    surplus = (
        f"{RESOLUTIONS}/{two_merchants.ids['deposit_id']}/refund",
        {"toAddress": person("customer"), "amount": "3"},
        None,
    )
    found = await at_once(*[(path, back, None)] * 6, *[surplus] * 3)
    payment = (await two_merchants.get(f"/api/payment/{two_merchants.ids['payment_id']}"))["payment"]
    refunds = (await two_merchants.get("/api/payment/refunds/list?limit=100"))["refunds"]
    assert set(found) <= {
        (201, None),
        (200, None),
        (409, "REFUND_EXCEEDS_RECEIVED"),
        (409, "ALREADY_RESOLVED"),
        (409, "REFUND_EXCEEDS_HELD"),
    }
    assert found[409, "REFUND_EXCEEDS_RECEIVED"] >= 3
    assert sum(float(refund["amount"]) for refund in refunds) == float(payment["refundedAmount"]) <= 105
    assert 105 - float(payment["refundedAmount"]) < 30, "nobody is refused what there is"
    assert len(refunds) == 1 + found[201, None]
    amounts = await balance(two_merchants)
    assert sum(amounts.values()) + 0 == 205
    assert min(amounts.values()) >= 0
    await two_merchants.post("/api/sandbox/mine", {"chain": "memory", "blocks": 5})
    refunds = (await two_merchants.get("/api/payment/refunds/list?limit=100"))["refunds"]
    assert {refund["status"] for refund in refunds} == {"completed"}
    assert await balance(two_merchants) == {**amounts, "pending": 0}


@pytest.mark.parametrize("round_number", range(3))
async def test_a_deposit_is_decided_about_once(two_merchants, at_once, round_number):
    path = f"{RESOLUTIONS}/{two_merchants.ids['deposit_id']}"
    asked = [
        (f"{path}/accept", None, None),
        (f"{path}/release", None, None),
        (f"{path}/refund", {"toAddress": person("customer")}, None),
    ]
    before = await balance(two_merchants)
    found = await at_once(*asked[round_number:], *asked[:round_number])
    assert sum(found.values()) == 3
    assert found[409, "ALREADY_RESOLVED"] == 2, found
    after = await balance(two_merchants)
    assert sum(after.values()) == sum(before.values())
    assert after["held"] == 0
    assert (await two_merchants.get(path))["resolution"]["heldAmount"] == "0"


@pytest.mark.parametrize("decision", ["accept", "release"])
async def test_a_refund_of_everything_and_a_decision_about_its_surplus_share_what_there_is(
    two_merchants, at_once, decision
):
    payment = f"/api/payment/{two_merchants.ids['payment_id']}"
    deposit = f"{RESOLUTIONS}/{two_merchants.ids['deposit_id']}"
    before = await balance(two_merchants)
    back = (f"{payment}/refund", {"toAddress": person("customer")}, None)
    found = await at_once(back, (f"{deposit}/{decision}", None, None), back)
    assert found[201, None] == 1
    assert set(found) <= {(201, None), (200, None), (409, "ALREADY_RESOLVED"), (409, "REFUND_EXCEEDS_RECEIVED")}
    after = await balance(two_merchants)
    assert sum(after.values()) == sum(before.values())
    assert (after["pending"], after["held"]) == (before["pending"] + 103, 0)
    assert (await two_merchants.get(payment))["payment"]["refundedAmount"] == "105"


async def test_batches_and_payouts_and_withdrawals_drain_a_wallet_to_the_last_unit_and_no_further(
    two_merchants, at_once
):
    rows = {**COIN, "destinations": [{"toAddress": person(f"row {n}"), "amount": "7"} for n in range(5)]}
    asked = [(f"{WALLET}/payout", {**PAY, "amount": "11"}, None)] * 15 + [(f"{WALLET}/payout/batch", rows, None)] * 8
    asked += [
        (
            WITHDRAWALS,
            {**PAY, "amount": "50", "projectId": two_merchants.ada.project_id, "totpCode": two_merchants.phone.code()},
            two_merchants.ada.bearer,
        )
    ]
    before = await balance(two_merchants)
    found = await at_once(*asked[::2], *asked[1::2])
    assert set(found) == {(201, None), (403, "INSUFFICIENT_BALANCE")}
    after = await balance(two_merchants)
    payouts = (await two_merchants.get(f"{WALLET}/payouts?limit=100"))["payouts"][:-2]
    sent = sum(float(payout["amount"]) for payout in payouts)
    taken = (await two_merchants.get(WITHDRAWALS, two_merchants.ada.bearer))["withdrawals"][:-1]
    sent += sum(float(one["amount"]) for one in taken)
    assert after["available"] == before["available"] - sent >= 0
    assert after["pending"] == before["pending"] + sent
    batches = Counter(payout["batchId"] for payout in payouts if payout["batchId"])
    assert set(batches.values()) <= {5}
    assert sum(payout["batchId"] is None for payout in payouts) + len(batches) + len(taken) == found[201, None]


async def test_one_key_sent_at_once_makes_one_payout_and_one_batch(two_merchants, at_once):
    rows = {**COIN, "destinations": [{"toAddress": person("row"), "amount": "1", "idempotencyKey": "row"}]}
    one = (f"{WALLET}/payout", {**PAY, "idempotencyKey": "k"}, None)
    many = (f"{WALLET}/payout/batch", {**rows, "idempotencyKey": "k"}, None)
    assert await at_once(*[one, many] * 15) == {(201, None): 2, (200, None): 28}
    assert (await two_merchants.get(f"{WALLET}/payouts"))["total"] == 4


async def test_what_the_operator_and_the_merchant_switch_off_stops_at_once(two_merchants, at_once):
    operator = two_merchants.who["operator"]

    async def switch(path, body, headers):
        await asyncio.sleep(0.05)
        assert (await two_merchants.client.put(path, json=body, headers=headers)).status_code == 200

    for path, off, on, headers, refusal in (
        (SETTINGS, {"payoutEnabled": False}, {"payoutEnabled": True}, operator, (503, "PAYOUT_DISABLED")),
        (f"{WALLET}/coins", {"coins": []}, {"coins": [COIN]}, two_merchants.ada.key, (400, "TOKEN_NOT_ENABLED")),
    ):
        total = (await two_merchants.get(f"{WALLET}/payouts"))["total"]
        found, _ = await asyncio.gather(at_once(*[(f"{WALLET}/payout", PAY, None)] * 12), switch(path, off, headers))
        assert set(found) <= {(201, None), refusal}
        assert (await two_merchants.get(f"{WALLET}/payouts"))["total"] == total + found[201, None]
        key = {"idempotencyKey": refusal[1]}
        assert await at_once((f"{WALLET}/payout", {**PAY, **key}, None)) == {refusal: 1}
        await switch(path, on, headers)
        assert await at_once((f"{WALLET}/payout", {**PAY, **key}, None)) == {(201, None): 1}
    # What was accepted before is sent all the same.
    await two_merchants.post("/api/sandbox/mine", {"chain": "memory", "blocks": 5})
    payouts = (await two_merchants.get(f"{WALLET}/payouts?limit=100"))["payouts"]
    assert {payout["status"] for payout in payouts} == {"completed"}
    assert (await balance(two_merchants))["pending"] == 0


async def test_an_approval_that_is_taken_back_while_a_rule_is_made_leaves_no_rule(two_merchants, gateway):
    async with gateway.db.transaction() as conn:
        row = await conn.exec_driver_sql(
            "SELECT p.id, p.merchant_pk FROM projects p WHERE p.project_id = $1", (two_merchants.ada.project_id,)
        )
        project_pk, merchant_pk = row.one()
    actor = Actor(
        merchant_pk=merchant_pk, merchant_id=two_merchants.ada.merchant_id, project_pk=project_pk,
        project_id=two_merchants.ada.project_id, mode="sandbox",
    )  # fmt: skip
    rule = CoinPatch(autopayout_policy="limit", autopayout_threshold="1", autopayout_address=person("safe"))
    async with gateway.db.transaction() as conn:
        coin, now = Coin(chain="memory", token="USDX"), gateway.clock.now()
        await coin_settings.change_settings(conn, gateway.registry, actor, coin, rule, now)
        path = f"{APPROVED}/{two_merchants.ids['approval_id']}"
        taken_back = asyncio.create_task(two_merchants.client.delete(path, headers=two_merchants.ada.bearer))
        await asyncio.wait([taken_back], timeout=0.5)
    assert (await taken_back).status_code == 200
    (coin,) = [
        one
        for one in (await two_merchants.get(f"{WALLET}/coins"))["coins"]
        if (one["chain"], one["token"]) == ("memory", "USDX")
    ]
    assert (coin["autopayoutPolicy"], coin["autopayoutAddress"]) == ("off", None)
