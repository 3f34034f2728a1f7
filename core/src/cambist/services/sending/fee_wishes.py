"""What operators want to pay more for: asked for in the row of a nonce slot, met or refused by the engine."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.plugin import Units


class FeeWish(Struct, frozen=True):
    """An operator wants an open slot's transaction to pay more: up to the ceiling, or until it costs ``fee_max``."""

    slot_pk: int
    asked_at: datetime
    fee_max: Units | None


async def answer_wish(conn: AsyncConnection, wish: FeeWish, refusal: str | None) -> None:
    """Note that a wish was met, or why not; one that came meanwhile stays."""
    own = update(models.OutboundSlot).where(
        models.OutboundSlot.id == wish.slot_pk, models.OutboundSlot.raise_asked_at == wish.asked_at
    )
    await conn.execute(own.values(raise_asked_at=None, raise_refusal=refusal))
