"""A customer pays on a real node, and the merchant is told: every state of a payment, over HTTP and webhooks."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.support.gateway import until


async def test_a_token_payment_is_detected_confirmed_paid_and_told(merchant, receiver, network, usdx, books):
    payment = await merchant.pay(usdx, "25.5", orderId="A-1", metadata={"cart": 7})
    assert payment["status"] == "pending"
    assert payment["expectedAmount"] == "25.5"
    before = (await merchant.balance(usdx)).get("available", "0")
    await usdx.send(payment["depositAddress"], "25.5")
    await network.mine()
    told = await receiver.wait(payment["paymentId"], "payment.detected")
    assert (told["status"], told["receivedAmount"]) == ("detected", "25.5")
    await merchant.until(payment, "detected")
    await network.mine()
    await receiver.wait(payment["paymentId"], "payment.confirming")
    await network.mine(2)
    paid = await receiver.wait(payment["paymentId"], "payment.paid")
    assert paid["publicId"] == payment["publicId"]
    final = await merchant.payment(payment)
    assert (final["status"], final["receivedAmount"], final["txHash"]) == ("paid", "25.5", paid["txHash"])
    assert receiver.events(payment["paymentId"]) == ["payment.detected", "payment.confirming", "payment.paid"]
    after = await merchant.balance(usdx)
    assert float(after["available"]) - float(before) == pytest.approx(25.5)


async def test_a_native_payment_is_paid(merchant, network, native, books):
    payment = await merchant.pay(native, "0.25")
    await native.send(payment["depositAddress"], "0.25")
    await network.mine(4)
    assert (await merchant.until(payment, "paid"))["receivedAmount"] == "0.25"


async def test_native_money_from_a_contract_is_found(merchant, network, native, books):
    payment = await merchant.pay(native, "0.5")
    await network.pay_many(native, [(payment["depositAddress"], "0.5")])
    await network.mine(4)
    assert (await merchant.until(payment, "paid"))["receivedAmount"] == "0.5"


async def test_a_second_chain_is_paid_beside_the_first(merchant, other, books):
    payment = await merchant.pay(other.usdx, "3")
    await other.usdx.send(payment["depositAddress"], 3)
    await other.mine(4)
    await merchant.until(payment, "paid")


async def test_more_than_was_asked_for_is_overpaid_and_the_rest_is_held(merchant, receiver, network, usdx, books):
    held = float((await merchant.balance(usdx)).get("held", 0))
    payment = await merchant.pay(usdx, "10")
    await usdx.send(payment["depositAddress"], 12)
    await network.mine(4)
    told = await receiver.wait(payment["paymentId"], "payment.overpaid")
    assert told["receivedAmount"] == "12"
    assert float((await merchant.balance(usdx))["held"]) - held == pytest.approx(2)


async def test_two_parts_make_a_whole(merchant, receiver, network, usdx, books):
    payment = await merchant.pay(usdx, "10")
    await usdx.send(payment["depositAddress"], 4)
    await network.mine(2)
    await merchant.until_received(payment, "4")
    assert (await merchant.payment(payment))["status"] == "pending"
    await usdx.send(payment["depositAddress"], 6)
    await network.mine(4)
    assert (await merchant.until(payment, "paid"))["receivedAmount"] == "10"
    await receiver.wait(payment["paymentId"], "payment.detected")
    assert receiver.events(payment["paymentId"])[0] == "payment.detected"


async def test_nothing_in_time_is_expired_and_told(merchant, receiver, usdx, books):
    payment = await merchant.pay(usdx, "10")
    await books.expire(payment)
    told = await receiver.wait(payment["paymentId"], "payment.expired")
    assert told["receivedAmount"] == "0"
    await merchant.until(payment, "expired")


async def test_too_little_in_time_is_underpaid_and_credited(merchant, receiver, network, usdx, books):
    payment = await merchant.pay(usdx, "10")
    await usdx.send(payment["depositAddress"], 4)
    await network.mine(4)
    await merchant.until_received(payment, "4")
    await books.expire(payment)
    told = await receiver.wait(payment["paymentId"], "payment.expired")
    assert told["receivedAmount"] == "4"
    assert (await merchant.until(payment, "underpaid"))["receivedAmount"] == "4"


async def test_money_after_expiry_is_taken_within_the_grace(merchant, receiver, network, usdx, books):
    payment = await merchant.pay(usdx, "10")
    await books.expire(payment)
    await merchant.until(payment, "expired")
    await usdx.send(payment["depositAddress"], 10)
    await network.mine(4)
    await merchant.until(payment, "paid")
    await receiver.wait(payment["paymentId"], "payment.paid")
    assert receiver.events(payment["paymentId"]) == [
        "payment.expired", "payment.detected", "payment.confirming", "payment.paid",
    ]  # fmt: skip


async def test_late_money_for_a_locked_rate_is_held(merchant, receiver, network, usdx, books):
    payment = await merchant.pay(usdx, "9.2", pricingMode="fiat", fiatCurrency="eur")
    assert (payment["expectedAmount"], payment["exchangeRate"]) == ("10", "0.92")
    await books.expire(payment)
    await merchant.until(payment, "expired")
    await asyncio.sleep(1.1)
    held = float((await merchant.balance(usdx)).get("held", 0))
    await usdx.send(payment["depositAddress"], 10)
    await network.mine(4)

    async def is_held():
        return float((await merchant.balance(usdx)).get("held", 0)) - held == pytest.approx(10)

    await until(is_held)
    assert (await merchant.payment(payment))["status"] == "expired"


async def test_a_token_of_the_same_name_is_not_taken(merchant, network, usdx, books):
    payment, honest = await merchant.pay(usdx, "10"), await merchant.pay(usdx, "1")
    await network.forge(payment["depositAddress"], 10)
    await usdx.send(honest["depositAddress"], 1)
    await network.mine(4)
    await merchant.until(honest, "paid")
    found = await merchant.payment(payment)
    assert (found["status"], found["receivedAmount"]) == ("pending", "0")


async def test_a_transfer_that_reverts_is_not_taken(merchant, network, usdx, books):
    payment, honest = await merchant.pay(usdx, "10"), await merchant.pay(usdx, "1")
    await network.fail_to_send(payment["depositAddress"], 10)
    await usdx.send(honest["depositAddress"], 1)
    await network.mine(4)
    await merchant.until(honest, "paid")
    assert (await merchant.payment(payment))["receivedAmount"] == "0"


async def test_two_transfers_of_one_transaction_pay_two_payments(merchant, network, usdx, books):
    one, two = await merchant.pay(usdx, "3"), await merchant.pay(usdx, "4")
    await network.pay_many(usdx, [(one["depositAddress"], 3), (two["depositAddress"], 4)])
    await network.mine(4)
    await merchant.until(one, "paid")
    await merchant.until(two, "paid")


async def test_two_transfers_of_one_transaction_to_one_payment_are_both_counted(merchant, network, usdx, books):
    payment = await merchant.pay(usdx, "9")
    await network.pay_many(usdx, [(payment["depositAddress"], 4), (payment["depositAddress"], 5)])
    await network.mine(4)
    assert (await merchant.until(payment, "paid"))["receivedAmount"] == "9"


@pytest.mark.campaign
@pytest.mark.parametrize("run", range(50 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 4))
async def test_eight_deposits_at_once_are_all_counted(merchant, network, usdx, books, run):
    payment = await merchant.pay(usdx, "8")
    for _ in range(8):
        await usdx.send(payment["depositAddress"], 1)
    await network.mine(4)
    assert (await merchant.until(payment, "paid", "overpaid"))["receivedAmount"] == "8"
