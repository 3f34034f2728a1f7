"""The statements of gaps: nonces below what waits that nothing will use, so that what waits is never mined."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.chain_scope import ChainScope

GAPS_SPAN_MAX = 10_000
"""How far above the mined nonces gaps are looked for: more than nodes would ever keep waiting."""


async def gaps(  # noqa: PLR0913, PLR0917  each by name
    conn: AsyncConnection, chain_scope: ChainScope, address_pk: int, first: int, end: int, limit: int
) -> Sequence[int]:
    """Return the first nonces from ``first`` to before ``end`` that no intent ever had."""
    if first >= end:
        return []
    rows = await conn.exec_driver_sql(
        "SELECT n FROM generate_series($4::bigint, $5::bigint) n WHERE NOT EXISTS (SELECT FROM outbound_slots s"
        " WHERE s.address_pk = $3 AND s.chain = $1 AND s.scope = $2 AND s.sequence = n) ORDER BY n LIMIT $6",
        (*chain_scope.key, address_pk, first, min(end, first + GAPS_SPAN_MAX) - 1, limit),
    )
    return list(rows.scalars())


async def vacated(  # noqa: PLR0913, PLR0917  as above
    conn: AsyncConnection, chain_scope: ChainScope, address_pk: int, first: int, end: int, limit: int
) -> Sequence[int]:
    """Return the first nonces in this span that something else had used up, whose slots are dead.

    Where they are not mined any more, a reorg has taken it away, and nothing of ours is left to use them.
    """
    rows = await conn.exec_driver_sql(
        "SELECT sequence FROM outbound_slots WHERE address_pk = $3 AND chain = $1 AND scope = $2"
        " AND sequence >= $4 AND sequence < $5 AND state = 'dead' ORDER BY sequence LIMIT $6",
        (*chain_scope.key, address_pk, first, end, limit),
    )
    return list(rows.scalars())


async def give_up_vacated(
    conn: AsyncConnection, chain_scope: ChainScope, address_pk: int, sequences: Sequence[int]
) -> None:
    """Leave these nonces of dead slots to other slots. What was signed for them stays with its intent."""
    await conn.exec_driver_sql(
        "UPDATE outbound_slots SET sequence = NULL WHERE address_pk = $3 AND chain = $1 AND scope = $2"
        " AND sequence = ANY($4::bigint[]) AND state = 'dead'",
        (*chain_scope.key, address_pk, list(sequences)),
    )
