"""Makes due what a clock that was ahead has put off."""

from __future__ import annotations

import structlog

from cambist.bootstrap import Gateway
from cambist.services import due_times

log = structlog.get_logger(__name__)


async def bring_back_due_times(gateway: Gateway) -> bool:
    """Bring back a batch of each kind; return True while more may be left."""
    changed = await due_times.bring_back(gateway.db, gateway.settings.webhooks)
    if any(changed.values()):
        log.warning("due_times_ahead", **{name: count for name, count in changed.items() if count})
        await gateway.hints.publish("outbound", "exchanges", "webhooks")
    return any(count >= due_times.BATCH for count in changed.values())
