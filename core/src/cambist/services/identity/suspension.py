"""Suspending a merchant: nobody acts for it, and nothing of it leaves, until the operator reinstates it.

What is stopped here is who may act: sessions end and are not found again, and keys and tokens are refused where they
are looked up. What waits to be sent is held back where it is claimed (``IS_HELD_BACK`` in ``sending/store.py``).
``docs/operators/merchants.md`` has the whole table.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.services.errors import ConflictError, InvalidError, check_text

from . import members, merchants

REASON_CHARS_MAX = 500


async def suspend(conn: AsyncConnection, merchant_id: str, reason: str, *, now: datetime) -> None:
    """Suspend a merchant, and end all sessions of its members.

    Raises NotFoundError, InvalidError for a reason that is blank, and ConflictError for one who is suspended already.
    """
    check_text(reason, "reason", lines=True)
    if not reason.strip():
        raise InvalidError.field("reason", "must say why")
    pk, merchant = await merchants.find_pk(conn, merchant_id), models.Merchant
    changed = update(merchant).where(merchant.id == pk, merchant.suspended_at.is_(None))
    values = {"suspended_at": now, "suspension_reason": reason.strip()}
    if await conn.scalar(changed.values(values).returning(merchant.id)) is None:
        raise ConflictError("MERCHANT_ALREADY_SUSPENDED", "This merchant is suspended already.")
    await members.sign_out_all(conn, pk, now=now)


async def reinstate(conn: AsyncConnection, merchant_id: str) -> int:
    """End a merchant's suspension, and return its primary key.

    What was held back is sent when its time comes again: ``wake()`` of ``services/sending/suspended.py`` makes that
    now. Raises NotFoundError, and ConflictError for one who is not suspended.
    """
    pk, merchant = await merchants.find_pk(conn, merchant_id), models.Merchant
    changed = update(merchant).where(merchant.id == pk, merchant.suspended_at.is_not(None))
    values = {"suspended_at": None, "suspension_reason": None}
    if await conn.scalar(changed.values(values).returning(merchant.id)) is None:
        raise ConflictError("MERCHANT_NOT_SUSPENDED", "This merchant is not suspended.")
    return pk
