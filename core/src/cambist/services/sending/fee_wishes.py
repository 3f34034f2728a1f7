"""What operators want to pay more for: asked for in the row of a nonce slot, met or refused by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.plugin import Units
from cambist.services.chain_scope import ChainScope


class FeeWish(Struct, frozen=True):
    """An operator wants an open slot's transaction to pay more: up to the ceiling, or until it costs ``fee_max``."""

    slot_pk: int
    asked_at: datetime
    fee_max: Units | None


_WISHES = """
SELECT id, raise_asked_at, raise_fee_max FROM outbound_slots
WHERE chain = $1 AND scope = $2 AND state = 'open' AND raise_asked_at IS NOT NULL
ORDER BY id
"""


async def fee_wishes(conn: AsyncConnection, chain_scope: ChainScope) -> Sequence[FeeWish]:
    rows = await conn.exec_driver_sql(_WISHES, chain_scope.key)
    return [
        FeeWish(row.id, row.raise_asked_at, None if row.raise_fee_max is None else Units(int(row.raise_fee_max)))
        for row in rows
    ]


async def answer_wish(conn: AsyncConnection, wish: FeeWish, refusal: str | None) -> None:
    """Note that a wish was met, or why not; one that came meanwhile stays."""
    own = update(models.OutboundSlot).where(
        models.OutboundSlot.id == wish.slot_pk, models.OutboundSlot.raise_asked_at == wish.asked_at
    )
    await conn.execute(own.values(raise_asked_at=None, raise_refusal=refusal))
