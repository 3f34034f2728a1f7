"""Redis is killed in the middle of a story and comes back empty: it ends as it does elsewhere.

So it is in other stories too: of the native coin in test_money_moves.py, of an exchange in exchanging/test_away.py, of
an account and of a tracker in coming_in.
"""

from __future__ import annotations

import pytest

from tests.e2e.going_out import test_withdrawals

pytestmark = pytest.mark.parametrize("network", ["anvil"], indirect=True, scope="module")

merchant = test_withdrawals.merchant


@pytest.fixture(autouse=True)
async def _killed(station, valkey):
    async with valkey.dying():
        yield


test_an_auto_payout_is_made_once = (
    test_withdrawals.test_money_above_the_threshold_goes_to_the_approved_address_by_itself_and_once
)
