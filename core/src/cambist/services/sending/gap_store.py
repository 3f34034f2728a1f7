"""The statements of gaps: nonces below what waits that nothing will use, so that what waits is never mined."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import to_struct
from cambist.services.chain_scope import ChainScope

from .rows import INTENT, JOINS, IntentRow, intent_row

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


async def count_gaps(conn: AsyncConnection, chain_scope: ChainScope, address_pk: int, first: int, end: int) -> int:
    """Return how many nonces from ``first`` to before ``end`` no intent ever had, however many those are."""
    rows = await conn.exec_driver_sql(
        "SELECT greatest($5::bigint - $4::bigint, 0) - count(*) FROM outbound_slots WHERE address_pk = $3"
        " AND chain = $1 AND scope = $2 AND sequence >= $4 AND sequence < $5",
        (*chain_scope.key, address_pk, first, end),
    )
    return int(rows.scalar_one())


async def count_unexplained(conn: AsyncConnection, chain_scope: ChainScope, address_pk: int, counted: int) -> int:
    """Return how many of so many mined transactions of a sender nothing tells of; 0 where our books have as many.

    What has ended, as mined or as dead, tells that all nonces before its own are used. Above that, each slot tells of
    its own nonce.
    """
    rows = await conn.exec_driver_sql(
        "SELECT coalesce((SELECT next_sequence >= $4 FROM outbound_senders WHERE address_pk = $3 AND chain = $1"
        " AND scope = $2), $4 = 0) AS is_ours, coalesce((SELECT sequence + 1 FROM outbound_slots WHERE address_pk = $3"
        " AND chain = $1 AND scope = $2 AND sequence IS NOT NULL AND state <> 'open' ORDER BY sequence DESC LIMIT 1),"
        " 0) AS first",
        (*chain_scope.key, address_pk, counted),
    )
    row = rows.one()
    return 0 if row.is_ours else await count_gaps(conn, chain_scope, address_pk, row.first, counted)


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


class DeadSlot(Struct, frozen=True, kw_only=True):
    """A slot whose nonce something else has used, and what was signed for it, oldest first.

    ``sequence`` is None where the nonce was left to another slot since.
    """

    pk: int
    intent_pk: int
    reference: str
    sequence: int | None
    tx_ids: Sequence[str]


_DEAD = """
SELECT s.id AS pk, s.intent_pk, i.reference, s.sequence, array_agg(t.tx_id ORDER BY t.id) AS tx_ids
FROM outbound_slots s JOIN outbound_txs t ON t.slot_pk = s.id JOIN outbound_intents i ON i.id = s.intent_pk
WHERE s.state = 'dead' AND t.valid_until IS NULL AND {} GROUP BY s.id, i.id ORDER BY s.id
"""


async def dead_slots(conn: AsyncConnection, intent_pks: Sequence[int]) -> Sequence[DeadSlot]:
    """Return the dead slots of intents: those with nonces, not those whose transactions have expired."""
    if not intent_pks:
        return []
    rows = await conn.exec_driver_sql(_DEAD.format("s.intent_pk = ANY($1::bigint[])"), (list(intent_pks),))
    return [to_struct(DeadSlot, row) for row in rows]


LOST = """
outbound_slots l WHERE l.chain = $1 AND l.scope = $2 AND l.state = 'dead' AND l.missing_since IS NOT NULL
    AND l.created_at > {since}
"""
"""The slots of a chain whose nonces something else has used, and whose transactions are not known to be mined since."""

_LOST = _DEAD.format(
    "t.role = 'main' AND i.kind <> 'repair' AND i.state <> 'waiting' AND s.id IN"  # noqa: S608  constants
    f" (SELECT l.id FROM {LOST.format(since='$3')} ORDER BY l.created_at DESC LIMIT $4)"
)


async def lost_slots(conn: AsyncConnection, chain_scope: ChainScope, since: datetime, limit: int) -> Sequence[DeadSlot]:
    """Return the newest lost slots of what does not wait to be sent any more, with what would send it."""
    rows = await conn.exec_driver_sql(_LOST, (*chain_scope.key, since, limit))
    return [to_struct(DeadSlot, row) for row in rows]


async def note_found(conn: AsyncConnection, slot_pks: Sequence[int]) -> set[int]:
    """Note that the transactions of lost slots are mined after all; return of which nobody had noted it."""
    rows = await conn.exec_driver_sql(
        "UPDATE outbound_slots SET missing_since = NULL WHERE id = ANY($1::bigint[]) AND state = 'dead'"
        " AND missing_since IS NOT NULL RETURNING id",
        (list(slot_pks),),
    )
    return set(rows.scalars())


async def waiting_for_vacated(
    conn: AsyncConnection, chain_scope: ChainScope, address_pk: int, first: int, end: int
) -> Sequence[IntentRow]:
    """Return what waits and has a dead slot in this span of nonces."""
    rows = await conn.exec_driver_sql(
        f"SELECT {INTENT} FROM outbound_intents i {JOINS} WHERE i.state = 'waiting' AND i.id IN"  # noqa: S608  constants
        " (SELECT intent_pk FROM outbound_slots WHERE address_pk = $3 AND chain = $1 AND scope = $2"
        " AND sequence >= $4 AND sequence < $5 AND state = 'dead') ORDER BY i.id",
        (*chain_scope.key, address_pk, first, end),
    )
    return [intent_row(row, reason=row.reason) for row in rows]


async def open_again(conn: AsyncConnection, slot_pks: Sequence[int], now: datetime) -> None:
    """Have dead slots be open, and their intents be sent in them."""
    await conn.exec_driver_sql(
        "WITH txs AS (UPDATE outbound_txs SET state = 'sent', tried_at = NULL WHERE slot_pk = ANY($1::bigint[])),"
        " slots AS (UPDATE outbound_slots SET state = 'open', missing_since = NULL WHERE id = ANY($1::bigint[])"
        " RETURNING intent_pk) UPDATE outbound_intents i SET state = 'sending', reason = NULL, retried_at = NULL,"
        " updated_at = $2 FROM slots WHERE i.id = slots.intent_pk",
        (list(slot_pks), now),
    )
