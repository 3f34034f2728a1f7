"""What was held back while its merchant was suspended goes on once it is not."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import OutboundIntent

from .batches import WAITS_FOR_REINSTATEMENT


async def wake(conn: AsyncConnection, merchant_pk: int, now: datetime) -> None:
    """Have the engine look now at what it held back. After the commit, publish the hint ``outbound``."""
    intent = OutboundIntent
    held = intent.merchant_pk == merchant_pk, intent.state == "waiting", intent.reason == WAITS_FOR_REINSTATEMENT
    await conn.execute(update(intent).where(*held).values(due_at=now, updated_at=now))
