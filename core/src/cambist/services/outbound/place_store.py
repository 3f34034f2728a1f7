"""The statements of places in sequences: which are free, whose they are, and which are lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from .rows import IntentRow, Site

GAPS_SPAN_MAX = 10_000
"""How far above what is mined is looked for gaps: more than nodes would ever keep waiting."""


class Holder(Struct, frozen=True):
    """The intent that has a place, and what became of it there."""

    intent: int
    state: str


async def gaps(  # noqa: PLR0913, PLR0917  whose, between what, and how many at most
    conn: AsyncConnection, site: Site, address_row: int, first: int, end: int, limit: int
) -> Sequence[int]:
    """Return the first places from ``first`` to before ``end`` that nobody ever had."""
    if first >= end:
        return []
    rows = await conn.exec_driver_sql(
        "SELECT n FROM generate_series($4::bigint, $5::bigint) n WHERE NOT EXISTS (SELECT FROM outbound_slots s"
        " WHERE s.address_id = $3 AND s.chain = $1 AND s.scope = $2 AND s.sequence = n) ORDER BY n LIMIT $6",
        (*site.key, address_row, first, min(end, first + GAPS_SPAN_MAX) - 1, limit),
    )
    return list(rows.scalars())


async def holder(conn: AsyncConnection, site: Site, address_row: int, sequence: int) -> Holder | None:
    """Return who has a place of the sender, or None where nobody ever had it."""
    rows = await conn.exec_driver_sql(
        "SELECT intent_id, state FROM outbound_slots WHERE address_id = $3 AND chain = $1 AND scope = $2"
        " AND sequence = $4",
        (*site.key, address_row, sequence),
    )
    row = rows.one_or_none()
    return None if row is None else Holder(row.intent_id, row.state)


async def dead_places(conn: AsyncConnection, intents: Sequence[IntentRow]) -> Mapping[int, Sequence[int]]:
    """Return by intent the places that it lost to something else; without sequences, until when each was valid."""
    rows = await conn.exec_driver_sql(
        "SELECT s.intent_id, coalesce(s.sequence, max(t.valid_until)) AS place FROM outbound_slots s"
        " JOIN outbound_txs t ON t.slot_id = s.id WHERE s.intent_id = ANY($1::bigint[]) AND s.state = 'dead'"
        " GROUP BY s.id ORDER BY s.id",
        ([one.id for one in intents],),
    )
    found: dict[int, list[int]] = {}
    for row in rows:
        if row.place is not None:
            found.setdefault(row.intent_id, []).append(row.place)
    return found
