"""The chain changes its mind: state, ledger and webhooks follow."""

from __future__ import annotations

import asyncio

import pytest

ONE = 10**6
STATE_AT_DEPTH = {1: "detected", 2: "confirming", 5: "paid"}


async def wallet(merchant):
    return float((await merchant.balance("ethereum", "USDX")).get("available", 0))


async def settle_at(merchant, expected):
    for _ in range(200):
        if await wallet(merchant) == pytest.approx(expected):
            return
        await asyncio.sleep(0.1)
    assert await wallet(merchant) == pytest.approx(expected)


@pytest.mark.parametrize("depth", [1, 2, 5])
async def test_a_transaction_that_is_dropped_is_taken_back(merchant, node, usdx, books, depth):
    before = await wallet(merchant)
    payment = await merchant.pay("ethereum", "USDX", "10")
    await node.mine(6)
    await usdx.send("transfer", payment["depositAddress"], 10 * ONE)
    await node.mine(depth)
    state = STATE_AT_DEPTH[depth]
    await merchant.until(payment, state)
    await settle_at(merchant, before + (10 if state == "paid" else 0))
    await node.reorg(depth)
    gone = await merchant.until(payment, "failed" if state == "paid" else "pending")
    assert gone["receivedAmount"] == "0"
    await settle_at(merchant, before)


@pytest.mark.parametrize("depth", [1, 2, 5])
async def test_a_transaction_that_comes_back_in_another_block_is_credited_once(merchant, node, usdx, books, depth):
    before = await wallet(merchant)
    payment = await merchant.pay("ethereum", "USDX", "10")
    await node.mine(6)
    tx_id = await usdx.send("transfer", payment["depositAddress"], 10 * ONE)
    await node.mine(depth)
    await merchant.until(payment, STATE_AT_DEPTH[depth])
    signed = await node.raw(tx_id)
    await node.reorg(depth)
    await merchant.until(payment, "pending", "failed")
    await settle_at(merchant, before)
    await node.send_raw(signed)
    await node.mine(4)
    again = await merchant.until(payment, "paid")
    assert again["txHash"] == tx_id
    await settle_at(merchant, before + 10)


async def test_a_transfer_mined_again_at_another_log_index_is_credited_once(merchant, node, usdx, books):
    before = await wallet(merchant)
    payment = await merchant.pay("ethereum", "USDX", "10")
    await node.mine(2)
    tx_id = await usdx.send("transfer", payment["depositAddress"], 10 * ONE, sender=await rich(node, usdx))
    await node.mine(4)
    await merchant.until(payment, "paid")
    signed = await node.raw(tx_id)
    await node.reorg(4)
    await merchant.until(payment, "failed")
    await usdx.send("transfer", node.accounts[3], ONE)
    await usdx.send("transfer", node.accounts[3], ONE)
    await node.send_raw(signed)
    await node.mine(4)
    receipt = await node.receipt(tx_id)
    assert int(receipt["logs"][0]["logIndex"], 16) == 2
    await merchant.until(payment, "paid")
    await settle_at(merchant, before + 10)


async def rich(node, usdx):
    """Return another account that holds the token, so that its nonce does not hang on the first one's."""
    await usdx.send("transfer", node.accounts[1], 100 * ONE)
    await node.mine(8)
    return node.accounts[1]


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_reorg_above_a_paid_payment_changes_nothing(merchant, receiver, node, usdx, books, depth):
    before = await wallet(merchant)
    payment = await merchant.pay("ethereum", "USDX", "10")
    await usdx.send("transfer", payment["depositAddress"], 10 * ONE)
    await node.mine(5)
    await merchant.until(payment, "paid")
    await node.reorg(depth)
    await node.mine(2)
    witness = await merchant.pay("ethereum", "USDX", "1")
    await usdx.send("transfer", witness["depositAddress"], ONE)
    await node.mine(4)
    await merchant.until(witness, "paid")
    assert (await merchant.payment(payment))["status"] == "paid"
    assert receiver.events(payment["paymentId"]) == ["payment.detected", "payment.confirming", "payment.paid"]
    await settle_at(merchant, before + 11)
