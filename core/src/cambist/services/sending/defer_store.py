"""The statements by which intents wait."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from .rows import IntentRow

# What somebody has asked to be cancelled or tried again since it was read waits for that.
_DEFER = """
WITH due AS (
    SELECT i.id, i.reason, i.retried_at IS DISTINCT FROM known.retried_at AS is_retried FROM outbound_intents i
    JOIN unnest($1::bigint[], $2::timestamptz[], $3::text[]) AS known (id, retried_at, cancel_asked_by)
        ON known.id = i.id
    WHERE i.state = 'waiting' AND i.cancel_asked_by IS NOT DISTINCT FROM known.cancel_asked_by{who}
    ORDER BY i.id FOR UPDATE OF i
)
UPDATE outbound_intents i SET reason = $4, due_at = CASE WHEN due.is_retried THEN i.due_at ELSE $5 END, updated_at = $6,
    retried_at = CASE WHEN due.is_retried OR $7 THEN i.retried_at END
FROM due WHERE i.id = due.id RETURNING i.id, due.reason IS DISTINCT FROM $4 AS is_new
"""
_DEFER_ANY, _DEFER_AGAIN = (_DEFER.format(who=who) for who in ("", " AND i.reason IS NOT DISTINCT FROM $4"))


async def lock(conn: AsyncConnection, intents: Sequence[IntentRow]) -> None:
    """Lock intents in everybody's order, before some of them wait for one thing and some for another.

    Gas is asked for in between, behind a lock that whoever has some of them already may be waiting for.
    """
    await conn.exec_driver_sql(
        "SELECT FROM outbound_intents WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE",
        ([one.id for one in intents],),
    )


async def defer(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    intents: Sequence[IntentRow],
    reason: str | None,
    due_at: datetime,
    now: datetime,
    *,
    keeps_retry: bool,
) -> Sequence[int]:
    """Say why they wait and when to look again; return those for which the reason is new.

    What an operator has tried again was tried with that, unless it ``keeps_retry``: something else must come first, or
    unless that was since it was read. What is to be cancelled since then is left as it is.
    """
    changed = await conn.exec_driver_sql(_DEFER_ANY, (*_known(intents), reason, due_at, now, keeps_retry))
    return [row.id for row in changed if row.is_new]


async def defer_again(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    intents: Sequence[IntentRow],
    reason: str | None,
    due_at: datetime,
    now: datetime,
    *,
    keeps_retry: bool,
) -> None:
    """Let those of these wait for longer that wait for just this already; the others are as they were."""
    await conn.exec_driver_sql(_DEFER_AGAIN, (*_known(intents), reason, due_at, now, keeps_retry))


def _known(intents: Sequence[IntentRow]) -> tuple[object, ...]:
    return [one.id for one in intents], [one.retried_at for one in intents], [one.cancel_asked_by for one in intents]
