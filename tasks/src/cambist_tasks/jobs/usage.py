"""Usage credits: posting records to the ledger, initial allowances, and what plans include in a month."""

from __future__ import annotations

from cambist.bootstrap import Gateway
from cambist.services.accounting.cpt_months import MERCHANTS_MAX, give_included
from cambist.services.accounting.usage import (
    ALLOWANCES_MAX,
    ROLL_UP_ROWS_MAX,
    any_unposted,
    backfill_allowances,
    post_unposted,
)


async def post_usage(gateway: Gateway) -> bool:
    """Post records that the ledger does not have yet."""
    async with gateway.db.autocommit() as conn:
        if not await any_unposted(conn):
            return False
    async with gateway.db.transaction() as conn:
        return await post_unposted(conn) == ROLL_UP_ROWS_MAX


async def give_allowances(gateway: Gateway) -> bool:
    """Give their initial allowance to merchants who have had none."""
    async with gateway.db.transaction() as conn:
        return await backfill_allowances(conn) == ALLOWANCES_MAX


async def give_months(gateway: Gateway) -> bool:
    """Give merchants the credits that their plans include in this month."""
    async with gateway.db.transaction() as conn:
        return await give_included(conn, gateway.clock.now()) == MERCHANTS_MAX
