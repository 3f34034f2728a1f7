"""How far the live chains were read, for whoever wants to know whether they work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.chain_status import ChainReading

BLOCKS_LOOKED_AT = 100

# Each chain's newest blocks are the end of its primary key; only neighbours say how long a pause was.
_READ = """
SELECT c.chain, c.head, c.height, c.finalized, c.books_from, c.updated_at AS polled_at, recent.mined_at,
    extract(epoch FROM recent.longest_gap)::float8 AS longest_gap_s
FROM chain_cursors c
LEFT JOIN LATERAL (
    SELECT max(mined_at) FILTER (WHERE height = c.height) AS mined_at,
        max(gap) FILTER (WHERE follows) AS longest_gap
    FROM (
        SELECT height, mined_at, height = lag(height) OVER w + 1 AS follows, mined_at - lag(mined_at) OVER w AS gap
        FROM (
            SELECT height, mined_at FROM chain_blocks b
            WHERE b.chain = c.chain AND b.scope = 0 ORDER BY height DESC LIMIT $2
        ) AS newest
        WINDOW w AS (ORDER BY height)
    ) AS pauses
) AS recent ON true
WHERE c.scope = 0 AND c.chain = ANY($1::text[])
"""


async def read_chains(conn: AsyncConnection, chains: Sequence[str]) -> Mapping[str, ChainReading]:
    """Return how far these live chains were read, by their ids; one that was never read is not among them."""
    rows = await conn.exec_driver_sql(_READ, (list(chains), BLOCKS_LOOKED_AT))
    return {
        row.chain: ChainReading(
            head=row.head,
            height=row.height,
            finalized=row.finalized,
            books_from=row.books_from,
            polled_at=row.polled_at,
            mined_at=row.mined_at,
            longest_gap=None if row.longest_gap_s is None else timedelta(seconds=row.longest_gap_s),
        )
        for row in rows
    }
