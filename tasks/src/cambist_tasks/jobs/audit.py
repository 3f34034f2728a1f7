"""Seals the audit log."""

from __future__ import annotations

from cambist.bootstrap import Gateway
from cambist.services.audit import seals


async def seal_audit_log(gateway: Gateway) -> bool:
    """Seal what was written since the last time; return True while there may be more."""
    async with gateway.db.transaction() as conn:
        made = await seals.seal(conn, gateway.secrets, gateway.clock.now())
    if made is None:
        return False
    seals.announce(made)
    return made.count >= seals.BATCH_MAX
