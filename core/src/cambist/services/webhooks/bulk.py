"""Sending again what failed at many merchants, for operators: part by part, as a requested job.

What is sent again keeps its id and its bytes, so a receiver that has heard of it knows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from . import redelivery

PART = 500
"""How many are started in one transaction."""


class Failed(Struct, frozen=True, kw_only=True):
    """Which deliveries are meant: what reached nobody, and happened from ``since`` to before ``until``.

    The ids are the public ones. At most ``most`` are started, the oldest first.
    """

    since: datetime
    until: datetime
    merchant_id: str | None = None
    project_id: str | None = None
    endpoint_id: str | None = None
    events: Sequence[str] = ()
    most: int = redelivery.REDELIVERED_MAX


_FIND = f"""
SELECT d.id FROM webhook_deliveries d
JOIN projects p ON p.id = d.project_pk
LEFT JOIN webhook_endpoints e ON e.id = d.endpoint_pk
WHERE d.id > $1 AND d.status IN ('dropped', 'no_target') AND d.created_at >= $3 AND d.created_at < $4
    AND ($5::text IS NULL OR p.merchant_pk = (SELECT id FROM merchants WHERE merchant_id = $5))
    AND ($6::text IS NULL OR p.project_id = $6)
    AND ($7::text IS NULL OR e.endpoint_id = $7)
    AND ($8::text[] = '{{}}' OR d.event = ANY ($8))
    AND {redelivery.HAS_TARGET}
ORDER BY d.id LIMIT $2
"""  # noqa: S608  a constant
_RESTART = redelivery.RESTART.format(chosen="d.id = ANY ($1::bigint[]) AND d.status IN ('dropped', 'no_target')")


async def find(conn: AsyncConnection, failed: Failed, *, after: int, most: int) -> Sequence[int]:
    """Return the next deliveries that can be sent again, in the order of their primary keys."""
    named = failed.merchant_id, failed.project_id, failed.endpoint_id, list(failed.events)
    return list((await conn.exec_driver_sql(_FIND, (after, most, failed.since, failed.until, *named))).scalars())


async def restart(conn: AsyncConnection, delivery_pks: Sequence[int], *, now: datetime) -> None:
    """Make these due at once, unless somebody else has meanwhile. After the commit, publish the hint ``webhooks``."""
    await conn.exec_driver_sql(_RESTART, (list(delivery_pks), now, len(delivery_pks)))
