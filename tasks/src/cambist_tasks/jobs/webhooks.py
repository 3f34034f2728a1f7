"""Webhooks: what waits for endpoints that were paused, resumed or deleted, old secrets, and sending again in bulk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cambist.bootstrap import Gateway
from cambist.services.webhooks import bulk, endpoint_states
from cambist.services.webhooks.bulk import Failed
from cambist_tasks.job_lease import Lease


async def apply_endpoint_states(gateway: Gateway) -> bool:
    """Do a bounded part; return True while something may be left."""
    now = gateway.clock.now()
    async with gateway.db.transaction() as conn:
        await endpoint_states.forget_previous_secrets(conn, now=now)
        changed = await endpoint_states.apply_endpoint_states(conn, now=now)
    if changed:
        await gateway.hints.publish("webhooks")
    # Less than a whole part may be one that was shared with another worker at the same moment.
    return changed > 0


async def redeliver(gateway: Gateway, lease: Lease) -> Mapping[str, Any] | None:
    """Start the next part of what an operator has sent again; what was started before is not started twice."""
    failed = msgspec.convert(lease.job.arguments, Failed)
    queued, last = lease.job.progress.get("queued", 0), lease.job.progress.get("last", 0)
    most = min(bulk.PART, failed.most - queued)
    async with gateway.db.autocommit() as conn:
        found = await bulk.find(conn, failed, after=last, most=most) if most else []
    if not found:
        return {"queued": queued, "more": not most}
    async with lease.saving({"queued": queued + len(found), "last": found[-1]}) as conn:
        await bulk.restart(conn, found, now=gateway.clock.now())
    await gateway.hints.publish("webhooks")
    return None
