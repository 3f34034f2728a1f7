"""The statements of sweeps: which collections could go together, and those that do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from .rows import INTENT, JOINS, IntentRow, OwnPath, Site, intent_row
from .store import SWEPT

# Whoever has been in a sweep, or had a place of its own in a sequence, goes the plain way from then on; and an address
# that sends, or is about to get gas, must not be swept: its sequence and its gas are spoken for.
_FREE = f"""
i.state = 'waiting' AND i.sweep_id IS NULL AND NOT EXISTS (SELECT FROM outbound_slots s WHERE s.intent_id = i.id)
AND NOT EXISTS (
    SELECT FROM outbound_slots s WHERE s.address_id = i.source_address_id AND s.chain = i.chain AND s.scope = i.scope
        AND s.state = 'open'
) AND NOT EXISTS (
    SELECT FROM outbound_intents t WHERE t.recipient_address_id = i.source_address_id AND t.chain = i.chain
        AND t.scope = i.scope AND t.kind = 'top_up' AND t.state IN ('waiting', 'sending')
) AND NOT {SWEPT.replace("w.", "i.")}
"""  # noqa: S608  constants


async def candidates(
    conn: AsyncConnection, site: Site, reasons: Sequence[str], now: datetime, limit: int
) -> Sequence[IntentRow]:
    """Return collections that nobody has tried to send yet, or that wait for one of these reasons; in their order."""
    rows = await conn.exec_driver_sql(
        f"SELECT {INTENT} FROM outbound_intents i {JOINS} WHERE i.chain = $1 AND i.scope = $2"  # noqa: S608  constants
        " AND i.kind = 'collection' AND src.purpose = 'payment' AND i.due_at <= $3"
        f" AND (i.reason IS NULL OR i.reason = ANY($4::text[])) AND {_FREE} ORDER BY i.priority, i.id LIMIT $5",
        (*site.key, now, list(reasons), limit),
    )
    return [intent_row(row, reason=row.reason) for row in rows]


async def lock_free(conn: AsyncConnection, site: Site, intents: Sequence[IntentRow]) -> bool:
    """Lock the collections and their senders, in order; return whether all of them still can go together."""
    await conn.exec_driver_sql(
        "INSERT INTO outbound_senders AS s (address_id, chain, scope) SELECT *, $1, $2 FROM unnest($3::bigint[])"
        " ON CONFLICT (address_id, chain, scope) DO UPDATE SET next_sequence = s.next_sequence",
        (*site.key, sorted({one.source.row for one in intents})),
    )
    rows = await conn.exec_driver_sql(
        f"SELECT i.id FROM outbound_intents i WHERE i.id = ANY($1::bigint[]) AND {_FREE} ORDER BY i.id"  # noqa: S608
        " FOR UPDATE SKIP LOCKED",
        ([one.id for one in intents],),
    )
    return len(list(rows)) == len(intents)


async def read_intent(conn: AsyncConnection, row: int) -> IntentRow:
    """Return an intent by its row."""
    found = await conn.exec_driver_sql(f"SELECT {INTENT} FROM outbound_intents i {JOINS} WHERE i.id = $1", (row,))  # noqa: S608
    return intent_row(found.one())


async def own_path(conn: AsyncConnection, address_row: int) -> OwnPath:
    """Return where an address of ours is derived."""
    found = await conn.exec_driver_sql(
        "SELECT id, address, purpose, merchant_id, account_index, change, address_index FROM addresses WHERE id = $1",
        (address_row,),
    )
    row = found.one()
    return OwnPath(row.id, row.address, row.purpose, row.merchant_id, row.account_index, row.change, row.address_index)


async def join_sweep(conn: AsyncConnection, sweep_row: int, intents: Sequence[IntentRow], now: datetime) -> None:
    """Let collections go with a sweep."""
    await conn.exec_driver_sql(
        "UPDATE outbound_intents SET state = 'sending', sweep_id = $2, reason = NULL, updated_at = $3"
        " WHERE id = ANY($1::bigint[])",
        ([one.id for one in intents], sweep_row, now),
    )


async def swept(conn: AsyncConnection, sweep_rows: Sequence[int], state: str) -> Sequence[tuple[int, IntentRow]]:
    """Return the collections of sweeps that are in this state, locked, each with its sweep's row."""
    rows = await conn.exec_driver_sql(
        f"SELECT {INTENT}, i.sweep_id FROM outbound_intents i {JOINS} WHERE i.sweep_id = ANY($1::bigint[])"  # noqa: S608
        " AND i.state = $2 ORDER BY i.id FOR UPDATE OF i",
        (list(sweep_rows), state),
    )
    return [(row.sweep_id, intent_row(row)) for row in rows]


async def set_state(
    conn: AsyncConnection, intents: Sequence[IntentRow], state: str, *, reason: str | None, now: datetime
) -> None:
    """Let collections wait again, or be on their way again."""
    await conn.exec_driver_sql(
        "UPDATE outbound_intents SET state = $2, reason = $3, due_at = $4, updated_at = $4, finished_at = NULL"
        " WHERE id = ANY($1::bigint[])",
        ([one.id for one in intents], state, reason, now),
    )
