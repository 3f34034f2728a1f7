"""Deletes rows that are older than the operator keeps them."""

from __future__ import annotations

import structlog

from cambist.bootstrap import Gateway
from cambist.services import changes, retention

log = structlog.get_logger(__name__)


async def delete_what_is_over(gateway: Gateway) -> bool:
    """Delete a batch of each table; return True while something may be left."""
    deleted = await retention.delete_batch(gateway.db, gateway.settings.retention, gateway.clock.now())
    if any(deleted.values()):
        log.info("deleted", **{name: count for name, count in deleted.items() if count})
    return any(count >= retention.BATCH for count in deleted.values())


async def forget_changes(gateway: Gateway) -> bool:
    """Delete a part of what streams told minutes ago; return True while more may be left."""
    async with gateway.db.transaction() as conn:
        return await changes.forget(conn)
