"""Where a sweep cannot be, or is undone, deposits are collected one by one, or once more: never twice, never not."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.addresses.wallets import main_wallet
from cambist.services.recovery.reconcile import reconcile_chain
from cambist.services.sending.collections.planning import Collector
from tests.support.anvil_treasury import STATION_WEI, anvil_treasury

ONE = 10**6


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with anvil_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        await treasury.batch()
        yield treasury
        await treasury.check_books()


async def collected_one_by_one(treasury) -> None:
    addresses = await treasury.receive_many("USDT", [20 * ONE, 30 * ONE])
    await treasury.work(treasury.engine())
    assert [await treasury.on_chain(address, "USDT") for address in addresses] == [0, 0]
    assert await treasury.intents("sweep") == []
    assert await treasury.intents("collection") == [("done", False)] * 2
    await treasury.check_books()


async def test_until_the_operator_switches_it_on_nothing_is_swept(db, clock, ids, tmp_path):
    async with anvil_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        await collected_one_by_one(treasury)
        assert treasury.alerts["sweep_refused"] == 0


async def test_without_the_signers_leave_deposits_go_one_by_one(db, clock, ids, tmp_path):
    async with anvil_treasury(db, clock, ids, tmp_path, delegates=False) as treasury:
        await treasury.open()
        await treasury.batch()
        await collected_one_by_one(treasury)
        assert treasury.alerts["signer_refused"] >= 1


async def test_without_the_contract_deposits_go_one_by_one(db, clock, ids, tmp_path):
    async with anvil_treasury(db, clock, ids, tmp_path, swept=False) as treasury:
        await treasury.open()
        await treasury.batch()
        await collected_one_by_one(treasury)
        assert treasury.alerts["sweep_refused"] >= 1


async def test_a_sweeper_that_obeys_somebody_else_is_not_used(db, clock, ids, tmp_path):
    other = "0x" + "12" * 20
    async with anvil_treasury(db, clock, ids, tmp_path, sweeper=other) as treasury:
        await treasury.open()
        await treasury.batch()
        await treasury.node.call("anvil_setCode", [other, "0x6001"])
        await collected_one_by_one(treasury)
        assert treasury.alerts["sweep_refused"] >= 1


async def test_what_a_token_refuses_does_not_keep_the_others(db, clock, ids, tmp_path):
    async with anvil_treasury(db, clock, ids, tmp_path, artifact="PickyToken") as treasury:
        await treasury.open()
        await treasury.batch()
        other, _ = await treasury.new_merchant("mer_2")
        await treasury.work(treasury.engine(), rounds=1, until="enough")
        addresses = await treasury.receive_many("USDT", [20 * ONE, 30 * ONE])
        (refused,) = await treasury.receive_many("USDT", [40 * ONE], merchant=other)
        # Once they were judged: what is refused before is never asked for.
        assert await Collector(treasury.engine().context, treasury.keys).collect() == 3
        async with treasury.db.transaction() as conn:
            wallet = await _wallet(treasury, conn, other)
        await treasury.tokens["USDT"].send("refuse", wallet)
        await treasury.mine()
        await treasury.work(treasury.engine())
        assert [await treasury.on_chain(address, "USDT") for address in (*addresses, refused)] == [0, 0, 40 * ONE]
        assert await treasury.intents("collection") == [("done", True), ("done", True), ("failed", False)]
        await treasury.check_books()


async def _wallet(treasury, conn, merchant: int) -> str:
    return (await main_wallet(conn, treasury.keys, treasury.family, merchant, "live")).address


async def test_an_empty_gas_station_holds_the_sweep(db, clock, ids, tmp_path):
    async with anvil_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open(station=0)
        await treasury.batch()
        addresses = await treasury.receive_many("USDT", [20 * ONE, 30 * ONE])
        engine = treasury.engine()
        await treasury.work(engine, rounds=4, until="enough")
        assert treasury.alerts["gas_station_empty"] >= 1
        assert await treasury.intents("collection") == [("waiting", False)] * 2
        await treasury.node.send_native(treasury.station, STATION_WEI)
        await treasury.mine(5)
        treasury.clock.advance(60)
        await treasury.work(engine)
        assert await treasury.intents("sweep") == [("done", False)]
        assert [await treasury.on_chain(address, "USDT") for address in addresses] == [0, 0]
        await treasury.check_books()


async def test_engines_side_by_side_sweep_each_deposit_once(treasury):
    addresses = await treasury.receive_many("USDT", [20 * ONE] * 12)
    engines = [treasury.engine() for _ in range(3)]
    for _ in range(20):
        await asyncio.gather(*(engine.tick() for engine in engines))
        if await treasury.is_idle():
            break
        await treasury.mine()
    assert await treasury.is_idle()
    assert [await treasury.on_chain(address, "USDT") for address in addresses] == [0] * 12
    assert await treasury.on_chain(treasury.wallet.address, "USDT") == 240 * ONE
    assert len(await treasury.intents("collection")) == 12


@pytest.mark.parametrize("comes_back", [True, False])
async def test_a_reorg_deeper_than_what_was_final_undoes_a_sweep_and_it_happens_again(treasury, comes_back):
    """Be it the same transaction, mined again, or, where somebody took its place, one for each deposit."""
    addresses = await treasury.receive_many("USDT", [20 * ONE, 30 * ONE])
    engine = treasury.engine()
    await engine.tick()
    await treasury.mine(5)
    await engine.tick()
    await engine.tick()
    assert await treasury.intents("collection") == [("done", True)] * 2
    await treasury.check_books()
    await treasury.node.reorg(5)
    if not comes_back:
        await _take_the_place(treasury)
    await treasury.mine(2)
    await engine.tick()
    assert await treasury.intents("collection") == [("sending", True)] * 2
    treasury.clock.advance(10)
    await treasury.work(engine)
    assert [await treasury.on_chain(address, "USDT") for address in addresses] == [0, 0]
    assert await treasury.intents("sweep") == [("done" if comes_back else "failed", False)]
    assert await treasury.intents("collection") == [("done", True)] * 2


async def _take_the_place(treasury) -> None:
    """Use the gas station's next sequence behind the engine's back, at no cost that the books would miss."""
    await treasury.node.call("anvil_setNonce", [treasury.station, hex(1)])


async def test_reconcile_agrees_at_every_moment_of_a_sweep(treasury):
    await treasury.receive_many("USDT", [20 * ONE, 30 * ONE])
    engine = treasury.engine()
    for _ in range(8):
        await engine.tick()
        report = await reconcile_chain(treasury.db, treasury.chain)
        assert not report.differences
        await treasury.mine()
    assert await treasury.intents("sweep") == [("done", False)]
