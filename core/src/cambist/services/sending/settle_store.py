"""The statements of settling: which transactions operators have named, and what is known and stored of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.db.structs import one_of
from cambist.plugin import FoundTx, TxStatus
from cambist.services.chain_scope import ChainScope

from . import finality_store, store
from .rows import IntentRow

_INTENT, _SLOT, _TX = models.OutboundIntent, models.OutboundSlot, models.OutboundTx


class Mined(Struct, frozen=True, kw_only=True):
    """A transaction as it was signed, and what became of it. Its block, if any, is what the chain's view has."""

    found: FoundTx
    status: TxStatus


async def named(conn: AsyncConnection, intents: Sequence[IntentRow]) -> Mapping[int, str]:
    """Return by intent the transaction that an operator has named, as it was written."""
    known = select(_INTENT.id, _INTENT.settle_tx_id).where(
        one_of(_INTENT.id, [one.id for one in intents]), _INTENT.settle_asked_at.is_not(None)
    )
    return {row.id: str(row.settle_tx_id) for row in await conn.execute(known)}


async def public_id(conn: AsyncConnection, intent: IntentRow) -> str:
    """Return the intent's public identifier, by which operators know it."""
    return (await conn.execute(select(_INTENT.intent_id).where(_INTENT.id == intent.id))).scalar_one()


async def note(conn: AsyncConnection, intent: IntentRow, tx_id: str, refusal: str | None, now: datetime) -> None:
    """Say what came of a transaction that was named, unless another one was named meanwhile."""
    own = update(_INTENT).where(_INTENT.id == intent.id, _INTENT.settle_tx_id == tx_id)
    await conn.execute(own.values(settle_asked_at=None, settle_refusal=refusal, updated_at=now))


async def note_waiting(conn: AsyncConnection, intent: IntentRow, tx_id: str, why: str | None, now: datetime) -> None:
    """Say why a transaction that was named is looked at again, unless that is said, or another one was named."""
    own = update(_INTENT).where(_INTENT.id == intent.id, _INTENT.settle_tx_id == tx_id)
    own = own.where(_INTENT.settle_asked_at.is_not(None), _INTENT.settle_refusal.is_distinct_from(why))
    await conn.execute(own.values(settle_refusal=why, updated_at=now))


async def is_final(conn: AsyncConnection, chain_scope: ChainScope, mined: Mined) -> bool:
    """Whether its block is deep; see ``finality_store.is_deep()``.

    That a block is the chain's which is older than what the watcher remembers, whoever made ``mined`` has seen. The
    caller holds the chain's cursor.
    """
    block = mined.status.block
    return block is not None and await finality_store.is_deep(conn, chain_scope, block)


async def owner_of(conn: AsyncConnection, chain_scope: ChainScope, tx_id: str) -> int | None:
    """Return whose transaction it is by the gateway's books, None where they have none of this id."""
    chain, scope = chain_scope.key
    owner = select(_SLOT.intent_pk).join(_TX, _TX.slot_pk == _SLOT.id)
    owner = owner.where(_TX.chain == chain, _TX.scope == scope, _TX.tx_id == tx_id)
    return (await conn.execute(owner)).scalar_one_or_none()


_REMEMBER = """
WITH slot AS (
    INSERT INTO outbound_slots (intent_pk, address_pk, chain, scope, sequence, created_at)
    VALUES ($1, $2, $3, $4, $5, $6) RETURNING id, intent_pk
), sending AS (
    UPDATE outbound_intents i SET state = 'sending', reason = NULL, retried_at = NULL, updated_at = $6 FROM slot
    WHERE i.id = slot.intent_pk
)
INSERT INTO outbound_txs (
    slot_pk, chain, scope, tx_id, raw, fee_limit, fee_price, fee_tip, fee_extra, valid_until, state, height, block_hash,
    succeeded, fee_paid, created_at
)
SELECT id, $3, $4, $7, $8, $9, $10, $11, $12, $13, 'mined', $14, $15, $16, $17, $6 FROM slot
"""


async def remember(
    conn: AsyncConnection, chain_scope: ChainScope, intent: IntentRow, mined: Mined, now: datetime
) -> None:
    """Store a transaction of an intent that the database has forgotten, as if it had been followed until now.

    Where another intent has had its nonce since, and lost it to this one, the slot is without one.
    """
    found, status, source = mined.found, mined.status, intent.source.pk
    assert status.block is not None  # noqa: S101  it is final
    sequence = found.sequence
    if sequence is not None and await store.slot_use(conn, chain_scope, source, sequence) is not None:
        sequence = None
    await conn.exec_driver_sql(
        _REMEMBER,
        (
            intent.id,
            source,
            *chain_scope.key,
            sequence,
            now,
            found.tx.tx_id,
            found.tx.raw,
            found.fee.limit,
            found.fee.price,
            found.fee.tip,
            found.fee.extra,
            found.valid_until,
            status.block.height,
            status.block.hash,
            status.state == "succeeded",
            status.fee or 0,
        ),
    )
