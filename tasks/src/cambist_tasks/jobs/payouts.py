"""Payouts that merchants need not ask for, and the least that a payout may be."""

from __future__ import annotations

from cambist.bootstrap import Gateway
from cambist.services.payouts import auto_payout, minimums
from cambist.services.payouts.queue import PayoutContext


async def queue_auto_payouts(gateway: Gateway) -> bool:
    """Queue what is above a merchant's threshold."""
    context = PayoutContext(registry=gateway.registry, keys=gateway.keys, clock=gateway.clock, ids=gateway.ids)
    await auto_payout.run(gateway.db, context, gateway.rates, gateway.hints)
    return False


async def derive_payout_minimums(gateway: Gateway) -> bool:
    """Ask every live chain what a transfer costs, so that payouts are worth it where the operator sets no minimum."""
    await minimums.derive_all(gateway.db, gateway.keys, gateway.registry.families, gateway.chains, gateway.clock.now())
    return False
