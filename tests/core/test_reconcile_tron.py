"""The books beside a TRON node, which tells what is solid now and nothing of the past: also while money moves."""

from __future__ import annotations

import pytest

from cambist.services.recovery.reconcile import reconcile_chain
from tests.support.tron_treasury import STATION_SUN, SUN

pytestmark = pytest.mark.slow


async def lines(treasury):
    report = await reconcile_chain(treasury.db, treasury.chain, pause=treasury.mine)
    assert report.differences == [], report.differences
    return {(line.group, line.token): (line.on_chain, line.in_transit) for line in report.groups}


async def test_the_gas_stations_float_is_opened_at_a_solid_block_and_a_stake_is_part_of_it(on_tron):
    assert await lines(on_tron) == {("gas", "TRX"): (str(STATION_SUN // SUN), "0")}
    stake = await on_tron.change_stake("stake", 4_000 * SUN)
    assert stake.total == 4_000 * SUN
    await on_tron.mine(5)
    await on_tron.check_books()
    assert set(await lines(on_tron)) == {("gas", "TRX")}


async def test_while_deposits_are_collected_and_paid_out_there_is_no_difference_at_any_block(on_tron):
    await on_tron.receive_many("USDT", [10 * SUN, 11 * SUN])
    await on_tron.pay_out_many("USDT", [(await on_tron.stranger(number), 9 * SUN) for number in range(2)])
    engine, seen = on_tron.engine(), set()
    for _ in range(60):
        while (await engine.tick()).more:
            pass
        seen |= {group for (group, _), (_, transit) in (await lines(on_tron)).items() if transit != "0"}
        if await on_tron.is_idle():
            break
        await on_tron.mine()
    assert await on_tron.is_idle()
    assert {"deposits", "wallet", "gas"} <= seen
    await on_tron.mine(5)
    assert {transit for _, transit in (await lines(on_tron)).values()} == {"0"}
