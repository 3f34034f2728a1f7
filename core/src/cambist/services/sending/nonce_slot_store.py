"""The statements of nonce slots: which are free, which intents have them, and which are dead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.chain_scope import ChainScope

from .rows import IntentRow

GAPS_SPAN_MAX = 10_000
"""How far above the mined nonces gaps are looked for: more than nodes would ever keep waiting."""


class SlotUse(Struct, frozen=True):
    """The intent that has a nonce slot, and the state of that."""

    intent: int
    state: str


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


async def slot_use(conn: AsyncConnection, chain_scope: ChainScope, address_pk: int, sequence: int) -> SlotUse | None:
    """Return which intent has a nonce of the sender, or None where none ever had it."""
    rows = await conn.exec_driver_sql(
        "SELECT intent_pk, state FROM outbound_slots WHERE address_pk = $3 AND chain = $1 AND scope = $2"
        " AND sequence = $4",
        (*chain_scope.key, address_pk, sequence),
    )
    row = rows.one_or_none()
    return None if row is None else SlotUse(row.intent_pk, row.state)


async def dead_slots(conn: AsyncConnection, intents: Sequence[IntentRow]) -> Mapping[int, Sequence[int]]:
    """Return by intent its dead slots: their nonces, or without nonces until when each was valid."""
    rows = await conn.exec_driver_sql(
        "SELECT s.intent_pk, coalesce(s.sequence, max(t.valid_until)) AS number FROM outbound_slots s"
        " JOIN outbound_txs t ON t.slot_pk = s.id WHERE s.intent_pk = ANY($1::bigint[]) AND s.state = 'dead'"
        " GROUP BY s.id ORDER BY s.id",
        ([one.id for one in intents],),
    )
    found: dict[int, list[int]] = {}
    for row in rows:
        if row.number is not None:
            found.setdefault(row.intent_pk, []).append(row.number)
    return found
