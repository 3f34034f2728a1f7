"""The worker dies at any moment, again and again: nothing is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
import os
from random import Random

import pytest
from web3 import Web3

ONE = 10**6
FULL = os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full"
PAYMENTS, KILLS = (200, 50) if FULL else (24, 4)
SEED = int(os.environ.get("CAMBIST_TEST_SEED", "20261121"))
BALANCE_OF = [
    {
        "type": "function",
        "name": "balanceOf",
        "stateMutability": "view",
        "inputs": [{"type": "address", "name": "owner"}],
        "outputs": [{"type": "uint256", "name": ""}],
    }
]


@pytest.mark.campaign
@pytest.mark.timeout(1800)
async def test_killed_at_random_moments_of_a_stream_of_payments(
    merchant, receiver, gateway, node, usdx, story_db, books
):
    random = Random(SEED)
    payments: list[dict] = []
    paying = asyncio.Event()

    async def customers():
        for number in range(PAYMENTS):
            payment = await merchant.pay("ethereum", "USDX", str(number + 1))
            payments.append(payment)
            await usdx.send("transfer", payment["depositAddress"], (number + 1) * ONE)
            await node.mine()
            await asyncio.sleep(random.uniform(0.01, 0.1))
        paying.set()

    async def killer():
        kills = 0
        while kills < KILLS:
            await asyncio.sleep(random.uniform(0.05, 0.8 if FULL else 0.5))
            if gateway.workers():
                await gateway.kill_worker()
                kills += 1
            if paying.is_set():
                await node.mine()
        return kills

    _, kills = await asyncio.gather(customers(), killer())
    assert kills == KILLS
    await node.mine(6)
    for payment in payments:
        found = await merchant.until(payment, "paid", seconds=90)
        assert found["receivedAmount"] == payment["expectedAmount"]
        for event in ("payment.detected", "payment.confirming", "payment.paid"):
            await receiver.wait(payment["paymentId"], event, seconds=60)
    await check_against_the_chain(node, usdx, story_db)


async def check_against_the_chain(node, usdx, db):
    """Compare custody with what an independent client reads from the node, address by address in sum."""
    async with db.transaction() as conn:
        addresses = [
            row.address for row in await conn.exec_driver_sql("SELECT address FROM addresses WHERE purpose = 'payment'")
        ]
        custody = -await total(conn, usdx, "custody_deposits")
        credited = await total(conn, usdx, "available")

    def on_chain() -> int:
        token = Web3(Web3.HTTPProvider(node.url)).eth.contract(usdx.address, abi=BALANCE_OF)
        return sum(token.functions.balanceOf(address).call() for address in addresses)

    held = await asyncio.to_thread(on_chain)
    assert custody == held
    assert credited == sum(range(1, PAYMENTS + 1)) * ONE


async def total(conn, usdx, purpose):
    found = await conn.exec_driver_sql(
        "SELECT coalesce(sum(balance), 0) FROM ledger_accounts WHERE purpose = $1 AND asset = $2",
        (purpose, f"ethereum/{usdx.address}"),
    )
    return int(found.scalar_one())
