"""The engine on a chain in memory: money that is asked to go goes once, and the books agree with the chain."""

from __future__ import annotations


async def test_a_payout_waits_for_its_collection_and_its_gas_and_arrives_once(treasury):
    await treasury.receive("USDX", 50_000_000)
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", 30_000_000, to_address)
    assert (await treasury.balance("USDX")).pending == 30_000_000
    await treasury.work(treasury.engine())
    assert await treasury.on_chain(to_address, "USDX") == 30_000_000
    assert await treasury.on_chain(treasury.wallet.address, "USDX") == 20_000_000
    payout = await treasury.payout(payout_id)
    assert (payout.status, payout.tx_id is not None) == ("completed", True)
    balance = await treasury.balance("USDX")
    assert (balance.available, balance.pending, balance.held) == (20_000_000, 0, 0)
    await treasury.check_books()


async def test_the_native_coin_goes_the_same_way_and_no_fee_comes_out_of_it(treasury):
    await treasury.receive("MEM", 10**18)
    to_address = await treasury.stranger(1)
    await treasury.pay_out("MEM", 10**18, to_address)
    await treasury.work(treasury.engine())
    assert await treasury.on_chain(to_address, "MEM") == 10**18
    assert (await treasury.balance("MEM")).available == 0
    await treasury.check_books()
