"""The chain changes its mind: state, ledger and webhooks follow."""

from __future__ import annotations

import pytest

from tests.support.gateway import until

STATE_AT_DEPTH = {1: "detected", 2: "confirming", 5: "paid"}


async def wallet(merchant, coin):
    return float((await merchant.balance(coin)).get("available", 0))


async def until_available(merchant, coin, expected):
    async def reached():
        return await wallet(merchant, coin) == pytest.approx(expected)

    await until(reached)


@pytest.mark.parametrize("depth", [1, 2, 5])
async def test_a_transaction_that_is_dropped_is_taken_back_and_credited_once_when_another_block_has_it(
    merchant, network, usdx, books, depth
):
    before = await wallet(merchant, usdx)
    payment = await merchant.pay(usdx, "10")
    await network.mine(6)
    tx_id = await usdx.send(payment["depositAddress"], 10)
    await network.mine(depth)
    state = STATE_AT_DEPTH[depth]
    await merchant.until(payment, state)
    await until_available(merchant, usdx, before + (10 if state == "paid" else 0))
    signed = await network.signed(tx_id)
    await network.reorg(depth)
    gone = await merchant.until(payment, "failed" if state == "paid" else "pending")
    assert gone["receivedAmount"] == "0"
    await until_available(merchant, usdx, before)
    await network.send_signed(signed)
    await network.mine(4)
    again = await merchant.until(payment, "paid")
    assert again["txHash"] == tx_id
    await until_available(merchant, usdx, before + 10)


async def test_a_transfer_mined_again_at_another_log_index_is_credited_once(merchant, network, usdx, books):
    before = await wallet(merchant, usdx)
    payment = await merchant.pay(usdx, "10")
    await network.mine(2)
    tx_id = await usdx.send(payment["depositAddress"], 10, sender=await rich(network))
    await network.mine(4)
    await merchant.until(payment, "paid")
    signed = await network.signed(tx_id)
    await network.reorg(4)
    await merchant.until(payment, "failed")
    for _ in range(2):
        await usdx.send(network.stranger(), 1)
    await network.send_signed(signed)
    await network.mine(4)
    assert await network.logs_before(tx_id) == 2
    await merchant.until(payment, "paid")
    await until_available(merchant, usdx, before + 10)


async def rich(network):
    """Return another account that holds the token, so that its nonce does not hang on the first one's."""
    await network.usdx.send(network.accounts[1], 100)
    await network.mine(8)
    return network.accounts[1]


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_reorg_above_a_paid_payment_changes_nothing(merchant, receiver, network, usdx, books, depth):
    before = await wallet(merchant, usdx)
    payment = await merchant.pay(usdx, "10")
    await usdx.send(payment["depositAddress"], 10)
    await network.mine(5)
    await merchant.until(payment, "paid")
    await network.reorg(depth)
    await network.mine(2)
    witness = await merchant.pay(usdx, "1")
    await usdx.send(witness["depositAddress"], 1)
    await network.mine(4)
    await merchant.until(witness, "paid")
    assert (await merchant.payment(payment))["status"] == "paid"
    assert receiver.events(payment["paymentId"]) == ["payment.detected", "payment.confirming", "payment.paid"]
    await until_available(merchant, usdx, before + 11)
