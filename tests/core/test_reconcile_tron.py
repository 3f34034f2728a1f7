"""The books beside a TRON node, which tells what is solid now and nothing of the past: also while money moves."""

from __future__ import annotations

import pytest

from cambist.services.recovery.reconcile import reconcile_chain
from tests.support.tron_treasury import STATION_SUN, SUN, tron_treasury

pytestmark = pytest.mark.slow


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with tron_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        yield treasury


async def lines(treasury):
    report = await reconcile_chain(treasury.db, treasury.chain, pause=treasury.mine)
    assert report.differences == [], report.differences
    return {(line.group, line.token): (line.on_chain, line.in_transit) for line in report.groups}


async def test_the_gas_stations_float_is_opened_at_a_solid_block_and_a_stake_is_part_of_it(treasury):
    assert await lines(treasury) == {("gas", "TRX"): (str(STATION_SUN // SUN), "0")}
    stake = await treasury.change_stake("stake", 4_000 * SUN)
    assert stake.total == 4_000 * SUN
    await treasury.mine(5)
    await treasury.check_books()
    assert set(await lines(treasury)) == {("gas", "TRX")}


async def test_while_deposits_are_collected_and_paid_out_there_is_no_difference_at_any_block(treasury):
    await treasury.receive_many("USDT", [10 * SUN, 11 * SUN])
    await treasury.pay_out_many("USDT", [(await treasury.stranger(number), 9 * SUN) for number in range(2)])
    engine, seen = treasury.engine(), set()
    for _ in range(60):
        while (await engine.tick()).more:
            pass
        seen |= {group for (group, _), (_, transit) in (await lines(treasury)).items() if transit != "0"}
        if await treasury.is_idle():
            break
        await treasury.mine()
    assert await treasury.is_idle()
    assert {"deposits", "wallet", "gas"} <= seen
    await treasury.mine(5)
    assert {transit for _, transit in (await lines(treasury)).values()} == {"0"}
