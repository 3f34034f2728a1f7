"""What the engine promises, on real nodes of each kind of chain: each ends in one transfer, and the books agree."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from cambist.plugin import ChainUnavailableError
from cambist.services.recovery.reconcile import reconcile_chain
from tests.support.anvil_treasury import anvil_treasury
from tests.support.fragile import KilledError, Life, fragile
from tests.support.tron_treasury import LIFETIME_BLOCKS, tron_treasury

pytestmark = pytest.mark.slow

ONE = 10**6
TREASURIES = {"anvil": anvil_treasury, "tron": tron_treasury}


@pytest.fixture(params=TREASURIES)
async def treasury(request, db, clock, ids, tmp_path):
    async with TREASURIES[request.param](db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        yield treasury
        await treasury.check_books()


async def test_deposits_are_collected_one_by_one_and_paid_out_to_the_last_unit(treasury):
    native = treasury.info.native
    whole = 10**native.decimals
    tokens = await treasury.receive_many("USDT", [100 * ONE, 200 * ONE, 300 * ONE])
    (coin,) = await treasury.receive_many(native.symbol, [400 * whole])
    engine = treasury.engine()
    await treasury.work(engine)
    assert await treasury.intents("collection") == [("done", False)] * 4
    assert [await treasury.on_chain(address, "USDT") for address in tokens] == [0] * 3
    assert await treasury.on_chain(treasury.wallet.address, "USDT") == 600 * ONE
    assert await treasury.on_chain(treasury.wallet.address, native.symbol) >= 400 * whole
    await treasury.check_books()
    one, two = await treasury.stranger(1), await treasury.stranger(2)
    await treasury.pay_out("USDT", 600 * ONE, one)
    await treasury.pay_out(native.symbol, 400 * whole, two)
    await treasury.work(engine)
    assert await treasury.on_chain(one, "USDT") == 600 * ONE
    assert await treasury.on_chain(two, native.symbol) == 400 * whole
    assert await treasury.on_chain(coin, native.symbol) < whole


async def test_the_same_amount_to_the_same_address_is_sent_as_often_as_it_is_asked_for(treasury):
    await treasury.receive_many("USDT", [100 * ONE])
    to_address = await treasury.stranger(1)
    paid = await treasury.pay_out_many("USDT", [(to_address, ONE)] * 7)
    await treasury.work(treasury.engine())
    assert await treasury.on_chain(to_address, "USDT") == 7 * ONE
    assert len({(await treasury.payout(payout_id)).tx_id for payout_id in paid}) == 7


async def test_a_crash_between_storing_and_sending_loses_and_repeats_nothing(treasury, monkeypatch):
    await treasury.receive_many("USDT", [100 * ONE])
    await treasury.work(treasury.engine())
    to_address = await treasury.stranger(1)

    async def killed(_):
        raise ChainUnavailableError("the process is gone")

    await treasury.pay_out("USDT", ONE, to_address)
    with monkeypatch.context() as patch:
        patch.setattr(treasury.chain, "broadcast", killed)
        for _ in range(5):
            try:
                await treasury.engine().tick()
            except ChainUnavailableError:
                break
            await treasury.mine()
    await treasury.work(treasury.engine())
    assert await treasury.on_chain(to_address, "USDT") == ONE


async def test_a_node_that_forgets_what_waits_is_told_again(treasury):
    await treasury.receive_many("USDT", [100 * ONE])
    await treasury.work(treasury.engine())
    to_addresses = [await treasury.stranger(number) for number in range(5)]
    engine = treasury.engine()
    for to_address in to_addresses:
        await treasury.pay_out("USDT", ONE, to_address)
    await engine.tick()
    await treasury.forget()
    await treasury.work(engine)
    assert [await treasury.on_chain(to_address, "USDT") for to_address in to_addresses] == [ONE] * 5


async def test_engines_side_by_side_send_each_once(treasury):
    await treasury.receive_many("USDT", [20 * ONE] * 6)
    to_addresses = [await treasury.stranger(number) for number in range(12)]
    engines = [treasury.engine() for _ in range(3)]
    await treasury.pay_out_many("USDT", [(to_address, 10 * ONE) for to_address in to_addresses])
    for _ in range(30):
        await asyncio.gather(*(engine.tick() for engine in engines))
        if await treasury.is_idle():
            break
        await treasury.mine()
    assert await treasury.is_idle()
    assert [await treasury.on_chain(to_address, "USDT") for to_address in to_addresses] == [10 * ONE] * 12
    assert await treasury.intents("collection") == [("done", False)] * 6


async def test_engines_that_die_all_the_time_lose_and_double_nothing(treasury):
    chance = Random(7)
    await treasury.receive_many("USDT", [50 * ONE, 60 * ONE])
    to_addresses = [await treasury.stranger(number) for number in range(6)]
    await treasury.pay_out_many("USDT", [(to_address, ONE + number) for number, to_address in enumerate(to_addresses)])
    for _ in range(80):
        try:
            await fragile(treasury.engine(), Life(chance.randint(1, 60))).tick()
        except KilledError:
            await treasury.mine(chance.randint(0, 1))
        if await treasury.is_idle():
            break
    # On TRON a signature that a death has lost is made again only once the lost one has expired.
    await treasury.mine(LIFETIME_BLOCKS, seconds=3 * LIFETIME_BLOCKS)
    await treasury.work(treasury.engine())
    assert [await treasury.on_chain(to_address, "USDT") for to_address in to_addresses] == [ONE + n for n in range(6)]


async def test_reconcile_agrees_at_every_moment(treasury):
    await treasury.receive_many("USDT", [20 * ONE, 30 * ONE])
    await treasury.pay_out("USDT", 45 * ONE, await treasury.stranger(1))
    engine = treasury.engine()
    for _ in range(16):
        await engine.tick()
        report = await reconcile_chain(treasury.db, treasury.chain)
        assert not report.differences
        await treasury.mine()
    await treasury.work(engine)


async def test_a_reorg_deeper_than_what_was_final_undoes_a_payout_and_it_happens_again(treasury):
    await treasury.receive_many("USDT", [100 * ONE])
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    await treasury.work(engine)
    payout_id = await treasury.pay_out("USDT", ONE, to_address)
    await engine.tick()
    await treasury.mine(5)
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
    await treasury.node.reorg(5)
    await treasury.mine(2)
    await engine.tick()
    treasury.clock.advance(10)
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await treasury.on_chain(to_address, "USDT") == ONE
