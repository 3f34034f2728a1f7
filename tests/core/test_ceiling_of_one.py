"""Where some of several transactions would cost more than the operator allows, they alone wait, and say so."""

from __future__ import annotations

import pytest

from cambist.services.addresses.wallets import main_wallet
from tests.support.tron_treasury import tron_treasury

pytestmark = pytest.mark.slow

ONE = 10**6


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    """Give a wallet that has the token, so that a collection to it costs 7 TRX, and not 14 as to one that has none."""
    async with tron_treasury(db, clock, ids, tmp_path, fee_ceiling_trx=10) as treasury:
        await treasury.open()
        await treasury.pay("USDT", treasury.wallet.address, ONE)
        await treasury.mine(5)
        yield treasury
        await treasury.check_books()


async def uncollected(treasury) -> dict[str, str]:
    async with treasury.db.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT a.address, u.reason FROM uncollected_funds u JOIN addresses a ON a.id = u.address_pk"
        )
        return {row.address: row.reason for row in rows}


async def test_one_collection_that_is_too_dear_keeps_no_other(treasury):
    other, _ = await treasury.new_merchant("mer_2")
    async with treasury.db.transaction() as conn:
        wallet = await main_wallet(conn, treasury.keys, treasury.family, other, "live")
    cheap = await treasury.receive_many("USDT", [200 * ONE] * 2)
    (dear,) = await treasury.receive_many("USDT", [200 * ONE], merchant=other)
    cheap += await treasury.receive_many("USDT", [200 * ONE])
    engine = treasury.engine()
    await treasury.work(engine, rounds=20, until="enough")
    assert [await treasury.on_chain(address, "USDT") for address in (*cheap, dear)] == [0, 0, 0, 200 * ONE]
    assert await uncollected(treasury) == {dear: "fees_above_ceiling"}
    await treasury.pay("USDT", wallet.address, ONE)
    await treasury.mine(5, seconds=60)
    await treasury.work(engine, rounds=20, until="enough")
    assert await treasury.on_chain(wallet.address, "USDT") == 201 * ONE


async def test_one_payout_that_is_too_dear_waits_alone(treasury):
    await treasury.receive_many("USDT", [200 * ONE])
    engine, holder, fresh = treasury.engine(), await treasury.stranger(1), await treasury.stranger(2)
    await treasury.work(engine)
    await treasury.pay("USDT", holder, ONE)
    await treasury.mine(5)
    dear, *cheap = await treasury.pay_out_many("USDT", [(fresh, ONE), (holder, ONE), (holder, 2 * ONE)])
    await treasury.work(engine, rounds=20, until="enough")
    assert [(await treasury.payout(one)).status for one in cheap] == ["completed"] * 2
    assert await treasury.open_intents() == [("payout", "waiting", "fees_above_ceiling")]
    assert (await treasury.payout(dear)).waits_for is not None
    assert treasury.alerts["fees_above_ceiling"] == 1
    treasury.price_energy(50)
    treasury.clock.advance(60)
    await treasury.work(engine)
    assert await treasury.on_chain(fresh, "USDT") == ONE


async def test_coin_is_sent_while_energy_costs_too_much_for_tokens(treasury):
    treasury.price_energy(1001)
    holder, fresh = await treasury.stranger(1), await treasury.stranger(2)
    coin = await treasury.receive_many("TRX", [100 * ONE])
    tokens = await treasury.receive_many("USDT", [200 * ONE])
    engine = treasury.engine()
    await treasury.work(engine, rounds=20, until="enough")
    assert [await treasury.on_chain(address, "TRX") for address in coin] == [0]
    assert await uncollected(treasury) == {tokens[0]: "fees_above_ceiling"}
    paid = [await treasury.pay_out("TRX", 2 * ONE, fresh), await treasury.pay_out("USDT", ONE, holder)]
    await treasury.work(engine, rounds=20, until="enough")
    assert [(await treasury.payout(one)).status for one in paid] == ["completed", "processing"]
    assert await treasury.open_intents() == [("payout", "waiting", "fees_above_ceiling")]
    treasury.price_energy(50)
    treasury.clock.advance(4000)
    await treasury.work(engine)
    assert (await treasury.payout(paid[1])).status == "completed"
