"""The worker dies at any moment, again and again: nothing is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
import os
from random import Random

import pytest

FULL = os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full"
PAYMENTS, KILLS = (200, 50) if FULL else (24, 4)
SEED = int(os.environ.get("CAMBIST_TEST_SEED", "20261121"))


@pytest.mark.campaign
@pytest.mark.timeout(1800)
async def test_killed_at_random_moments_of_a_stream_of_payments(
    merchant, receiver, gateway, network, usdx, story_db, books
):
    random = Random(SEED)
    payments: list[dict] = []
    paying = asyncio.Event()

    async def customers():
        for number in range(PAYMENTS):
            payment = await merchant.pay(usdx, number + 1)
            payments.append(payment)
            await usdx.send(payment["depositAddress"], number + 1)
            await network.mine()
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
                await network.mine()
        return kills

    _, kills = await asyncio.gather(customers(), killer())
    assert kills == KILLS
    await network.mine(6)
    for payment in payments:
        found = await merchant.until(payment, "paid", seconds=180)
        assert found["receivedAmount"] == payment["expectedAmount"]
        for event in ("payment.detected", "payment.confirming", "payment.paid"):
            await receiver.wait(payment["paymentId"], event, seconds=180)
    await check_against_the_chain(network.onlooker, usdx, story_db, merchant)


async def check_against_the_chain(onlooker, usdx, db, merchant):
    """Compare custody with what an independent client reads from the node, address by address in sum."""
    async with db.transaction() as conn:
        addresses = await conn.exec_driver_sql(
            "SELECT a.address FROM addresses a JOIN merchants m ON m.id = a.merchant_pk"
            " WHERE a.purpose = 'payment' AND m.merchant_id = $1",
            (merchant.merchant_id,),
        )
        custody = -await total(conn, usdx, "custody_deposits", merchant)
        credited = await total(conn, usdx, "available", merchant)
        assert custody == sum([await onlooker.units(address, usdx) for address in addresses.scalars()])
    assert credited == usdx.units(sum(range(1, PAYMENTS + 1)))


async def total(conn, coin, purpose, merchant):
    found = await conn.exec_driver_sql(
        "SELECT coalesce(sum(a.balance), 0) FROM ledger_accounts a JOIN merchants m ON m.id = a.merchant_pk"
        " WHERE a.purpose = $1 AND a.asset = $2 AND m.merchant_id = $3",
        (purpose, coin.asset, merchant.merchant_id),
    )
    return int(found.scalar_one())
