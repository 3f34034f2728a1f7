"""The statements of cancelling: what is to be cancelled, and what is known of its transactions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import OutboundIntent, OutboundSlot, OutboundTx
from cambist.services.chain_scope import ChainScope
from cambist.signer.protocol import Voided

from .rows import INTENT, JOINS, IntentRow, intent_row


async def cancelling(conn: AsyncConnection, chain_scope: ChainScope, now: datetime, limit: int) -> Sequence[IntentRow]:
    """Return intents that somebody has asked to cancel, and that it is time to look at."""
    rows = await conn.exec_driver_sql(
        f"SELECT {INTENT} FROM outbound_intents i {JOINS} WHERE i.chain = $1 AND i.scope = $2 AND i.state = 'waiting'"  # noqa: S608
        " AND i.cancel_asked_at IS NOT NULL AND i.due_at <= $3 ORDER BY i.due_at, i.id LIMIT $4",
        (*chain_scope.key, now, limit),
    )
    return [intent_row(row, reason=row.reason) for row in rows]


async def lock_cancelling(conn: AsyncConnection, intents: Sequence[IntentRow]) -> set[int]:
    """Lock those that are still to be cancelled and have no slot in which they may happen, and return their rows."""
    rows = await conn.exec_driver_sql(
        "SELECT id FROM outbound_intents i WHERE id = ANY($1::bigint[]) AND state = 'waiting'"
        " AND cancel_asked_at IS NOT NULL AND NOT EXISTS (SELECT FROM outbound_slots s WHERE s.intent_pk = i.id"
        " AND s.state <> 'dead') ORDER BY id FOR UPDATE SKIP LOCKED",
        ([one.id for one in intents],),
    )
    return set(rows.scalars())


async def note_signed(conn: AsyncConnection, intent: IntentRow, signed: Voided) -> None:
    """Remember what the signer has told of an intent that may have been sent, for whoever looks for it on the chain."""
    sequence = signed.slot_number if signed.tx_id is None else None
    own = update(OutboundIntent).where(OutboundIntent.id == intent.id)
    await conn.execute(own.values(signed_sequence=sequence, signed_tx_id=signed.tx_id))


async def dead_txs(conn: AsyncConnection, intent: IntentRow) -> set[str]:
    """Return the ids of the intent's transactions that can never be mined, as was proven."""
    dead = select(OutboundTx.tx_id).join(OutboundSlot, OutboundSlot.id == OutboundTx.slot_pk)
    dead = dead.where(OutboundSlot.intent_pk == intent.id, OutboundSlot.state == "dead")
    return set((await conn.execute(dead)).scalars())
