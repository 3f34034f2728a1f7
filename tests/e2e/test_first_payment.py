"""A customer pays on a real node, and the merchant is told: every state of a payment, over HTTP and webhooks."""

from __future__ import annotations

import asyncio

import pytest

ONE = 10**6


async def test_a_token_payment_is_detected_confirmed_paid_and_told(merchant, receiver, node, usdx, books):
    payment = await merchant.pay("ethereum", "USDX", "25.5", orderId="A-1", metadata={"cart": 7})
    assert payment["status"] == "pending"
    assert payment["expectedAmount"] == "25.5"
    before = (await merchant.balance("ethereum", "USDX")).get("available", "0")
    await usdx.send("transfer", payment["depositAddress"], 25_500_000)
    await node.mine()
    told = await receiver.wait(payment["paymentId"], "payment.detected")
    assert (told["status"], told["receivedAmount"]) == ("detected", "25.5")
    await merchant.until(payment, "detected")
    await node.mine()
    await receiver.wait(payment["paymentId"], "payment.confirming")
    await node.mine(2)
    paid = await receiver.wait(payment["paymentId"], "payment.paid")
    assert paid["publicId"] == payment["publicId"]
    final = await merchant.payment(payment)
    assert (final["status"], final["receivedAmount"], final["txHash"]) == ("paid", "25.5", paid["txHash"])
    assert receiver.events(payment["paymentId"]) == ["payment.detected", "payment.confirming", "payment.paid"]
    after = await merchant.balance("ethereum", "USDX")
    assert float(after["available"]) - float(before) == pytest.approx(25.5)


async def test_a_native_payment_is_paid(merchant, node, books):
    payment = await merchant.pay("ethereum", "ETH", "0.25")
    await node.send_native(payment["depositAddress"], 25 * 10**16)
    await node.mine(4)
    assert (await merchant.until(payment, "paid"))["receivedAmount"] == "0.25"


async def test_native_money_from_a_contract_is_found(merchant, node, books):
    payment = await merchant.pay("ethereum", "ETH", "0.5")
    splitter = await node.deploy("Splitter")
    await splitter.send("splitNative", [payment["depositAddress"]], [5 * 10**17], value=5 * 10**17)
    await node.mine(4)
    assert (await merchant.until(payment, "paid"))["receivedAmount"] == "0.5"


async def test_a_second_chain_is_paid_beside_the_first(merchant, other_node, other_usdx, books):
    payment = await merchant.pay("base", "USDX", "3")
    await other_usdx.send("transfer", payment["depositAddress"], 3 * ONE)
    await other_node.mine(4)
    await merchant.until(payment, "paid")


async def test_more_than_was_asked_for_is_overpaid_and_the_rest_is_held(merchant, receiver, node, usdx, books):
    held = float((await merchant.balance("ethereum", "USDX")).get("held", 0))
    payment = await merchant.pay("ethereum", "USDX", "10")
    await usdx.send("transfer", payment["depositAddress"], 12 * ONE)
    await node.mine(4)
    told = await receiver.wait(payment["paymentId"], "payment.overpaid")
    assert told["receivedAmount"] == "12"
    assert float((await merchant.balance("ethereum", "USDX"))["held"]) - held == pytest.approx(2)


async def test_two_parts_make_a_whole(merchant, receiver, node, usdx, books):
    payment = await merchant.pay("ethereum", "USDX", "10")
    await usdx.send("transfer", payment["depositAddress"], 4 * ONE)
    await node.mine(2)
    for _ in range(100):
        if (await merchant.payment(payment))["receivedAmount"] == "4":
            break
        await asyncio.sleep(0.1)
    assert (await merchant.payment(payment))["status"] == "pending"
    await usdx.send("transfer", payment["depositAddress"], 6 * ONE)
    await node.mine(4)
    assert (await merchant.until(payment, "paid"))["receivedAmount"] == "10"
    assert receiver.events(payment["paymentId"])[0] == "payment.detected"


async def test_nothing_in_time_is_expired_and_told(merchant, receiver, node, books):
    payment = await merchant.pay("ethereum", "USDX", "10")
    await books.expire(payment)
    told = await receiver.wait(payment["paymentId"], "payment.expired")
    assert told["receivedAmount"] == "0"
    await merchant.until(payment, "expired")


async def test_too_little_in_time_is_underpaid_and_credited(merchant, receiver, node, usdx, books):
    payment = await merchant.pay("ethereum", "USDX", "10")
    await usdx.send("transfer", payment["depositAddress"], 4 * ONE)
    await node.mine(4)
    await books.expire(payment)
    told = await receiver.wait(payment["paymentId"], "payment.expired")
    assert told["receivedAmount"] == "4"
    assert (await merchant.until(payment, "underpaid"))["receivedAmount"] == "4"


async def test_money_after_expiry_is_taken_within_the_grace(merchant, receiver, node, usdx, books):
    payment = await merchant.pay("ethereum", "USDX", "10")
    await books.expire(payment)
    await merchant.until(payment, "expired")
    await usdx.send("transfer", payment["depositAddress"], 10 * ONE)
    await node.mine(4)
    await merchant.until(payment, "paid")
    await receiver.wait(payment["paymentId"], "payment.paid")
    assert receiver.events(payment["paymentId"]) == [
        "payment.expired", "payment.detected", "payment.confirming", "payment.paid",
    ]  # fmt: skip


async def test_late_money_for_a_locked_rate_is_held(merchant, receiver, node, usdx, books):
    body = {"chain": "ethereum", "token": "USDX", "pricingMode": "fiat", "amount": "9.2", "fiatCurrency": "eur"}
    payment = (await merchant.post("/api/payment", body, status=201))["payment"]
    assert (payment["expectedAmount"], payment["exchangeRate"]) == ("10", "0.92")
    await books.expire(payment)
    await merchant.until(payment, "expired")
    await asyncio.sleep(1.1)
    held = float((await merchant.balance("ethereum", "USDX")).get("held", 0))
    await usdx.send("transfer", payment["depositAddress"], 10 * ONE)
    await node.mine(4)
    for _ in range(100):
        if float((await merchant.balance("ethereum", "USDX")).get("held", 0)) - held == pytest.approx(10):
            break
        await asyncio.sleep(0.1)
    assert (await merchant.payment(payment))["status"] == "expired"
    assert float((await merchant.balance("ethereum", "USDX"))["held"]) - held == pytest.approx(10)


async def test_a_token_of_the_same_name_is_not_taken(merchant, node, usdx, books):
    payment, honest = await merchant.pay("ethereum", "USDX", "10"), await merchant.pay("ethereum", "USDX", "1")
    impostor = await node.deploy("Impostor")
    await impostor.send("forge", node.accounts[0], payment["depositAddress"], 10 * ONE, 1)
    await usdx.send("transfer", honest["depositAddress"], ONE)
    await node.mine(4)
    await merchant.until(honest, "paid")
    found = await merchant.payment(payment)
    assert (found["status"], found["receivedAmount"]) == ("pending", "0")


async def test_a_transfer_that_reverts_is_not_taken(merchant, node, usdx, books):
    payment, honest = await merchant.pay("ethereum", "USDX", "10"), await merchant.pay("ethereum", "USDX", "1")
    await usdx.send("transfer", payment["depositAddress"], 10 * ONE, sender=node.accounts[5])
    await usdx.send("transfer", honest["depositAddress"], ONE)
    await node.mine(4)
    await merchant.until(honest, "paid")
    assert (await merchant.payment(payment))["receivedAmount"] == "0"


async def test_two_transfers_of_one_transaction_pay_two_payments(merchant, node, usdx, books):
    one, two = await merchant.pay("ethereum", "USDX", "3"), await merchant.pay("ethereum", "USDX", "4")
    splitter = await node.deploy("Splitter")
    await usdx.send("transfer", splitter.address, 7 * ONE)
    await splitter.send("splitToken", usdx.address, [one["depositAddress"], two["depositAddress"]], [3 * ONE, 4 * ONE])
    await node.mine(4)
    await merchant.until(one, "paid")
    await merchant.until(two, "paid")


async def test_two_transfers_of_one_transaction_to_one_payment_are_both_counted(merchant, node, usdx, books):
    payment = await merchant.pay("ethereum", "USDX", "9")
    splitter = await node.deploy("Splitter")
    await usdx.send("transfer", splitter.address, 9 * ONE)
    await splitter.send("splitToken", usdx.address, [payment["depositAddress"]] * 2, [4 * ONE, 5 * ONE])
    await node.mine(4)
    assert (await merchant.until(payment, "paid"))["receivedAmount"] == "9"


@pytest.mark.parametrize("run", range(20))
async def test_eight_deposits_at_once_are_all_counted(merchant, node, usdx, books, run):
    payment = await merchant.pay("ethereum", "USDX", "8")
    for _ in range(8):
        await usdx.send("transfer", payment["depositAddress"], ONE)
    await node.mine(4)
    assert (await merchant.until(payment, "paid", "overpaid"))["receivedAmount"] == "8"
