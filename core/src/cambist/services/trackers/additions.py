"""How many addresses a merchant may have scans look for anew in a month: what is tracked once stays so for ever."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.plans import Plan

from .credentials import TrackerAccess

TIMES_A_MONTH = 10
"""How often all the addresses that a plan allows may be replaced in a month by such as nobody ever watched."""

_TRACKED = """
SELECT address FROM tracked_addresses WHERE mode = $1 AND family = $2 AND address = ANY($3::text[])
"""
_LOCK = """
INSERT INTO tracker_additions AS t (merchant_pk, mode, month) VALUES ($1, $2, $3)
ON CONFLICT (merchant_pk, mode, month) DO UPDATE SET added = t.added RETURNING added
"""
_COUNT = "UPDATE tracker_additions SET added = added + $4 WHERE merchant_pk = $1 AND mode = $2 AND month = $3"


def most(plan: Plan) -> int:
    """Return how many addresses may be new in a month."""
    return TIMES_A_MONTH * plan.webhooks_max * plan.addresses_max


async def untracked(conn: AsyncConnection, tracker: TrackerAccess, family: str, addresses: Sequence[str]) -> set[str]:
    """Return which addresses no scan looks for yet."""
    found = await conn.exec_driver_sql(_TRACKED, (tracker.mode, family, list(addresses)))
    return set(addresses).difference(found.scalars())


async def room(conn: AsyncConnection, tracker: TrackerAccess, plan: Plan, now: datetime) -> int:
    """Return how many more may be new in this month, and let nobody else take that room until the transaction ends."""
    used: int = (await conn.exec_driver_sql(_LOCK, _this(tracker, now))).scalar_one()
    return most(plan) - used


async def count(conn: AsyncConnection, tracker: TrackerAccess, added: int, now: datetime) -> None:
    """Take the room that was found for so many."""
    await conn.exec_driver_sql(_COUNT, (*_this(tracker, now), added))


def _this(tracker: TrackerAccess, now: datetime) -> tuple[object, ...]:
    return tracker.actor.merchant_pk, tracker.mode, now.astimezone(UTC).date().replace(day=1)
