"""Stages that could not be told, put aside so that they stop nobody else, and tried again later and later.

What becomes of the same transfer afterwards waits behind them, so that everybody hears of it in its order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import AnyRow

DEFERRED_MAX = 1_000
"""Stages of one chain that are put aside. Where there are more, it is not they that are wrong, and all others wait."""
FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(hours=1)

DUE = """EXISTS (
    SELECT FROM deferred_stages d WHERE d.chain = {chain} AND d.scope = {scope} AND d.due_at <= {now}
)"""

_BEHIND = """
SELECT s.id FROM movement_stages s JOIN movements m ON m.id = s.movement_pk
WHERE s.id = ANY($3::bigint[]) AND (m.tx_id, m.position) IN (
    SELECT first.tx_id, first.position FROM deferred_stages d JOIN movements first ON first.id = d.movement_pk
    WHERE d.chain = $1 AND d.scope = $2
)
"""
_DEFER = """
INSERT INTO deferred_stages (stage_pk, chain, scope, movement_pk, due_at)
SELECT id, chain, scope, movement_pk, $2 FROM movement_stages WHERE id = ANY($1::bigint[])
"""
_NEXT = """
SELECT s.id, s.movement_pk, s.stage, s.head, s.at, d.attempts
FROM deferred_stages d
JOIN movement_stages s ON s.id = d.stage_pk
JOIN movements m ON m.id = d.movement_pk
WHERE d.chain = $1 AND d.scope = $2 AND d.due_at <= $3 AND NOT EXISTS (
    SELECT FROM deferred_stages before JOIN movements first ON first.id = before.movement_pk
    WHERE before.chain = $1 AND before.scope = $2 AND before.stage_pk < d.stage_pk
        AND (first.tx_id, first.position) = (m.tx_id, m.position)
)
ORDER BY d.stage_pk LIMIT 1
"""


async def behind(conn: AsyncConnection, chain: str, scope: int, stage_pks: Sequence[int]) -> set[int]:
    """Return which of these stages must wait, since an earlier one of the same transfer does."""
    return set((await conn.exec_driver_sql(_BEHIND, (chain, scope, list(stage_pks)))).scalars())


async def defer(conn: AsyncConnection, stage_pks: Sequence[int], now: datetime) -> None:
    """Put stages aside. Whoever calls this holds the fan-out's cursor, and moves it past them."""
    await conn.exec_driver_sql(_DEFER, (list(stage_pks), now + FIRST_PAUSE))


async def is_full(conn: AsyncConnection, chain: str, scope: int) -> bool:
    """Say whether so many stages are put aside already that one movement cannot be what is wrong."""
    of_chain = select(func.count()).where(models.DeferredStage.chain == chain, models.DeferredStage.scope == scope)
    return (await conn.execute(of_chain)).scalar_one() >= DEFERRED_MAX


async def next_due(conn: AsyncConnection, chain: str, scope: int, now: datetime) -> AnyRow | None:
    """Return the first stage that is to be tried again now."""
    return (await conn.exec_driver_sql(_NEXT, (chain, scope, now))).one_or_none()


async def done(conn: AsyncConnection, stage_pk: int) -> None:
    """Forget a stage that was told."""
    await conn.execute(delete(models.DeferredStage).where(models.DeferredStage.stage_pk == stage_pk))


async def postpone(conn: AsyncConnection, stage_pk: int, attempts: int, now: datetime) -> None:
    """Have a stage tried again later, after as many failures as there are now."""
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(attempts, 20))
    later = update(models.DeferredStage).where(models.DeferredStage.stage_pk == stage_pk)
    await conn.execute(later.values(attempts=attempts, due_at=now + pause))


async def counts(conn: AsyncConnection) -> Mapping[str, int]:
    """Return how many stages are put aside, by live chain."""
    stages = func.count().label("stages")
    by_chain = (
        select(models.DeferredStage.chain, stages)
        .where(models.DeferredStage.scope == 0)
        .group_by(models.DeferredStage.chain)
    )
    return {row.chain: row.stages for row in await conn.execute(by_chain)}
