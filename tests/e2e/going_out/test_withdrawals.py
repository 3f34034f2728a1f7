"""Money that leaves without an API key: withdrawals in person, and auto-payouts to an address approved in person."""

from __future__ import annotations

import pytest

from tests.support.gateway import named, recurs, until

HERE = "/api/dashboard/withdrawals"

# Who may withdraw is the same on every kind of chain; that the money arrives is seen on each in test_money_moves.py.
pytestmark = pytest.mark.parametrize("network", ["anvil"], indirect=True, scope="module")


@pytest.fixture(scope="module")
async def merchant(station, blocks, usdx, merchant):
    """Give the merchant an authenticator."""
    body = request(merchant, usdx, usdx.network.stranger(), totpCode="123456")
    refused = await merchant.post(HERE, body, headers=merchant.bearer, status=403)
    assert refused["code"] == "TWO_FACTOR_NOT_ENROLLED"
    await merchant.enrol()
    return merchant


def request(merchant, coin, to_address: str, **more) -> dict:
    return {
        "projectId": merchant.project["projectId"], **named(coin), "amount": "5", "toAddress": to_address, **more
    }  # fmt: skip


async def test_money_above_the_threshold_goes_to_the_approved_address_by_itself_and_once(
    merchant, receiver, customer, network, usdx, onlooker, gateway, story_db
):
    savings, coin = network.stranger(), f"/api/merchant/wallet/coins/{usdx.chain}/{usdx.symbol}/settings"
    rule = {"autopayoutPolicy": "limit", "autopayoutThreshold": "10", "autopayoutAddress": savings}
    refused = await merchant.patch(coin, rule, status=403)
    assert refused["code"] == "ADDRESS_NOT_APPROVED"
    approval = {"chain": usdx.chain, "address": savings, "label": "savings"}
    no_code = await merchant.post("/api/dashboard/approved-addresses", approval, headers=merchant.bearer, status=403)
    assert no_code["code"] == "TWO_FACTOR_REQUIRED"
    await merchant.post("/api/dashboard/approved-addresses", approval, status=401)
    approval["totpCode"] = merchant.recovery_codes[0]
    await merchant.post("/api/dashboard/approved-addresses", approval, headers=merchant.bearer, status=201)
    await merchant.patch(coin, rule)

    payment = await merchant.pay(usdx, 40)
    await customer.pay(payment["depositAddress"], usdx, 40)
    await merchant.until(payment, "paid", seconds=180)

    async def made() -> list:
        found = (await merchant.get("/api/merchant/wallet/payouts"))["payouts"]
        return [payout for payout in found if payout["kind"] == "auto_payout"]

    (payout,) = await until(made)
    assert (payout["amount"], payout["toAddress"]) == ("30", savings)
    await merchant.completed(payout)
    await receiver.wait(payout["payoutId"], "payout.completed")
    await recurs(story_db, "auto_payouts")
    assert [one["payoutId"] for one in await made()] == [payout["payoutId"]]
    assert await onlooker.holds(savings, usdx, 30)
    assert await merchant.balance(usdx) == {"available": "10"}
    await gateway.reconcile()


async def test_a_withdrawal_takes_a_session_and_a_code_and_an_api_key_gets_nowhere(
    merchant, receiver, network, usdx, onlooker, gateway
):
    to_address = network.stranger()
    body = request(merchant, usdx, to_address, totpCode=await merchant.phone.code())
    with_key = await merchant.post(HERE, body, status=401)
    assert with_key["code"] == "SESSION_REQUIRED"
    as_bearer = {"Authorization": f"Bearer {merchant.headers['X-Api-Key']}"}
    await merchant.post(HERE, body, headers=as_bearer, status=401)
    for path in ("/api/merchant/wallet/withdraw", "/api/merchant/withdrawals", "/api/withdrawals"):
        await merchant.post(path, body, status=404)
    for code, answer in ((None, "TWO_FACTOR_REQUIRED"), ("abcdef", "TWO_FACTOR_INVALID")):
        refused = await merchant.post(HERE, body | {"totpCode": code}, headers=merchant.bearer, status=403)
        assert refused["code"] == answer
    assert await merchant.balance(usdx) == {"available": "10"}

    made = (await merchant.post(HERE, body, headers={**merchant.bearer, **merchant.headers}, status=201))["withdrawal"]
    assert (made["status"], made["amount"], made["toAddress"]) == ("requested", "5", to_address)
    replayed = await merchant.post(HERE, body | {"toAddress": network.stranger()}, headers=merchant.bearer, status=403)
    assert replayed["code"] == "TWO_FACTOR_INVALID"
    done = await merchant.completed(made)
    told = await receiver.wait(made["withdrawalId"], "withdrawal.completed")
    assert (told["resource"], told["txHash"]) == ("withdrawal", done["txHash"])
    assert await onlooker.holds(to_address, usdx, 5)
    assert await merchant.balance(usdx) == {"available": "5"}
    payouts = (await merchant.get("/api/merchant/wallet/payouts"))["payouts"]
    assert made["withdrawalId"] not in {payout["payoutId"] for payout in payouts}
    await merchant.get(f"{HERE}/{made['withdrawalId']}", status=401)
    await gateway.reconcile()
