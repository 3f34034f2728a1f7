"""What we send and what we receive, where they are the same transfer."""

from __future__ import annotations

import pytest

from cambist.services.accounting.ledger import PLATFORM, Account, Purpose, lock_balances
from tests.support.forgetful import FINALITY_LAG, forgetful_chain
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        yield treasury
        await treasury.check_books()


async def deposits(treasury) -> list[tuple[str, int, str]]:
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT a.purpose, d.units, d.status FROM deposits d JOIN addresses a ON a.id = d.address_pk"
            " WHERE d.token = 'USDX' OR a.purpose = 'gas' ORDER BY d.id"
        )
        return [(row.purpose, int(row.units), row.status) for row in rows]


async def test_a_payout_to_another_merchants_address_is_a_payout_and_a_deposit(treasury):
    await treasury.open()
    other, _ = await treasury.new_merchant("mer_2")
    await treasury.receive("USDX", 5_000_000)
    theirs = await treasury.deposit_address(other)
    payout_id = await treasury.pay_out("USDX", 3_000_000, theirs)
    await treasury.work(treasury.engine())
    await treasury.mine(5)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert (await treasury.balance("USDX")).available == 2_000_000
    assert (await treasury.balance("USDX", other)).held == 3_000_000
    assert ("payment", 3_000_000, "confirmed") in await deposits(treasury)


async def test_a_payout_to_an_address_of_the_merchants_own_is_a_deposit_as_from_anybody(treasury):
    await treasury.open()
    await treasury.receive("USDX", 5_000_000)
    await treasury.pay_out("USDX", 3_000_000, await treasury.deposit_address())
    await treasury.work(treasury.engine())
    await treasury.mine(5)
    balance = await treasury.balance("USDX")
    assert (balance.available, balance.held) == (2_000_000, 3_000_000)
    assert (await deposits(treasury))[1:] == [("payment", 3_000_000, "confirmed")]


async def test_collections_and_gas_are_no_deposits(treasury):
    await treasury.open()
    await treasury.receive("USDX", 50_000_000)
    await treasury.pay_out("USDX", 50_000_000, await treasury.stranger(1))
    await treasury.work(treasury.engine())
    await treasury.mine(5)
    assert await deposits(treasury) == [("payment", 50_000_000, "confirmed")]


async def test_money_sent_straight_to_the_main_wallet_is_the_merchants_and_waits_for_a_decision(treasury):
    await treasury.open()
    treasury.chain.transfer(treasury.token("USDX"), treasury.wallet.address, 7_000_000)
    await treasury.mine(5)
    assert (await treasury.balance("USDX")).held == 7_000_000
    assert ("wallet", 7_000_000, "confirmed") in await deposits(treasury)


async def test_what_the_gas_station_held_before_the_books_began_is_posted_once(treasury):
    treasury.chain.transfer(treasury.info.native, treasury.station, 10**18)
    treasury.chain.mine(3)
    await treasury.poll()
    await treasury.mine(3)
    async with treasury.db.transaction() as conn:
        custody = Account(PLATFORM, treasury.asset("MEM"), Purpose.CUSTODY_GAS)
        assert -(await lock_balances(conn, "live", [custody]))[custody] == 10**18
    treasury.chain.transfer(treasury.info.native, treasury.station, 5)
    await treasury.mine(5)
    async with treasury.db.transaction() as conn:
        assert -(await lock_balances(conn, "live", [custody]))[custody] == 10**18 + 5


async def test_what_reached_the_gas_station_before_its_books_could_begin_is_posted_once(db, clock, ids, tmp_path):
    """Nodes tell a balance only where it is final: by then the transfer that brought it has been read."""
    async with Treasury(db, clock, ids, tmp_path, chain=forgetful_chain()) as treasury:
        await treasury.mine()
        treasury.chain.transfer(treasury.info.native, treasury.station, 10**18)
        await treasury.mine(FINALITY_LAG + 5)
        await treasury.mine()
        async with treasury.db.transaction() as conn:
            custody = Account(PLATFORM, treasury.asset("MEM"), Purpose.CUSTODY_GAS)
            assert -(await lock_balances(conn, "live", [custody]))[custody] == 10**18
            begun = await conn.exec_driver_sql("SELECT count(*) FROM ledger_transactions WHERE kind = 'opening'")
            assert begun.scalar_one() == 1
        assert await deposits(treasury) == [("gas", 10**18, "confirmed")]


async def test_a_deposit_that_was_collected_and_spent_and_then_vanished_is_owed(treasury):
    await treasury.open()
    address = await treasury.deposit_address()
    before = treasury.chain.height
    treasury.chain.transfer(treasury.token("USDX"), address, 5_000_000)
    await treasury.mine(4)
    await treasury.release("USDX", 5_000_000, treasury.merchant)
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql("UPDATE deposits SET available_units = units WHERE token = 'USDX'")
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", 5_000_000, to_address)
    engine = treasury.engine()
    await treasury.work(engine)
    treasury.chain.reorg(treasury.chain.height - before)
    await treasury.poll()
    await engine.tick()
    balance = await treasury.balance("USDX")
    # The payout is under way again, of money that is not there any more: owed until it comes back.
    assert (balance.available, balance.pending, balance.receivable) == (0, 5_000_000, -5_000_000)
    assert (await treasury.payout(payout_id)).status == "broadcast"
