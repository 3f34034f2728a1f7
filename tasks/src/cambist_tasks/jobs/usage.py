"""Usage credits: posting records to the ledger, and initial allowances."""

from __future__ import annotations

from cambist.bootstrap import Gateway
from cambist.services.accounting.usage import ALLOWANCES_MAX, ROLL_UP_ROWS_MAX, backfill_allowances, post_unposted


async def post_usage(gateway: Gateway) -> bool:
    """Post records that the ledger does not have yet."""
    async with gateway.db.transaction() as conn:
        return await post_unposted(conn) == ROLL_UP_ROWS_MAX


async def give_allowances(gateway: Gateway) -> bool:
    """Give their initial allowance to merchants who have had none."""
    async with gateway.db.transaction() as conn:
        return await backfill_allowances(conn) == ALLOWANCES_MAX
