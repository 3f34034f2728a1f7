"""Fees are the platform's: they never come out of a merchant's coin, so that all of it can always leave."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.accounting import ledger
from cambist.services.sending import store
from cambist.services.sending.engine import Engine
from cambist.services.sending.gas.funding import ask_for_gas, what_is_left
from cambist.services.sending.rows import OwnPath
from cambist.services.sending.sweeps import sweep_store
from cambist.testing.memory.blocks import Output
from tests.support.payment_env import registry
from tests.support.reserving import ReservingChain
from tests.support.treasury import Treasury
from tests.support.waiting import waits_for_a_lock

pytestmark = pytest.mark.slow

COIN, USDX = 10**18, 10**6


async def test_a_wallet_of_native_coin_is_paid_out_in_parts_to_the_last_unit(treasury):
    await treasury.receive("MEM", 10 * COIN)
    to_address, engine = await treasury.stranger(1), treasury.engine()
    for part in (4, 3, 3):
        await treasury.pay_out("MEM", part * COIN, to_address)
        await treasury.work(engine)
        await treasury.check_books()
    assert await treasury.on_chain(to_address, "MEM") == 10 * COIN
    assert (await treasury.balance("MEM")).available == 0


async def test_payouts_of_native_coin_that_are_asked_for_at_once_all_arrive(treasury):
    await treasury.receive("MEM", 10 * COIN)
    to_addresses = [await treasury.stranger(number) for number in range(10)]
    await treasury.pay_out_many("MEM", [(to_address, COIN) for to_address in to_addresses])
    await treasury.work(treasury.engine())
    assert [await treasury.on_chain(to_address, "MEM") for to_address in to_addresses] == [COIN] * 10


async def test_a_deposit_that_is_not_confirmed_yet_pays_no_fee_for_the_one_before(treasury):
    address = await treasury.receive("MEM", 10 * COIN)
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    treasury.chain.transfer(treasury.info.native, address, COIN)
    await treasury.mine()
    await treasury.pay_out("MEM", 10 * COIN, to_address)
    await treasury.work(engine)
    await treasury.mine(1 + treasury.info.confirmations)
    await treasury.release("MEM", COIN, treasury.merchant)
    await treasury.pay_out("MEM", COIN, to_address)
    await treasury.work(engine)
    assert await treasury.on_chain(to_address, "MEM") == 11 * COIN
    assert (await treasury.balance("MEM")).available == 0


async def test_what_is_kept_for_fees_pays_nobody_while_the_merchants_own_coin_is_to_be_collected(treasury):
    """Too little to be collected for its own sake: the platform would lend it out again and again."""
    units = 5 * 10**15
    await treasury.receive("USDX", 10**6)
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    kept = await treasury.on_chain(treasury.wallet.address, "MEM")
    assert kept > 3 * units
    deposit = await treasury.receive("MEM", 2 * units)
    await treasury.work(engine)
    for left in (units, 0):
        await treasury.pay_out("MEM", units, to_address)
        await treasury.work(engine)
        assert await treasury.on_chain(deposit, "MEM") < units
        assert await treasury.on_chain(treasury.wallet.address, "MEM") > left + kept // 2
        async with treasury.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT -balance FROM ledger_accounts WHERE purpose = 'custody_wallet' AND asset = $1",
                (treasury.asset("MEM"),),
            )
            assert rows.scalar_one() == left
    assert await treasury.on_chain(to_address, "MEM") == 2 * units


async def test_a_fee_that_was_paid_out_of_a_merchants_coin_is_replaced(treasury):
    await treasury.receive("MEM", 10 * COIN)
    to_address, engine = await treasury.stranger(1), treasury.engine()
    await treasury.pay_out("MEM", 4 * COIN, to_address)
    await treasury.work(engine)
    eaten = await treasury.on_chain(treasury.wallet.address, "MEM") - 6 * COIN + 1_000
    await spend_on_fees(treasury, eaten)
    await treasury.pay_out("MEM", 6 * COIN, to_address)
    await treasury.work(engine)
    assert await treasury.on_chain(to_address, "MEM") == 10 * COIN


@pytest.mark.parametrize("symbol", ["USDX", "MEM"])
async def test_what_outbids_gets_its_fee_beside_all_that_stands_behind_it(treasury, symbol):
    await treasury.receive(symbol, 16 * COIN)
    engine, fees = treasury.engine(), treasury.chain.fees
    to_addresses = [await treasury.stranger(number) for number in range(16)]
    payouts = await treasury.pay_out_many(symbol, [(to_address, COIN) for to_address in to_addresses])
    while (await treasury.payout(payouts[-1])).tx_id is None:
        await engine.tick()
        treasury.chain.faults.mining_paused = (await treasury.payout(payouts[0])).tx_id is not None
        await treasury.mine()
    # For a while prices are so high that the first is replaced, and nodes drop what pays least.
    first = (await treasury.payout(payouts[0])).tx_id
    fees.base_price *= 6
    treasury.clock.advance(treasury.settings.stuck_after_s + 1)
    await engine.tick()
    treasury.chain.forget(first)
    fees.base_price //= 6
    treasury.chain.faults.mining_paused = False
    await treasury.work(engine)
    assert [await treasury.on_chain(to_address, symbol) for to_address in to_addresses] == [COIN] * 16


async def test_what_leaves_a_wallet_in_several_tokens_is_all_counted_beside_its_gas(treasury):
    engine, sent = treasury.engine(), {"USDX": 3 * USDX, "DAIX": 2 * COIN, "MEM": COIN}
    to_address = await treasury.stranger(1)
    for symbol, units in sent.items():
        await treasury.receive(symbol, 2 * units)
        await treasury.pay_out(symbol, 1, to_address)
    await treasury.work(engine)
    treasury.chain.faults.mining_paused = True
    payouts = [await treasury.pay_out(symbol, units, to_address) for symbol, units in sent.items()]
    await engine.tick()
    assert {(await treasury.payout(one)).status for one in payouts} == {"broadcast"}
    async with treasury.db.autocommit() as conn:
        wallet = await sweep_store.own_path(conn, treasury.wallet.pk)
        outflow = (await what_is_left(conn, engine.context, wallet, treasury.clock.now())).outflow
        assert outflow == await store.pending_outflow(conn, engine.context.chain_scope, wallet.pk)
    assert (outflow.slots, outflow.coin) == (3, COIN)
    for symbol in ("USDX", "DAIX"):
        assert outflow.units[treasury.token(symbol).contract] == sent[symbol]
    treasury.chain.faults.mining_paused = False
    await treasury.work(engine)


async def test_two_who_find_no_gas_on_its_way_at_once_have_it_brought_once(treasury):
    await treasury.receive("USDX", USDX)
    engine = await treasury.ready()
    async with treasury.db.transaction() as conn:
        wallet = await sweep_store.own_path(conn, treasury.wallet.pk)
    async with treasury.db.transaction() as conn:
        assert await ask_for_gas(conn, engine.context, wallet, COIN // 100, treasury.clock.now())
        twin = asyncio.create_task(_ask(engine, wallet))
        await waits_for_a_lock(conn, twin)
        assert not twin.done(), "it waits for the one who asks"
    assert await twin
    async with treasury.db.transaction() as conn:
        asked = await conn.exec_driver_sql(
            "SELECT units FROM outbound_intents WHERE kind = 'top_up' AND state = 'waiting'"
        )
        assert asked.scalars().all() == [COIN // 100]
        # Whoever finds some on its way needs no turn.
        await conn.exec_driver_sql("SELECT FROM addresses WHERE id = $1 FOR UPDATE", (wallet.pk,))
        late = asyncio.create_task(_ask(engine, wallet))
        await waits_for_a_lock(conn, late)
        assert late.done()
    assert await late
    await treasury.work(engine)


async def _ask(engine: Engine, wallet: OwnPath) -> bool:
    context = engine.context
    async with context.db.transaction() as conn:
        return await ask_for_gas(conn, context, wallet, COIN // 100, context.clock.now())


async def spend_on_fees(treasury: Treasury, units: int) -> None:
    """Have so much be gone, and be booked as fees: as if transactions had to be replaced by much dearer ones."""
    wallet = treasury.wallet.address
    gone = Output(contract=None, recipient=treasury.chain.faucet, amount=units)
    treasury.chain.submit([gone], sender=wallet, sequence=treasury.chain.accounts.sequence(wallet))
    await treasury.mine(1 + treasury.info.confirmations)
    spent = ledger.Account(ledger.PLATFORM, treasury.asset("MEM"), ledger.Purpose.GAS_SPENT)
    float_ = ledger.Account(treasury.merchant, treasury.asset("MEM"), ledger.Purpose.FLOAT_WALLET)
    movement = ledger.Movement(spent, float_, units)
    async with treasury.db.transaction() as conn:
        await ledger.post(conn, "live", [ledger.Posting(mode="live", kind="t", reference="t", movements=[movement])])


async def gas_given(treasury: Treasury) -> tuple[int, int]:
    """Return how often the gas station was asked for gas, and for how much."""
    async with treasury.db.autocommit() as conn:
        asked = await conn.exec_driver_sql(
            "SELECT count(*) AS times, coalesce(sum(units), 0) AS units FROM outbound_intents WHERE kind = 'top_up'"
        )
        row = asked.one()
    return row.times, int(row.units)


async def test_the_gas_station_does_not_pay_what_a_reorg_has_taken_from_a_payout(treasury):
    engine, before = treasury.engine(), treasury.chain.height
    await treasury.receive("MEM", 50 * COIN)
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql("UPDATE deposits SET available_units = units WHERE merchant_pk IS NOT NULL")
    payout_id = await treasury.pay_out("MEM", 40 * COIN, await treasury.stranger(1))
    while (await treasury.payout(payout_id)).status != "broadcast":
        await engine.tick()
        await treasury.mine()
        await engine.tick()
    treasury.chain.reorg(treasury.chain.height - before)
    await treasury.poll()
    for _ in range(6):
        await treasury.work(engine, rounds=3, until="enough")
        treasury.clock.advance(61)
    _, units = await gas_given(treasury)
    assert units < COIN, "gas is for fees"
    assert treasury.alerts["stuck"] > 0
    # Once there is enough again, it is paid, once.
    await treasury.receive("MEM", 50 * COIN)
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert (await gas_given(treasury))[1] < COIN


async def test_a_collection_whose_coin_a_reorg_has_taken_keeps_nothing_else_from_being_collected(treasury):
    """Nor does the gas station send the address gas for ever, none of which is left for fees."""
    engine, address = treasury.engine(), await treasury.deposit_address()
    before = treasury.chain.height
    treasury.chain.transfer(treasury.token("MEM"), address, 50 * COIN)
    await treasury.mine(1 + treasury.info.confirmations)
    while ("collection", "sending", None) not in await treasury.open_intents():
        await engine.tick()
        await treasury.mine()
        await engine.tick()
    treasury.chain.reorg(treasury.chain.height - before)
    await treasury.poll()
    treasury.chain.transfer(treasury.token("USDX"), address, 100 * USDX)
    await treasury.mine(1 + treasury.info.confirmations)
    for _ in range(8):
        await treasury.work(engine, rounds=6, until="enough")
        treasury.clock.advance(61)
    assert await treasury.on_chain(address, "USDX") == 0
    assert await treasury.on_chain(treasury.wallet.address, "USDX") == 100 * USDX
    assert (await gas_given(treasury))[0] <= 4
    assert await treasury.is_idle()


async def test_of_several_collections_whose_coin_a_reorg_has_taken_each_is_given_up(treasury):
    """Each is the first of its address once: what waits behind it lacks its coin as well, and asks for none."""
    engine, address = treasury.engine(), await treasury.deposit_address()
    before = treasury.chain.height
    for number in (1, 2):
        treasury.chain.transfer(treasury.token("MEM"), address, 50 * COIN)
        await treasury.mine(1 + treasury.info.confirmations)
        for _ in range(12):
            await engine.tick()
            if (await treasury.open_intents()).count(("collection", "sending", None)) == number:
                break
            await treasury.mine()
        treasury.chain.forget()
    assert (await treasury.open_intents()).count(("collection", "sending", None)) == 2
    treasury.chain.reorg(treasury.chain.height - before)
    await treasury.poll()
    treasury.chain.transfer(treasury.token("USDX"), address, 100 * USDX)
    await treasury.mine(1 + treasury.info.confirmations)
    for _ in range(10):
        await treasury.work(engine, rounds=6, until="enough")
        treasury.clock.advance(61)
    assert await treasury.on_chain(treasury.wallet.address, "USDX") == 100 * USDX
    assert (await gas_given(treasury))[0] <= 6
    assert await treasury.is_idle()


async def test_a_reserve_that_stands_is_brought_once_however_much_is_sent(db, clock, ids, tmp_path):
    """An address that keeps coin for ever needs it once, and it is no part of what lets the price be higher."""
    known = registry()
    chain = ReservingChain(known.chains["memory"])
    async with Treasury(db, clock, ids, tmp_path, chain=chain, chains=known) as treasury:
        await treasury.open(station=100 * COIN)
        await treasury.receive("MEM", 4 * COIN)
        to_addresses = [await treasury.stranger(number) for number in range(4)]
        await treasury.pay_out_many("MEM", [(to_address, COIN) for to_address in to_addresses])
        await treasury.work(treasury.engine())
        assert [await treasury.on_chain(to_address, "MEM") for to_address in to_addresses] == [COIN] * 4
        count, units = await gas_given(treasury)
        assert (count, int(units) // COIN) == (2, 20), "one for the deposit's address, one for the wallet"
        await treasury.check_books()


async def test_gas_is_no_less_than_arrives(db, clock, ids, tmp_path):
    """An address that holds tokens alone may be one that so little coin does not reach."""
    known = registry({"memory": {"chains": {"memory": {"least_units": COIN // 2}}}})
    async with Treasury(db, clock, ids, tmp_path, chains=known) as treasury:
        await treasury.open()
        await treasury.receive("USDX", 100 * USDX)
        to_address = await treasury.stranger(1)
        await treasury.pay_out("USDX", 50 * USDX, to_address)
        await treasury.work(treasury.engine())
        assert await treasury.on_chain(to_address, "USDX") == 50 * USDX
        await treasury.check_books()
