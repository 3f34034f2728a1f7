"""Payouts that merchants need not ask for."""

from __future__ import annotations

from cambist.bootstrap import Gateway
from cambist.services.payouts import auto_payout
from cambist.services.payouts.queue import PayoutContext


async def queue_auto_payouts(gateway: Gateway) -> bool:
    """Queue what is above a merchant's threshold."""
    context = PayoutContext(registry=gateway.registry, keys=gateway.keys, clock=gateway.clock, ids=gateway.ids)
    await auto_payout.run(gateway.db, context, gateway.rates, gateway.hints)
    return False
