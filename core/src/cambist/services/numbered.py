"""Rows that are numbered nearly in the order of their dates: found by time without an index on it."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

TRANSACTION_MAX = timedelta(minutes=10)
"""Rows are dated by the start of a transaction and numbered by its end: their order may differ by this much."""
AFTER_ALL = 2**63 - 1


def first_at(table: str, dated: str) -> str:
    """Return the statement of the first number in ``table`` whose row was made at ``$1`` or later.

    It halves the range of numbers. ``dated`` selects ``id`` and ``created_at`` of each; both are constants of the
    caller.
    """
    return f"""
WITH RECURSIVE halves (low, high) AS (
    SELECT coalesce(min(id), 0), coalesce(max(id), 0) + 1 FROM {table}
    UNION ALL
    SELECT CASE WHEN earlier THEN middle + 1 ELSE low END, CASE WHEN earlier THEN high ELSE middle END
    FROM (
        SELECT low, high, (low + high) / 2 AS middle, coalesce((
            SELECT created_at < $1 FROM ({dated}) AS dated WHERE id >= (low + high) / 2 ORDER BY id LIMIT 1
        ), false) AS earlier
        FROM halves WHERE low < high
    ) AS probes
)
SELECT low FROM halves WHERE low >= high
"""  # noqa: S608  see above


async def between(
    conn: AsyncConnection, statement: str, since: datetime | None, until: datetime | None
) -> tuple[int, int]:
    """Return the numbers between which all rows of a time lie: the first included, the last not.

    A few others lie there, too. ``statement`` is one of ``first_at``.
    """
    first, end = 0, AFTER_ALL
    if since is not None:
        first = (await conn.exec_driver_sql(statement, (since - TRANSACTION_MAX,))).scalar_one()
    if until is not None:
        end = (await conn.exec_driver_sql(statement, (until + TRANSACTION_MAX,))).scalar_one()
    return first, end
