"""What TRON does and other chains do not: it says what is final, transactions expire, and a stake pays for them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from cambist_tron.writing import TIP_TTL_S
from cambist_tron_node import Fault
from tests.support.gateway import until

pytestmark = pytest.mark.parametrize("network", ["tron"], indirect=True, scope="module")

STAKE_TRX = 200_000
LIFETIME_BLOCKS = 110
BLOCK_S = 3
SOLID_BEHIND = 6


@pytest.fixture(scope="module")
def network_options():
    """Have so many representatives that a block becomes solid later than a payment has its confirmations."""
    return {"representatives": 9}


@pytest.fixture(scope="module")
async def ways(network):
    """Open two ways to the node, and no other."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(network.endpoint()) for _ in range(2)]


@pytest.fixture(scope="module")
def has_another():
    return False


@pytest.fixture(scope="module")
def tables(network, ways):
    return network.settings(*(way.url for way in ways), request_timeout_ms=1000)


@pytest.fixture(scope="module")
def more_settings():
    return ["[outbound]", "rebroadcast_s = 1.0", "collect_interval_ms = 500"]


@pytest.fixture(scope="module", autouse=True)
async def station(station, network, native):
    """Give the gas station what it is to stake, too: the worker looks every half a minute what is there."""
    await native.send(station, 2 * STAKE_TRX)
    await network.mine(SOLID_BEHIND + 1)
    return station


async def test_a_payment_is_not_paid_before_its_block_is_solid(merchant, network, usdx):
    payment = await merchant.pay(usdx, 10)
    await usdx.send(payment["depositAddress"], 10)
    await network.mine(SOLID_BEHIND)
    assert (await merchant.until(payment, "confirming"))["receivedAmount"] == "10"
    await asyncio.sleep(1)
    assert (await merchant.payment(payment))["status"] == "confirming"
    await network.mine()
    await merchant.until(payment, "paid")


async def test_a_second_node_takes_over_from_one_that_hangs(merchant, network, usdx, ways):
    ways[0].faults.add(Fault.TIMEOUT)
    try:
        payment = await merchant.pay(usdx, 5)
        await usdx.send(payment["depositAddress"], 5)
        await network.mine(SOLID_BEHIND + 1)
        await merchant.until(payment, "paid", seconds=180)
    finally:
        ways[0].clear()


@pytest.fixture
async def quiet(merchant, network, usdx, station, ways):
    """Have nodes without faults, money in the main wallet, and nothing under way."""
    for way in ways:
        way.clear()
    payment = await merchant.pay(usdx, 100)
    await usdx.send(payment["depositAddress"], 100)
    await network.mine(SOLID_BEHIND + 1)
    await merchant.until(payment, "paid")
    await finished(network, merchant, await merchant.pay_out(usdx, 1, network.stranger()))


async def finished(network, merchant, payout) -> dict:
    """Make blocks until a payout is completed."""
    path = f"/api/merchant/wallet/payouts/{payout['payoutId']}"

    async def poll() -> dict | None:
        await network.mine(2)
        found: dict = (await merchant.get(path))["payout"]
        assert found["status"] != "failed", found
        return found if found["status"] == "completed" else None

    return await until(poll)


async def signed(db, payout) -> int:
    """Return how many transactions have been signed for a payout."""
    return len(await signed_ids(db, payout))


async def signed_ids(db, payout) -> list[str]:
    async with db.transaction() as conn:
        found = await conn.exec_driver_sql(
            "SELECT t.tx_id FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
            " JOIN outbound_intents i ON i.id = s.intent_pk WHERE i.reference = 'payout:' || $1",
            (payout["payoutId"],),
        )
        return list(found.scalars())


async def blocks_to_live(network, db, payout) -> int:
    """Return how many blocks it takes until the one transaction of a payout expires."""
    async with db.transaction() as conn:
        found = await conn.exec_driver_sql(
            "SELECT t.valid_until FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
            " JOIN outbound_intents i ON i.id = s.intent_pk WHERE i.reference = 'payout:' || $1",
            (payout["payoutId"],),
        )
        valid_until_s: int = found.scalar_one()
    head = await asyncio.to_thread(network.onlooker.ask, "wallet/getnowblock")
    return (valid_until_s - head["block_header"]["raw_data"]["timestamp"] // 1000) // BLOCK_S


async def test_a_payout_that_all_nodes_drop_silently_is_sent_again_once_it_has_expired(
    quiet, merchant, network, usdx, ways, story_db, gateway
):
    to_address = network.stranger()
    for way in ways:
        way.faults.add(Fault.FORGETFUL)
    payout = await merchant.pay_out(usdx, 5, to_address)

    async def is_signed() -> bool:
        return await signed(story_db, payout) == 1

    await until(is_signed)
    await network.mine(await blocks_to_live(network, story_db, payout) - 20)
    # Here time passes in leaps, and what is signed at the end of one must not date from before it.
    await asyncio.sleep(TIP_TTL_S + 1)
    assert await is_signed(), "it may still be mined"
    await network.mine(30 + SOLID_BEHIND)
    for way in ways:
        way.clear()
    await finished(network, merchant, payout)
    assert await signed(story_db, payout) == 2
    assert await network.onlooker.holds(to_address, usdx, 5)
    await network.mine(SOLID_BEHIND + 1)
    await gateway.reconcile()


async def test_a_payout_that_nodes_deny_until_it_has_expired_is_paid_once(
    quiet, merchant, network, usdx, ways, story_db, gateway
):
    to_address = network.stranger()
    payout = await merchant.pay_out(usdx, 5, to_address)

    async def waiting() -> list[str]:
        return [tx_id for tx_id in await signed_ids(story_db, payout) if tx_id in network.node.pending()]

    (tx_id,) = await until(waiting)
    for way in ways:
        way.hidden.add(tx_id)
    for _ in range(6):
        await network.mine(LIFETIME_BLOCKS // 4)
        await asyncio.sleep(0.5)
    assert await signed(story_db, payout) == 1
    for way in ways:
        way.clear()
    assert (await finished(network, merchant, payout))["txHash"] == tx_id
    assert await signed(story_db, payout) == 1
    assert await network.onlooker.holds(to_address, usdx, 5)
    await gateway.reconcile()


async def test_the_gas_stations_stake_is_lent_for_collections_and_comes_back(
    quiet, merchant, network, native, usdx, station, gateway, story_db
):
    async def is_seen() -> bool:
        await network.mine(2)
        async with story_db.transaction() as conn:
            found = await conn.exec_driver_sql("SELECT balance FROM gas_stations WHERE chain = $1", (native.chain,))
            return (found.scalar_one_or_none() or 0) >= native.units(2 * STAKE_TRX)

    async def is_staked() -> bool:
        await network.mine(2)
        return await native_balance() < native.units(STAKE_TRX + network.station_float)

    async def native_balance() -> int:
        return await network.onlooker.units(station, native)

    await until(is_seen)
    code, printed = await gateway.run("stake", *gateway.options, usdx.chain, "stake", str(STAKE_TRX))
    assert code == 0, printed
    await until(is_staked)
    payments = [await merchant.pay(usdx, 200) for _ in range(3)]
    for payment in payments:
        await usdx.send(payment["depositAddress"], 200)
    lent = 0

    async def collected() -> bool:
        nonlocal lent
        await network.mine(2)
        lent = max(lent, await network.onlooker.lent(station))
        left = [await network.onlooker.units(payment["depositAddress"], usdx) for payment in payments]
        return sum(left) == 0 < lent and await network.onlooker.lent(station) == 0

    await until(collected)
    wallet = await merchant.wallet(network.family)
    assert await network.onlooker.units(wallet, usdx) >= usdx.units(600)
    for payment in payments:
        # What made the address known to the network stays there, and nothing was burned.
        assert await network.onlooker.units(payment["depositAddress"], native) == 1
        assert await network.onlooker.fees([payment["depositAddress"]]) == 0

    async def every_fee_is_booked() -> bool:
        await network.mine(2)
        async with story_db.transaction() as conn:
            ours = (await conn.exec_driver_sql("SELECT address FROM addresses WHERE mode = 'live'")).scalars().all()
            booked = await conn.exec_driver_sql(
                "SELECT coalesce(sum(-balance), 0) FROM ledger_accounts WHERE purpose = 'gas_spent' AND asset = $1",
                (native.asset,),
            )
            return int(booked.scalar_one()) == await network.onlooker.fees(ours) > 0

    await until(every_fee_is_booked)
    await network.mine(SOLID_BEHIND + 1)
    await gateway.reconcile()
    _, shown = await gateway.run("stake", *gateway.options, usdx.chain, "show")
    assert f"stake {STAKE_TRX} {native.symbol}: done" in shown
