"""Money goes back: what was too much, what came on the wrong chain, and never more than came."""

from __future__ import annotations

import pytest

from tests.support.gateway import until
from tests.support.networks import NETWORKS, AnvilNetwork

LIKE_THE_OTHER = [name for name, kind in NETWORKS.items() if kind.family == AnvilNetwork.family]
"""Where an address is one on the chain beside it too."""


@pytest.fixture(autouse=True)
def world(station, blocks) -> None:
    """Let both chains run, and the gas station pay."""


@pytest.fixture
async def overpaid(merchant, customer, usdx):
    """Have a payment of ten be paid with twelve."""
    payment = await merchant.pay(usdx, 10)
    await customer.pay(payment["depositAddress"], usdx, 12)
    return await merchant.until(payment, "overpaid", seconds=180)


async def test_the_held_excess_goes_back_first(merchant, receiver, customer, onlooker, usdx, overpaid, gateway):
    assert await merchant.balance(usdx) == {"available": "10", "held": "2"}
    (surplus,) = await listed(merchant, "surplus")
    assert (surplus["paymentId"], surplus["heldAmount"]) == (overpaid["paymentId"], "2")

    first = await merchant.refund(overpaid, customer.address, amount="1.5", idempotencyKey="first")
    assert await merchant.balance(usdx) == {"available": "10", "held": "0.5", "pending": "1.5"}
    await merchant.completed(first)
    assert await onlooker.holds(customer.address, usdx, "89.5")
    told = await receiver.wait(overpaid["paymentId"], "payment.refunded")
    assert (told["refundId"], told["refundedAmount"]) == (first["refundId"], "1.5")
    assert (await merchant.payment(overpaid))["status"] == "refunded"

    second = await merchant.refund(overpaid, customer.address, amount="3.5")
    assert await merchant.balance(usdx) == {"available": "7", "pending": "3.5"}
    assert await listed(merchant, "surplus") == []
    last = await merchant.refund(overpaid, customer.address)
    assert last["amount"] == "7"
    path = f"/api/payment/{overpaid['paymentId']}/refund"
    more = await merchant.post(path, {"toAddress": customer.address, "amount": "0.000001"}, status=409)
    assert more["code"] == "REFUND_EXCEEDS_RECEIVED"
    again = {"toAddress": customer.address, "amount": "1.5", "idempotencyKey": "first"}
    assert (await merchant.post(path, again))["refund"]["refundId"] == first["refundId"]
    for refund in (second, last):
        await merchant.completed(refund)
    assert await onlooker.holds(customer.address, usdx, 100)
    assert await merchant.balance(usdx) == {}
    assert (await merchant.payment(overpaid))["refundedAmount"] == "12"
    assert (await merchant.get("/api/payment/refunds/list?status=completed"))["total"] == 3
    await gateway.reconcile()


@pytest.mark.parametrize("network", LIKE_THE_OTHER, indirect=True, scope="module")
async def test_what_came_on_the_wrong_chain_is_found_and_can_be_kept_or_sent_back(
    merchant, customer, other_customer, usdx, other, gateway
):
    payment = await merchant.pay(usdx, 20)
    address = payment["depositAddress"]
    for amount in (20, 3):
        await other_customer.pay(address, other.usdx, amount)

    async def both() -> list | None:
        found = await listed(merchant, "wrong_chain")
        return found if len(found) == 2 else None

    small, large = sorted(await until(both), key=lambda one: float(one["amount"]))
    assert {(one["chain"], one["address"], one["paymentId"], one["canAccept"]) for one in (small, large)} == {
        (other.chain, address, payment["paymentId"], False)
    }
    assert (small["amount"], large["amount"]) == ("3", "20")
    assert (await merchant.payment(payment))["receivedAmount"] == "0"
    assert await merchant.balance(other.usdx) == {"held": "23"}
    here = "/api/merchant/resolutions"
    refused = await merchant.post(f"{here}/{large['depositId']}/accept", None, status=409)
    assert refused["code"] == "CANNOT_ACCEPT"

    released = (await merchant.post(f"{here}/{large['depositId']}/release", None))["resolution"]
    assert (released["resolution"], released["heldAmount"]) == ("released", "0")
    assert await merchant.balance(other.usdx) == {"available": "20", "held": "3"}
    body = {"toAddress": other_customer.address}
    refund = (await merchant.post(f"{here}/{small['depositId']}/refund", body, status=201))["refund"]
    assert (refund["chain"], refund["amount"], refund["paymentId"]) == (other.chain, "3", payment["paymentId"])
    await merchant.completed(refund)
    assert await other.onlooker.holds(other_customer.address, other.usdx, 80)
    late = await merchant.post(f"{here}/{small['depositId']}/release", None, status=409)
    assert late["code"] == "ALREADY_RESOLVED"
    assert await listed(merchant, "wrong_chain") == []

    friend = other.stranger()
    await merchant.completed(await merchant.pay_out(other.usdx, 20, friend))
    assert await other.onlooker.holds(friend, other.usdx, 20)
    assert await merchant.balance(other.usdx) == {}
    assert (await merchant.payment(payment))["status"] == "pending"
    await customer.pay(address, usdx, 20)
    await merchant.until(payment, "paid", seconds=180)
    report = await gateway.reconcile()
    assert {chain["chain"] for chain in report["chains"]} == {usdx.chain, other.chain}


async def listed(merchant, reason: str) -> list:
    """Return what waits for a decision, and why."""
    found: list = (await merchant.get(f"/api/merchant/resolutions?reason={reason}"))["resolutions"]
    return found
