"""Redis is killed in the middle of stories and comes back empty: each ends as it does elsewhere."""

from __future__ import annotations

import asyncio

import pytest

from tests.e2e.going_out import test_withdrawals
from tests.e2e.moving import test_money_moves

ALIVE_S, GONE_S = (0.5, 4), 1.5

pytestmark = pytest.mark.parametrize("network", ["anvil"], indirect=True, scope="module")

story, merchant = test_money_moves.story, test_withdrawals.merchant


@pytest.fixture(autouse=True)
async def _killed(station, valkey):
    """Kill it as a story begins, and again a little later."""

    async def kill():
        for alive_s in ALIVE_S:
            await asyncio.sleep(alive_s)
            valkey.kill()
            await asyncio.sleep(GONE_S)
            await asyncio.to_thread(valkey.start)

    killing = asyncio.create_task(kill())
    yield
    await killing


test_an_auto_payout_is_made_once = (
    test_withdrawals.test_money_above_the_threshold_goes_to_the_approved_address_by_itself_and_once
)


@pytest.mark.parametrize("story", ["usdx"], indirect=True)
async def test_money_moves_all_its_ways_and_is_told(story, gateway, customer):
    await test_money_moves.test_money_is_paid_collected_paid_out_refunded_and_withdrawn(story, gateway, customer)
