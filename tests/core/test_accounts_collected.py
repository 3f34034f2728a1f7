"""Accounts on a chain where money really moves: read from the start, collected again and again, paid by the gateway."""

import asyncio

import pytest

from cambist.testing.memory import MemoryChain
from tests.support.accounts import live_account
from tests.support.payment_env import registry
from tests.support.treasury import Treasury


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        treasury.chain.fees.base_price = 10**9
        yield treasury
        await treasury.check_books()


async def address_of(treasury, external_id="user-1", merchant=None, project=None):
    account = await live_account(
        treasury,
        external_id,
        ["memory"],
        merchant=merchant or treasury.merchant,
        project=project or treasury.project,
    )
    return account.addresses[0].address


async def deposits(treasury):
    async with treasury.db.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT d.merchant_pk, d.units, d.status, d.matches FROM deposits d WHERE d.account_pk IS NOT NULL"
            " ORDER BY d.id"
        )
        return [(row.merchant_pk, int(row.units), row.status, row.matches) for row in rows]


async def receive(treasury, address, symbol, units):
    treasury.chain.transfer(treasury.token(symbol), address, units)
    await treasury.mine(1 + treasury.info.confirmations)


@pytest.mark.slow
@pytest.mark.parametrize("symbol", ["USDX", "MEM"])
async def test_an_address_is_collected_again_and_again(treasury, symbol):
    await treasury.open()
    units = 50 * 10 ** treasury.token(symbol).decimals
    address = await address_of(treasury)
    for number in range(1, 4):
        await receive(treasury, address, symbol, units)
        assert (await treasury.balance(symbol)).available == number * units
        await treasury.work(treasury.engine(), rounds=25, until="enough")
        assert await treasury.on_chain(treasury.wallet.address, symbol) == number * units
        assert (await treasury.on_chain(address, symbol) == 0) or symbol == treasury.info.native.symbol
    # Neither what was brought away nor the gas for that is a deposit.
    assert await deposits(treasury) == [(treasury.merchant, units, "confirmed", True)] * 3


async def test_two_deposits_before_a_collection_go_together(treasury):
    await treasury.open()
    address = await address_of(treasury)
    await receive(treasury, address, "USDX", 30_000_000)
    await receive(treasury, address, "USDX", 20_000_000)
    await treasury.work(treasury.engine(), rounds=25, until="enough")
    assert await treasury.on_chain(treasury.wallet.address, "USDX") == 50_000_000


async def test_a_payout_fetches_what_lies_on_an_account(treasury):
    treasury.prices.board.clear()
    await treasury.open()
    address = await address_of(treasury)
    await receive(treasury, address, "USDX", 3_000)
    await treasury.pay_out("USDX", 2_000, await treasury.stranger(1))
    await treasury.work(treasury.engine())
    assert await treasury.on_chain(address, "USDX") == 0
    assert (await treasury.balance("USDX")).available == 1_000


async def test_a_payout_to_an_account_of_another_merchant_is_a_payout_and_a_deposit(treasury):
    await treasury.open()
    other, shop = await treasury.new_merchant("mer_2")
    source, to_address = await address_of(treasury), await address_of(treasury, "user-2", other, shop)
    await receive(treasury, source, "USDX", 50_000_000)
    await treasury.pay_out("USDX", 20_000_000, to_address)
    await treasury.work(treasury.engine())
    await treasury.mine(treasury.info.confirmations)
    assert (await treasury.balance("USDX")).available == 30_000_000
    assert (await treasury.balance("USDX", other)).available == 20_000_000
    assert await deposits(treasury) == [
        (treasury.merchant, 50_000_000, "confirmed", True),
        (other, 20_000_000, "confirmed", True),
    ]


async def test_a_first_look_reads_from_where_the_oldest_account_was_made(db, clock, ids, tmp_path):
    chain = MemoryChain(registry().chains["memory"], genesis_time=int(clock.now().timestamp()) - 600)
    async with Treasury(db, clock, ids, tmp_path, chain=chain) as treasury:
        chain.mine(50)
        clock.advance(120)
        address = await address_of(treasury)
        clock.advance(60)
        chain.transfer(treasury.token("USDX"), address, 7_000_000)
        chain.mine(30, time=int(clock.now().timestamp()))
        await treasury.poll()
        assert await deposits(treasury) == [(treasury.merchant, 7_000_000, "confirmed", True)]
        await treasury.check_books()


async def test_two_workers_and_a_repeated_block_credit_once(treasury):
    await treasury.open()
    address = await address_of(treasury)
    treasury.chain.transfer(treasury.token("USDX"), address, 7_000_000)
    treasury.chain.mine(1 + treasury.info.confirmations)
    await asyncio.gather(*(treasury.watcher.poll() for _ in range(5)))
    await treasury.poll()
    assert (await treasury.balance("USDX")).available == 7_000_000
    assert len(await deposits(treasury)) == 1
