"""What the gas station has staked is its own all the same: the books and the chain agree while it changes."""

from __future__ import annotations

import pytest

from cambist.domain.money import format_units
from cambist.services.recovery.reconcile import reconcile_chain
from cambist.services.sending.gas import gas_stations, stakes
from cambist.services.sending.gas.gas_stations import LowMarks
from cambist.testing.memory import MemoryLendingChain
from tests.support.dated_treasury import dated_treasury
from tests.support.forgetful import ForgetfulLender

pytestmark = pytest.mark.slow

COIN = 10**18
STAKE = 10**12


@pytest.fixture(params=[MemoryLendingChain, ForgetfulLender], ids=["past kept", "past forgotten"])
async def treasury(db, clock, ids, tmp_path, request):
    async with dated_treasury(db, clock, ids, tmp_path, kind=request.param) as treasury:
        await treasury.open(station=COIN)
        for _ in range(treasury.info.confirmations + 2):
            await treasury.mine()  # until the opening's balance is final
        yield treasury


async def ask(treasury, action, units):
    await gas_stations.check(treasury.db, treasury.chain, LowMarks(), treasury.clock.now())
    async with treasury.db.transaction() as conn:
        await stakes.request_stake(conn, treasury.ids, treasury.info, action, units, treasury.clock.now())


async def gas_line(treasury):
    report = await reconcile_chain(treasury.db, treasury.chain, pause=treasury.mine)
    assert report.differences == [], report.differences
    (line,) = [line for line in report.groups if line.group == "gas"]
    return line


async def agree_all_the_way(treasury, engine):
    """Compare at every block until what is asked for is final."""
    for _ in range(40):
        while (await engine.tick()).more:
            pass
        await gas_line(treasury)
        if await treasury.is_idle():
            break
        await treasury.mine()
    assert await treasury.is_idle()
    await treasury.mine(treasury.info.confirmations + 1)


async def test_coin_that_becomes_a_stake_and_coin_again_is_no_difference(treasury):
    engine = treasury.engine()
    for action in ("stake", "unstake"):
        await ask(treasury, action, STAKE)
        await agree_all_the_way(treasury, engine)
    waits = await treasury.chain.stake(treasury.station)
    assert (waits.staked, waits.total) == (0, STAKE)
    line = await gas_line(treasury)
    held = await treasury.on_chain(treasury.station, "MEM")
    assert line.booked == format_units(held + STAKE, 18)
    assert line.in_transit == "0"


async def test_what_is_staked_and_lent_while_money_moves_is_no_difference(treasury):
    engine = treasury.engine()
    await ask(treasury, "stake", COIN // 2)
    await agree_all_the_way(treasury, engine)
    for number in range(2):
        await treasury.receive("USDX", 1_000_000 + number)
    await treasury.pay_out_many("USDX", [(await treasury.stranger(number), 700_000) for number in range(2)])
    await agree_all_the_way(treasury, engine)


async def test_a_stake_that_nobody_booked_is_told(treasury):
    treasury.chain.endow(treasury.station, STAKE)
    await treasury.mine(treasury.info.confirmations + 1)
    report = await reconcile_chain(treasury.db, treasury.chain, pause=treasury.mine)
    assert [(line.group, line.difference) for line in report.differences] == [("gas", f"+{format_units(STAKE, 18)}")]
