"""A payout arrives at an address that is emptied between its plan and its block; a collection is allowed no more."""

from __future__ import annotations

import pytest

from tests.support.anvil_treasury import anvil_treasury
from tests.support.tron_treasury import SUN, tron_treasury

pytestmark = pytest.mark.slow

ONE = 10**6
TREASURIES = {"anvil": anvil_treasury, "tron": tron_treasury}
FIRST_BALANCE = {"anvil": 17_100, "tron": 60_000}
"""What a first balance takes more than any other, in gas and in energy, or a little less than that."""


@pytest.fixture(params=TREASURIES)
def kind(request):
    return request.param


@pytest.fixture
async def treasury(kind, db, clock, ids, tmp_path):
    async with TREASURIES[kind](db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        await treasury.receive_many("USDT", [100 * ONE])
        await treasury.work(treasury.engine())
        yield treasury
        await treasury.check_books()


async def limits(treasury, kind: str) -> list[int]:
    """Return the limit of work of each transaction that was signed for intents of a kind, the oldest first."""
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT t.fee_limit FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
            " JOIN outbound_intents i ON i.id = s.intent_pk WHERE i.kind = $1 ORDER BY t.id",
            (kind,),
        )
        return [int(limit) for limit in rows.scalars()]


async def test_a_payout_to_an_address_that_is_emptied_meanwhile_arrives(treasury):
    exchange, away = treasury.node.accounts[3], await treasury.stranger(1)
    await treasury.pay("USDT", exchange, 7 * ONE)
    await treasury.mine(5)
    engine = treasury.engine()
    payout_id = await treasury.pay_out("USDT", 5 * ONE, exchange)
    while (await treasury.payout(payout_id)).status != "broadcast":
        await engine.tick()
        if (await treasury.payout(payout_id)).status != "broadcast":
            await treasury.mine()
    # It is delayed on its way, and the exchange is faster.
    await treasury.forget()
    await treasury.tokens["USDT"].send("transfer", away, 7 * ONE, sender=exchange)
    await treasury.mine()
    assert await treasury.on_chain(exchange, "USDT") == 0
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await treasury.on_chain(exchange, "USDT") == 5 * ONE
    assert len(await limits(treasury, "payout")) == 1


SMALL_STAKE_SUN = 8_000 * SUN
"""It lends the energy for one transfer to somebody who has some already, and not for a first balance."""


@pytest.mark.parametrize("kind", ["tron"], indirect=True)
async def test_a_payout_with_too_small_a_loan_burns_what_its_wallet_holds(treasury):
    """Where it comes to that: nothing is brought for it, and nothing is burned for a recipient that keeps its token."""
    kept, exchange, away = treasury.node.accounts[2], treasury.node.accounts[3], await treasury.stranger(1)
    for one in (kept, exchange):
        await treasury.pay("USDT", one, 7 * ONE)
    await treasury.mine(5)
    engine = treasury.engine()
    await treasury.pay_out("USDT", ONE, kept)
    await treasury.work(engine)
    await treasury.pay(treasury.info.native.symbol, treasury.station, 2 * SMALL_STAKE_SUN)
    await treasury.mine(5)
    top_ups = await treasury.intents("top_up")
    for to_address in (kept, exchange):
        await treasury.change_stake("stake", SMALL_STAKE_SUN)
        held = await treasury.on_chain(treasury.wallet.address, treasury.info.native.symbol)
        payout_id = await treasury.pay_out("USDT", 5 * ONE, to_address)
        while (await treasury.payout(payout_id)).status != "broadcast":
            await engine.tick()
            if (await treasury.payout(payout_id)).status != "broadcast":
                await treasury.mine()
        if to_address == exchange:
            await treasury.forget()
            await treasury.tokens["USDT"].send("transfer", away, 7 * ONE, sender=exchange)
            await treasury.mine()
        await treasury.work(engine)
        await engine.tick()
        await treasury.work(engine)
        assert (await treasury.payout(payout_id)).status == "completed"
        burned = held - await treasury.on_chain(treasury.wallet.address, treasury.info.native.symbol)
        assert (burned > 5 * SUN) is (to_address == exchange)
    assert await treasury.intents("loan") == [("done", False)] * 2
    assert await treasury.intents("top_up") == top_ups


async def test_what_a_collection_is_allowed_is_for_what_the_wallet_holds(treasury, kind):
    """What it is brought beyond that would lie on its address for good."""
    await treasury.mine(25)
    await treasury.receive_many("USDT", [50 * ONE])
    engine = treasury.engine()
    await treasury.work(engine)
    exchange = treasury.node.accounts[3]
    await treasury.pay("USDT", exchange, 7 * ONE)
    await treasury.mine(25)
    await treasury.pay_out("USDT", 5 * ONE, exchange)
    await treasury.work(engine)
    first, second = await limits(treasury, "collection")
    (payout,) = await limits(treasury, "payout")
    assert first - second >= FIRST_BALANCE[kind]
    assert payout - second >= FIRST_BALANCE[kind]
