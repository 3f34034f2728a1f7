"""Where fees can be paid out of a stake: the gas station lends what a transfer needs, and has it back afterwards."""

from __future__ import annotations

import pytest
from msgspec import structs

from cambist.services.errors import InvalidError
from cambist.services.recovery.reconcile import reconcile_chain
from cambist.services.sending.collections import planning
from tests.support.tron_treasury import SUN, tron_treasury

pytestmark = pytest.mark.slow

ONE = 10**6
STAKE_SUN = 200_000 * SUN


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with tron_treasury(db, clock, ids, tmp_path, fee_ceiling_trx=50, energy_price_max_sun=150) as treasury:
        await treasury.open(station=2 * STAKE_SUN)
        # The main wallet has had the token before, as it has in everyday life.
        await treasury.pay("USDT", treasury.wallet.address, ONE)
        await treasury.mine(5)
        yield treasury
        await treasury.work(treasury.engine())
        await treasury.check_books()


async def fees(treasury) -> dict[str, int]:
    """Return what transactions of each kind have cost."""
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT i.kind, sum(t.fee_paid) AS fee FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
            " JOIN outbound_intents i ON i.id = s.intent_pk GROUP BY i.kind"
        )
        return {row.kind: int(row.fee or 0) for row in rows}


async def booked(treasury) -> int:
    async with treasury.db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT coalesce(sum(-balance), 0) FROM ledger_accounts WHERE purpose = 'gas_spent'"
        )
        return int(found.scalar_one())


async def staked(treasury) -> int:
    """Return what the books say is staked."""
    async with treasury.db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT -balance FROM ledger_accounts WHERE purpose = 'custody_staked'")
        return int(found.scalar_one())


async def test_collections_are_made_with_a_loan_that_is_given_back(treasury):
    stake = await treasury.change_stake("stake", STAKE_SUN)
    assert (stake.staked, stake.lent) == (STAKE_SUN, 0)
    addresses = await treasury.receive_many("USDT", [200 * ONE] * 5)
    engine = treasury.engine()
    lent = 0
    for _ in range(40):
        await engine.tick()
        report = await reconcile_chain(treasury.db, treasury.chain)
        assert not report.differences
        lent = max(lent, (await treasury.chain.stake(treasury.station)).lent)
        if await treasury.is_idle():
            break
        await treasury.mine()
    await treasury.work(engine)
    await engine.tick()
    await treasury.work(engine)
    assert [await treasury.on_chain(address, "USDT") for address in addresses] == [0] * 5
    assert await treasury.intents("collection") == [("done", False)] * 5
    assert await treasury.intents("loan") == await treasury.intents("loan_return") == [("done", False)] * 5
    assert lent > 0
    assert (await treasury.chain.stake(treasury.station)).lent == 0
    spent = await fees(treasury)
    assert spent["collection"] == 0, "neither energy nor bandwidth was burned"
    assert await booked(treasury) == sum(spent.values())


async def test_a_loan_costs_less_than_what_would_be_burned(treasury):
    (burning,) = await treasury.receive_many("USDT", [200 * ONE])
    await treasury.work(treasury.engine())
    burned = await booked(treasury)
    assert await treasury.on_chain(burning, "USDT") == 0
    assert await treasury.intents("loan") == []
    await treasury.change_stake("stake", STAKE_SUN)
    before = await booked(treasury)
    (borrowing,) = await treasury.receive_many("USDT", [200 * ONE])
    engine = treasury.engine()
    await treasury.work(engine)
    await engine.tick()
    await treasury.work(engine)
    assert await treasury.on_chain(borrowing, "USDT") == 0
    assert await treasury.intents("loan") == [("done", False)]
    assert 0 < await booked(treasury) - before < burned


async def test_a_sender_for_whom_no_free_bandwidth_is_left_pays_for_it(treasury):
    """All accounts share it, and no node tells what is left: it shows when a transfer is refused for it."""
    await treasury.change_stake("stake", STAKE_SUN)
    treasury.change_parameters(free_bandwidth_of_all=0)
    (address,) = await treasury.receive_many("USDT", [200 * ONE])
    engine = treasury.engine()
    await treasury.work(engine, until="enough")
    assert await treasury.open_intents() == [("collection", "sending", None)]
    for _ in range(2):
        await treasury.outlive(engine)
    await treasury.work(engine)
    assert await treasury.on_chain(address, "USDT") == 0
    assert await treasury.intents("collection") == [("done", False)]


async def test_what_the_stake_is_too_small_for_is_burned(treasury):
    await treasury.change_stake("stake", 2 * SUN)
    (address,) = await treasury.receive_many("USDT", [200 * ONE])
    await treasury.work(treasury.engine())
    assert await treasury.on_chain(address, "USDT") == 0
    assert await treasury.intents("loan") == []


async def test_a_stake_is_unstaked_and_the_books_still_agree(treasury):
    await treasury.change_stake("stake", STAKE_SUN)
    stake = await treasury.change_stake("unstake", STAKE_SUN // 2)
    assert (stake.staked, stake.leaving) == (STAKE_SUN // 2, STAKE_SUN // 2)
    report = await reconcile_chain(treasury.db, treasury.chain)
    assert not report.differences


async def test_the_books_tell_stake_from_coin_whatever_the_network_pays_out_along_the_way(treasury):
    """It pays out all that can be withdrawn: with a withdrawal of a part, and with what is unstaked next, too."""
    chain = treasury.node.chain
    chain.parameters = chain.state.parameters = structs.replace(chain.parameters, unstake_days=0)
    await treasury.change_stake("stake", STAKE_SUN)
    await treasury.change_stake("unstake", STAKE_SUN // 2)
    stake = await treasury.change_stake("unstake", SUN)
    assert (await staked(treasury), stake.withdrawable) == (STAKE_SUN, STAKE_SUN // 2)
    with pytest.raises(InvalidError, match="takes back all that has waited: "):
        await treasury.change_stake("withdraw", SUN)
    assert await treasury.intents("withdraw_stake") == []
    assert (await treasury.change_stake("withdraw", None)).total == await staked(treasury) == STAKE_SUN // 2
    stake = await treasury.change_stake("unstake", SUN)
    assert (stake.withdrawable, stake.total) == (SUN, await staked(treasury))


async def test_while_energy_costs_more_than_the_operator_allows_a_payout_waits(treasury):
    await treasury.receive_many("USDT", [200 * ONE])
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    await treasury.work(engine)
    treasury.price_energy(200)
    treasury.clock.advance(60)
    payout_id = await treasury.pay_out("USDT", ONE, to_address)
    await treasury.work(engine, rounds=5, until="enough")
    assert await treasury.open_intents() == [("payout", "waiting", "fees_above_ceiling")]
    assert (await treasury.payout(payout_id)).status != "failed"
    assert treasury.alerts["fees_above_ceiling"] >= 1
    treasury.price_energy(100)
    treasury.clock.advance(60)
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await treasury.on_chain(to_address, "USDT") == ONE


async def test_once_some_are_to_borrow_no_others_are_judged_before_those_are_sent(treasury, monkeypatch):
    """They were judged as if all of the stake were left for them; and none is forgotten."""
    monkeypatch.setattr(planning, "PLANNED_AT_ONCE", 2)
    await treasury.change_stake("stake", STAKE_SUN)
    addresses = await treasury.receive_many("USDT", [200 * ONE] * 5)
    engine = treasury.engine(structs.replace(treasury.settings, collect_interval_ms=3_600_000))
    assert [(await engine.tick()).collected for _ in range(2)] == [2, 0]
    treasury.clock.advance(10)
    assert (await engine.tick()).collected == 2
    await treasury.work(engine)
    assert [await treasury.on_chain(address, "USDT") for address in addresses] == [0] * 5
