"""The statements of what became of transactions: mined, deep in the chain, undone, dead."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import transposed
from cambist.domain.failures import SENTENCES, Failure
from cambist.plugin import Block, TxStatus
from cambist.services.chain_scope import ChainScope
from cambist.services.receiving.deposits.rows import lock_cursor
from cambist.services.receiving.deposits.store import stored_hash

from .rows import TX, TX_COLUMNS, TX_JOINS, IntentRow, TxRow, tx_row

REVERTED = SENTENCES[Failure.REVERTED]
CANCELLED = SENTENCES[Failure.NOT_TAKEN]

FINISHED_MAX = 500
"""Transactions that become final in one transaction of the database."""


class Depth(Struct, frozen=True):
    """How far the chain was read, and the highest block that counts as deep."""

    height: int
    deep: int


async def depth(conn: AsyncConnection, chain_scope: ChainScope) -> Depth | None:
    """Return how deep the chain is known: to the watcher, whose blocks are linked one to the next."""
    row = (
        await conn.exec_driver_sql(
            "SELECT height, finalized FROM chain_cursors WHERE chain = $1 AND scope = $2", chain_scope.key
        )
    ).first()
    return None if row is None else depth_of(chain_scope, row.height, row.finalized)


async def lock_depth(conn: AsyncConnection, chain_scope: ChainScope) -> Depth | None:
    """Return the same, and keep polls of the chain from being stored until the transaction ends."""
    read = await lock_cursor(conn, *chain_scope.key)
    return None if read is None else depth_of(chain_scope, read.height, read.finalized_height)


def depth_of(chain_scope: ChainScope, height: int, finalized: int | None) -> Depth:
    """Return the same of a cursor that the caller has read."""
    return Depth(height, chain_scope.deepest(height - max(1, chain_scope.info.confirmations), finalized))


async def is_deep(conn: AsyncConnection, chain_scope: ChainScope, block: Block) -> bool:
    """Whether a block is deep in the chain as the watcher knows it, by the rule of ``close_final()``.

    Of one that is older than what the watcher remembers, only the height is judged here.
    """
    known = await depth(conn, chain_scope)
    if known is None or block.height > known.deep:
        return False
    hash_ = await stored_hash(conn, chain_scope, block.height)
    return block.height < known.height - chain_scope.info.hashes_kept if hash_ is None else hash_ == block.hash


async def note_mined(conn: AsyncConnection, found: Sequence[tuple[TxRow, TxStatus]]) -> None:
    """Remember the blocks in which transactions stand, or that they stand in none any more."""
    rows = [
        (tx.id, block.height, block.hash, status.state == "succeeded", status.fee or 0)
        if (block := status.block) is not None
        else (tx.id, None, None, None, None)
        for tx, status in found
    ]
    await conn.exec_driver_sql(
        "WITH seen AS (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bool[], $5::numeric[])"
        " AS n (id, height, hash, succeeded, fee)), due AS (SELECT t.id FROM outbound_txs t JOIN seen USING (id)"
        " WHERE t.state IN ('stored', 'sent', 'mined') ORDER BY t.id FOR UPDATE OF t)"
        " UPDATE outbound_txs t SET state = CASE WHEN seen.height IS NULL THEN 'sent' ELSE 'mined' END,"
        " height = seen.height, block_hash = seen.hash, succeeded = seen.succeeded, fee_paid = seen.fee"
        " FROM seen JOIN due USING (id) WHERE t.id = seen.id",
        tuple(transposed(rows)),
    )


_DEEP = """
FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk
    LEFT JOIN chain_blocks b ON b.chain = t.chain AND b.scope = t.scope AND b.height = t.height
WHERE t.chain = $1 AND t.scope = $2 AND t.state = 'mined' AND t.height <= $3 AND s.state = 'open'
    AND (b.hash = t.block_hash OR b.hash IS NULL AND t.height < $4)
"""


async def close_final(conn: AsyncConnection, chain_scope: ChainScope, found: Depth, now: datetime) -> Sequence[TxRow]:
    """Make transactions final whose block is deep, close their slots, end their intents, and return them as they are.

    All of it is locked until the end. The block must be the one that the watcher knows at its height, or older than
    what the watcher remembers. What an intent counts as its incarnation goes on where an earlier transaction of it, or
    the sweep it was in, left off.
    """
    key = (*chain_scope.key, found.deep, found.height - chain_scope.info.hashes_kept)
    # The array is known before the first slot is locked, so that the order is everybody's.
    due = await conn.exec_driver_sql(
        f"SELECT id FROM outbound_slots WHERE id = ANY(ARRAY(SELECT t.slot_pk {_DEEP} ORDER BY t.id LIMIT $5))"  # noqa: S608
        " ORDER BY id FOR UPDATE",
        (*key, FINISHED_MAX),
    )
    slots = list(due.scalars())
    if not slots:
        return []
    await _lock_txs(conn, slots)
    # What it reads is as it was before: of that, it has changed just what it tells beside it.
    rows = await conn.exec_driver_sql(
        "WITH due AS (SELECT t.id, t.slot_pk, (SELECT max(o.incarnation) FROM outbound_txs o JOIN outbound_slots p"  # noqa: S608  constants
        " ON p.id = o.slot_pk WHERE p.intent_pk = s.intent_pk OR p.intent_pk = (SELECT i.sweep_pk FROM"
        f" outbound_intents i WHERE i.id = s.intent_pk)) AS before {_DEEP} AND s.id = ANY($5::bigint[])),"
        " finals AS (UPDATE outbound_txs t SET state = 'final', incarnation = due.before + 1 FROM due"
        " WHERE t.id = due.id RETURNING t.id, t.slot_pk, t.role, t.succeeded, t.state, t.incarnation),"
        " others AS (UPDATE outbound_txs t SET state = 'gone' FROM finals WHERE t.slot_pk = finals.slot_pk"
        " AND t.id <> finals.id), slots AS (UPDATE outbound_slots s SET state = CASE WHEN finals.role = 'cancel' THEN"
        " 'cancelled' WHEN finals.succeeded THEN 'done' ELSE 'reverted' END FROM finals WHERE s.id = finals.slot_pk),"
        " ends AS (SELECT i.id, CASE WHEN finals.role = 'cancel' THEN $7::text"
        " WHEN finals.succeeded IS NOT TRUE THEN $8::text END AS reason"
        " FROM finals JOIN outbound_slots s ON s.id = finals.slot_pk JOIN outbound_intents i ON i.id = s.intent_pk"
        " ORDER BY i.id FOR NO KEY UPDATE OF i),"
        " ended AS (UPDATE outbound_intents i SET state = CASE WHEN ends.reason IS NULL THEN 'done' ELSE 'failed' END,"
        " reason = ends.reason, finished_at = $6, updated_at = $6 FROM ends WHERE i.id = ends.id"
        " RETURNING i.id, i.state, i.reason)"
        f" SELECT {TX_COLUMNS}, finals.state AS new_state, finals.incarnation AS new_incarnation,"
        " ended.state AS new_intent_state, ended.reason AS new_reason"
        f" FROM {TX_JOINS} JOIN finals ON finals.id = t.id JOIN ended ON ended.id = i.id ORDER BY t.height, t.id",
        (*key, slots, now, CANCELLED, REVERTED),
    )
    return [tx_row(row, is_closed=True) for row in rows]


async def reopen_undone(
    conn: AsyncConnection, chain_scope: ChainScope, found: Depth, states: Sequence[str] = ("done",)
) -> Sequence[TxRow]:
    """Open nonce slots in these states again whose block has left the chain; return their transactions as they were.

    The intent of one that had failed keeps the reason for it: its money was given back, and may be spent by now.
    """
    rows = await conn.exec_driver_sql(
        "SELECT t.id, t.slot_pk FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
        " AND s.state = ANY($6::text[])"
        " LEFT JOIN chain_blocks b ON b.chain = t.chain AND b.scope = t.scope AND b.height = t.height"
        " WHERE t.chain = $1 AND t.scope = $2 AND t.state = 'final' AND t.height > $4"
        " AND (t.height > $3 OR b.hash <> t.block_hash) ORDER BY t.id LIMIT $5",
        (*chain_scope.key, found.height, found.height - chain_scope.info.hashes_kept, FINISHED_MAX, list(states)),
    )
    due = rows.all()
    if not due:
        return []
    await _lock(conn, [row.slot_pk for row in due])
    undone = await _read(conn, [row.id for row in due])
    await conn.exec_driver_sql(
        "WITH txs AS (UPDATE outbound_txs SET state = 'sent', height = NULL, block_hash = NULL, succeeded = NULL,"
        " fee_paid = NULL, tried_at = NULL WHERE slot_pk = ANY($1::bigint[])), slots AS (UPDATE outbound_slots"
        " SET state = 'open' WHERE id = ANY($1::bigint[])) UPDATE outbound_intents SET state = 'sending',"
        " finished_at = NULL WHERE id = ANY($2::bigint[])",
        ([tx.slot_pk for tx in undone], [tx.intent.id for tx in undone]),
    )
    return undone


async def finish(
    conn: AsyncConnection, intents: Sequence[IntentRow], state: str, reason: str | None, now: datetime
) -> None:
    """End intents: ``done`` or ``failed``."""
    await conn.exec_driver_sql(
        "UPDATE outbound_intents SET state = $2, reason = $3, finished_at = $4, updated_at = $4"
        " WHERE id = ANY($1::bigint[])",
        ([one.id for one in intents], state, reason, now),
    )


async def note_missing(conn: AsyncConnection, slots: Sequence[int], height: int | None) -> None:
    """Remember from which height on something else seems to have taken these nonce slots; None: nothing has."""
    await conn.exec_driver_sql(
        "WITH due AS (SELECT id FROM outbound_slots WHERE id = ANY($1::bigint[]) AND state = 'open' ORDER BY id"
        " FOR UPDATE) UPDATE outbound_slots s SET missing_since = $2 FROM due WHERE s.id = due.id",
        (list(slots), height),
    )


async def read_in_blocks(conn: AsyncConnection, chain_scope: ChainScope, slots: Sequence[int]) -> set[int]:
    """Return the nonce slots of which the watcher has read a transaction in a block that stands, as far as it knows."""
    rows = await conn.exec_driver_sql(
        "SELECT t.slot_pk FROM outbound_txs t JOIN chain_blocks b ON b.chain = t.chain AND b.scope = t.scope"
        " AND b.height = t.read_height AND b.hash = t.read_hash"
        " WHERE t.chain = $1 AND t.scope = $2 AND t.slot_pk = ANY($3::bigint[])",
        (*chain_scope.key, list(slots)),
    )
    return set(rows.scalars())


async def mark_dead(conn: AsyncConnection, slot_pk: int, now: datetime) -> None:
    """Close a slot in which nothing of ours can ever be mined; its intent waits for another one."""
    await conn.exec_driver_sql(
        "WITH txs AS (UPDATE outbound_txs SET state = 'gone' WHERE slot_pk = $1), slots AS (UPDATE outbound_slots"
        " SET state = 'dead' WHERE id = $1 RETURNING intent_pk) UPDATE outbound_intents i SET state = 'waiting',"
        " due_at = $2, updated_at = $2 FROM slots WHERE i.id = slots.intent_pk",
        (slot_pk, now),
    )


async def _lock(conn: AsyncConnection, slots: Sequence[int]) -> None:
    """Lock nonce slots, then all their transactions, each in the order of their ids, as everybody locks them."""
    await conn.exec_driver_sql(
        "SELECT id FROM outbound_slots WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE", (list(slots),)
    )
    await _lock_txs(conn, slots)


async def _lock_txs(conn: AsyncConnection, slots: Sequence[int]) -> None:
    """Lock all transactions of slots that are locked: a statement of its own sees what came before that."""
    await conn.exec_driver_sql(
        "SELECT id FROM outbound_txs WHERE slot_pk = ANY($1::bigint[]) ORDER BY id FOR UPDATE", (list(slots),)
    )


async def _read(conn: AsyncConnection, ids: Sequence[int]) -> Sequence[TxRow]:
    if not ids:
        return []
    rows = await conn.exec_driver_sql(f"{TX} WHERE t.id = ANY($1::bigint[]) ORDER BY t.height, t.id", (list(ids),))
    return [tx_row(row) for row in rows]
