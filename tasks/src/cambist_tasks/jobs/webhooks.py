"""Webhook endpoints: what waits for those that were paused, resumed or deleted, and secrets whose overlap is over."""

from __future__ import annotations

from cambist.bootstrap import Gateway
from cambist.services.webhooks import settling


async def settle_endpoints(gateway: Gateway) -> bool:
    """Settle a bounded part; return True while something may be left."""
    now = gateway.clock.now()
    async with gateway.db.transaction() as conn:
        await settling.forget_previous_secrets(conn, now=now)
        settled = await settling.settle(conn, now=now)
    if settled:
        await gateway.hints.publish("webhooks")
    # Less than a whole part may be one that was shared with another worker at the same moment.
    return settled > 0
