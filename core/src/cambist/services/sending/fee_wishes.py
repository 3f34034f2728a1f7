"""What operators want to pay more for: asked for in the row of a nonce slot, met or refused by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import columns_of, literally, to_struct
from cambist.plugin import Units
from cambist.services.chain_scope import ChainScope


class FeeWish(Struct, frozen=True):
    """An operator wants an open slot's transaction to pay more: up to the ceiling, or until it costs ``fee_max``."""

    slot_pk: int
    asked_at: datetime
    fee_max: Units | None


_RENAMED = {
    "slot_pk": models.OutboundSlot.id,
    "asked_at": models.OutboundSlot.raise_asked_at,
    "fee_max": models.OutboundSlot.raise_fee_max,
}
_WISHES = (
    select(*columns_of(FeeWish, models.OutboundSlot, **_RENAMED))
    .where(
        models.OutboundSlot.chain == bindparam("chain"),
        models.OutboundSlot.scope == bindparam("scope"),
        literally(models.OutboundSlot.state, "open"),
        models.OutboundSlot.raise_asked_at.is_not(None),
    )
    .order_by(models.OutboundSlot.id)
)


async def fee_wishes(conn: AsyncConnection, chain_scope: ChainScope) -> Sequence[FeeWish]:
    chain, scope = chain_scope.key
    rows = await conn.execute(_WISHES, {"chain": chain, "scope": scope})
    return [to_struct(FeeWish, row) for row in rows]


async def answer_wish(conn: AsyncConnection, wish: FeeWish, refusal: str | None) -> None:
    """Note that a wish was met, or why not; one that came meanwhile stays."""
    own = update(models.OutboundSlot).where(
        models.OutboundSlot.id == wish.slot_pk, models.OutboundSlot.raise_asked_at == wish.asked_at
    )
    await conn.execute(own.values(raise_asked_at=None, raise_refusal=refusal))
