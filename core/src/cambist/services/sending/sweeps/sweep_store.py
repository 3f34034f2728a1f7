"""The statements of sweeps: which collections could go together, and those that do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import IntentKind
from cambist.services.chain_scope import ChainScope
from cambist.services.sending.rows import INTENT, JOINS, IntentRow, OwnPath, intent_row
from cambist.services.sending.store import SWEPT

# What has been in a sweep, or had a nonce slot of its own, is sent one by one from then on; and an address
# that sends, or is about to get gas, must not be swept: its sequence and its gas are spoken for.
_FREE = f"""
i.state = 'waiting' AND i.sweep_pk IS NULL AND NOT EXISTS (SELECT FROM outbound_slots s WHERE s.intent_pk = i.id)
AND NOT EXISTS (
    SELECT FROM outbound_slots s WHERE s.address_pk = i.source_address_pk AND s.chain = i.chain AND s.scope = i.scope
        AND s.state = 'open'
) AND NOT EXISTS (
    SELECT FROM outbound_intents t WHERE t.recipient_address_pk = i.source_address_pk AND t.chain = i.chain
        AND t.scope = i.scope AND t.kind = '{IntentKind.TOP_UP}' AND t.state IN ('waiting', 'sending')
) AND NOT {SWEPT.replace("w.", "i.")}
"""  # noqa: S608  constants


async def candidates(
    conn: AsyncConnection, chain_scope: ChainScope, reasons: Sequence[str], now: datetime, limit: int
) -> Sequence[IntentRow]:
    """Return collections that nobody has tried to send yet, or that wait for one of these reasons; in their order."""
    rows = await conn.exec_driver_sql(
        f"SELECT {INTENT} FROM outbound_intents i {JOINS} WHERE i.chain = $1 AND i.scope = $2"  # noqa: S608  constants
        f" AND i.kind = '{IntentKind.COLLECTION}' AND src.purpose = 'payment' AND i.due_at <= $3"
        f" AND (i.reason IS NULL OR i.reason = ANY($4::text[])) AND {_FREE} ORDER BY i.priority, i.id LIMIT $5",
        (*chain_scope.key, now, list(reasons), limit),
    )
    return [intent_row(row, reason=row.reason) for row in rows]


async def lock_free(conn: AsyncConnection, chain_scope: ChainScope, intents: Sequence[IntentRow]) -> bool:
    """Lock the collections and their senders, in order; return whether all of them still can go together."""
    await conn.exec_driver_sql(
        "INSERT INTO outbound_senders AS s (address_pk, chain, scope) SELECT *, $1, $2 FROM unnest($3::bigint[])"
        " ON CONFLICT (address_pk, chain, scope) DO UPDATE SET next_sequence = s.next_sequence",
        (*chain_scope.key, sorted({one.source.pk for one in intents})),
    )
    rows = await conn.exec_driver_sql(
        f"SELECT i.id FROM outbound_intents i WHERE i.id = ANY($1::bigint[]) AND {_FREE} ORDER BY i.id"  # noqa: S608
        " FOR UPDATE SKIP LOCKED",
        ([one.id for one in intents],),
    )
    return len(list(rows)) == len(intents)


async def read_intent(conn: AsyncConnection, intent_pk: int) -> IntentRow:
    found = await conn.exec_driver_sql(f"SELECT {INTENT} FROM outbound_intents i {JOINS} WHERE i.id = $1", (intent_pk,))  # noqa: S608
    return intent_row(found.one())


async def own_path(conn: AsyncConnection, address_pk: int) -> OwnPath:
    found = await conn.exec_driver_sql(
        "SELECT id, address, purpose, merchant_pk, account_index, change, address_index FROM addresses WHERE id = $1",
        (address_pk,),
    )
    row = found.one()
    return OwnPath(row.id, row.address, row.purpose, row.merchant_pk, row.account_index, row.change, row.address_index)


async def join_sweep(conn: AsyncConnection, sweep_pk: int, intents: Sequence[IntentRow], now: datetime) -> None:
    await conn.exec_driver_sql(
        "UPDATE outbound_intents SET state = 'sending', sweep_pk = $2, reason = NULL, retried_at = NULL,"
        " updated_at = $3"
        " WHERE id = ANY($1::bigint[])",
        ([one.id for one in intents], sweep_pk, now),
    )


async def swept(conn: AsyncConnection, sweep_pks: Sequence[int], state: str) -> Sequence[tuple[int, IntentRow]]:
    """Return the collections of sweeps that are in this state, locked, each with its sweep's primary key."""
    rows = await conn.exec_driver_sql(
        f"SELECT {INTENT}, i.sweep_pk FROM outbound_intents i {JOINS} WHERE i.sweep_pk = ANY($1::bigint[])"  # noqa: S608
        " AND i.state = $2 ORDER BY i.id FOR UPDATE OF i",
        (list(sweep_pks), state),
    )
    return [(row.sweep_pk, intent_row(row)) for row in rows]


async def set_state(
    conn: AsyncConnection, intents: Sequence[IntentRow], state: str, *, reason: str | None, now: datetime
) -> None:
    """Let collections wait again, or be on their way again."""
    await conn.exec_driver_sql(
        "UPDATE outbound_intents SET state = $2, reason = $3, due_at = $4, updated_at = $4, finished_at = NULL"
        " WHERE id = ANY($1::bigint[])",
        ([one.id for one in intents], state, reason, now),
    )
