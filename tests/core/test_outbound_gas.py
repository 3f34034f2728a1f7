"""Fees are the platform's: they never come out of a merchant's coin, so that all of it can always leave."""

from __future__ import annotations

import pytest

from cambist.services.accounting import ledger
from cambist.testing.memory.blocks import Output
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

COIN = 10**18


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        yield treasury
        await treasury.check_books()


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
