"""Refusals, summed by who was refused what from where within a minute: whoever knocks a million times fills nothing.

One process's sums are in memory until their minute is over. A process that is killed loses those of its last minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import structlog
from msgspec import Struct
from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import ApiKey, AuditEntry
from cambist.ports import Clock

from .entries import Action, Origin, tell

log = structlog.get_logger(__name__)

MINUTE_S = 60
KINDS_MAX = 1_000
"""Sums of one process and minute. What differs from all of these is summed as one: who asked is not told there."""
ACTOR_CHARS_MAX = 254


class Refusal(Struct, frozen=True, kw_only=True):
    """What was refused to whom: refusals that are equal in this are summed. ``code`` is that of the answer."""

    action: Action
    code: str
    origin: Origin


class Refusals:
    """One process's sums."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._sums: dict[int, Counter[Refusal]] = {}

    def add(self, refusal: Refusal) -> None:
        """Count one refusal, at the time of the clock."""
        sums = self._sums.setdefault(self._minute(), Counter())
        if refusal not in sums and len(sums) >= KINDS_MAX:
            refusal = Refusal(action=refusal.action, code="", origin=Origin(actor_kind="stranger"))
        sums[refusal] += 1

    async def write(self, *, unfinished: bool = False) -> None:
        """Write down the sums of the minutes that are over, and that of this one too where asked for.

        What cannot be written is kept for the next time, as long as there is room.
        """
        now = self._minute()
        due = {minute: self._sums.pop(minute) for minute in list(self._sums) if unfinished or minute < now}
        found = [(minute, refusal, count) for minute, sums in due.items() for refusal, count in sums.items()]
        if not found:
            return
        try:
            async with self._db.transaction() as conn:
                named = await _names(conn, [refusal for _, refusal, _ in found])
                rows = [_row(minute, refusal, count, named) for minute, refusal, count in found]
                await conn.execute(insert(AuditEntry), rows)
        except Exception:
            self._keep(due)
            raise
        for _, refusal, count in found:
            actor = named.get(refusal.origin.key_pk, refusal.origin.actor)
            tell(refusal.origin, refusal.action, actor=actor, details={"code": refusal.code}, count=count)

    def _keep(self, due: dict[int, Counter[Refusal]]) -> None:
        """Keep the newest, and of that as much as one minute may have; the rest is said to be lost."""
        newest = max(due)
        kept = self._sums.setdefault(newest, Counter())
        lost = 0
        for minute, sums in due.items():
            for refusal, count in sums.items():
                if minute == newest and (refusal in kept or len(kept) < KINDS_MAX):
                    kept[refusal] += count
                else:
                    lost += count
        if lost:
            log.error("audit_refusals_lost", count=lost)

    def _minute(self) -> int:
        return int(self._clock.now().timestamp()) // MINUTE_S


async def _names(conn: AsyncConnection, refusals: Sequence[Refusal]) -> Mapping[int | None, str]:
    """Return the public ids of the API keys among them, by primary key."""
    keys = {refusal.origin.key_pk for refusal in refusals} - {None}
    if not keys:
        return {}
    found = await conn.execute(select(ApiKey.id, ApiKey.key_id).where(ApiKey.id.in_(keys)))
    return {row.id: row.key_id for row in found}


def _row(minute: int, refusal: Refusal, count: int, named: Mapping[int | None, str]) -> dict[str, object]:
    origin = refusal.origin
    actor = named.get(origin.key_pk, origin.actor)
    return {
        "at": datetime.fromtimestamp(minute * MINUTE_S, UTC),
        "action": refusal.action,
        "actor_kind": origin.actor_kind,
        "actor": None if actor is None else actor[:ACTOR_CHARS_MAX],
        "address": origin.address,
        "merchant_id": origin.merchant_id,
        "project_id": origin.project_id,
        "details": {"code": refusal.code},
        "count": count,
    }
