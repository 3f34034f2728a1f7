"""The statements of a poll: cursor, blocks and deposits as rows. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import structlog
from msgspec import Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import transposed
from cambist.domain.intents import INTERNAL
from cambist.domain.money import UNITS_MAX
from cambist.plugin import AddressFamily, Block, Head, InconsistentChainError, ScanResult, Transfer
from cambist.ports import Ids
from cambist.services.chain_scope import ChainScope

log = structlog.get_logger(__name__)

KEPT_HEIGHTS_MAX = 1_000
"""How many blocks beyond the recent ones are looked at for a fork: years of deposits keep as many in a table."""


class WatchedChain(ChainScope, frozen=True, kw_only=True):
    """A chain whose transfers are stored: ``ids`` makes the identifiers of deposits and events."""

    family: AddressFamily
    ids: Ids


class Cursor(Struct, frozen=True):
    """The last block whose transfers are all stored."""

    height: int
    hash: str


class CursorMovedError(Exception):
    """Another watcher was faster: what this one read is already stored, or will be read again."""


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


async def load_cursor(conn: AsyncConnection, chain_scope: ChainScope) -> Cursor | None:
    """Return where the chain was read to, or None before the first poll."""
    found = await conn.exec_driver_sql(
        "SELECT height, hash FROM chain_cursors WHERE chain = $1 AND scope = $2", chain_scope.key
    )
    row = found.first()
    return None if row is None else Cursor(row.height, row.hash)


async def oldest_payment(conn: AsyncConnection, chain_scope: ChainScope) -> datetime | None:
    """Return when the first payment was made that asks for money on this chain."""
    # A simulated chain's scope is its project, which says the same again for the sake of the index.
    created = await conn.exec_driver_sql(
        "SELECT min(created_at) FROM payments WHERE chain = $1 AND scope = $2 AND ($2 = 0 OR project_pk = $2)",
        chain_scope.key,
    )
    found: datetime | None = created.scalar_one()
    return found


async def create_cursor(
    conn: AsyncConnection, chain_scope: ChainScope, block: Block, earlier: Sequence[Block], now: datetime
) -> Cursor:
    """Remember where reading begins: this block counts as read, and the earlier ones for finding a fork.

    The first of several callers decides.
    """
    begun = await conn.exec_driver_sql(
        "INSERT INTO chain_cursors (chain, scope, height, hash, head, updated_at) VALUES ($1, $2, $3, $4, $3, $5)"
        " ON CONFLICT DO NOTHING",
        (*chain_scope.key, block.height, block.hash, now),
    )
    if begun.rowcount:
        await _insert_blocks(conn, chain_scope, [block, *earlier], kept=set())
    cursor = await load_cursor(conn, chain_scope)
    if cursor is None:
        raise AssertionError("the cursor was just created")
    return cursor


async def move_cursor(  # noqa: PLR0913  a compare-and-set names both sides
    conn: AsyncConnection, chain_scope: ChainScope, *, old: Cursor, new: Cursor, head: Head, now: datetime
) -> None:
    """Compare and set the cursor. Raises CursorMovedError when it no longer stands where it was read."""
    moved = await conn.exec_driver_sql(
        "UPDATE chain_cursors SET height = $3, hash = $4, head = $5, finalized = $6, updated_at = $7"
        " WHERE chain = $1 AND scope = $2 AND height = $8 AND hash = $9",
        (*chain_scope.key, new.height, new.hash, head.height, head.finalized_height, now, old.height, old.hash),
    )
    if moved.rowcount != 1:
        raise CursorMovedError(f"{chain_scope.info.id}: another watcher moved the cursor")


async def stored_hash(conn: AsyncConnection, chain_scope: ChainScope, height: int) -> str | None:
    found = await conn.exec_driver_sql(
        "SELECT hash FROM chain_blocks WHERE chain = $1 AND scope = $2 AND height = $3", (*chain_scope.key, height)
    )
    known: str | None = found.scalar()
    return known


async def stored_heights(conn: AsyncConnection, chain_scope: ChainScope) -> Sequence[int]:
    """Return the heights of the remembered blocks, ascending: all recent ones, and the newest of those kept."""
    rows = await conn.exec_driver_sql(
        "SELECT height FROM chain_blocks WHERE chain = $1 AND scope = $2 ORDER BY height DESC LIMIT $3",
        (*chain_scope.key, chain_scope.info.hashes_kept + 1 + KEPT_HEIGHTS_MAX),
    )
    return sorted(row.height for row in rows)


async def forget_above(conn: AsyncConnection, chain_scope: ChainScope, height: int) -> None:
    """Forget the blocks that left the chain."""
    await conn.exec_driver_sql(
        "DELETE FROM chain_blocks WHERE chain = $1 AND scope = $2 AND height > $3", (*chain_scope.key, height)
    )


async def _insert_blocks(
    conn: AsyncConnection, chain_scope: ChainScope, blocks: Sequence[Block], kept: set[int]
) -> None:
    rows = [(one.height, one.hash, one.parent_hash, moment(one.time), one.height in kept) for one in blocks]
    await conn.exec_driver_sql(
        "INSERT INTO chain_blocks (chain, scope, height, hash, parent_hash, mined_at, kept)"
        " SELECT $1, $2, * FROM unnest($3::bigint[], $4::text[], $5::text[], $6::timestamptz[], $7::bool[])"
        " ON CONFLICT DO NOTHING",
        (*chain_scope.key, *transposed(rows)),
    )


PRUNE = "DELETE FROM chain_blocks WHERE chain = $1 AND scope = $2 AND height < $3 AND NOT kept"


_OWNERS = """
SELECT a.address, a.id AS address_pk, a.merchant_pk, p.id AS payment_pk, p.chain, p.contract,
       p.required_confirmations
FROM addresses a LEFT JOIN payments p ON p.id = a.payment_pk
WHERE a.mode = $1 AND a.family = $2 AND a.address = ANY($3::text[])
    AND (p.scope = $4 OR p.id IS NULL AND $4 = 0)
"""

_OURS = """
SELECT address, purpose, merchant_pk FROM addresses WHERE mode = $1 AND family = $2 AND address = ANY($3::text[])
"""

_SENT = """
SELECT t.tx_id, i.kind FROM outbound_txs t
    JOIN outbound_slots s ON s.id = t.slot_pk JOIN outbound_intents i ON i.id = s.intent_pk
WHERE t.chain = $1 AND t.scope = $2 AND t.tx_id = ANY($3::text[])
"""


async def save(conn: AsyncConnection, chain_scope: WatchedChain, result: ScanResult, now: datetime) -> int:
    """Store a scan's blocks and its transfers to addresses of ours; return how many deposits are new.

    A transfer that is stored and stands changes nothing; one that was orphaned lives again, in its next
    incarnation. What we move between addresses of ours is no deposit.
    """
    owners = await _owners(conn, chain_scope, result.transfers)
    wanted = [
        transfer for transfer in result.transfers if transfer.recipient in owners and _countable(chain_scope, transfer)
    ]
    internal = await _internal(conn, chain_scope, wanted, owners)
    wanted = [transfer for transfer in wanted if transfer.tx_id not in internal]
    await _insert_blocks(conn, chain_scope, result.blocks, kept={transfer.height for transfer in wanted})
    await conn.exec_driver_sql(PRUNE, (*chain_scope.key, result.blocks[-1].height - chain_scope.info.hashes_kept))
    if not wanted:
        return 0
    times = {block.height: moment(block.time) for block in result.blocks}
    rows = [
        _row(chain_scope, transfer, owners[transfer.recipient], ordinal, times)
        for ordinal, transfer in enumerate(wanted)
    ]
    fresh = list(await conn.exec_driver_sql(_UPSERT, (*chain_scope.key, chain_scope.mode, now, *transposed(rows))))
    if len(fresh) < len(rows):
        await _check_standing(conn, chain_scope, wanted, {(row.tx_id, row.position) for row in fresh})
    await mark_dirty(conn, chain_scope, {row.payment_pk for row in fresh if row.payment_pk is not None})
    return len(fresh)


def _countable(chain_scope: ChainScope, transfer: Transfer) -> bool:
    """Refuse an amount that no token has: only a contract that turned hostile says so, and sums must stay sums."""
    if transfer.amount <= UNITS_MAX:
        return True
    log.error("transfer_beyond_belief", chain=chain_scope.info.id, tx_id=transfer.tx_id, contract=transfer.contract)
    return False


async def _owners(
    conn: AsyncConnection, chain_scope: WatchedChain, transfers: Sequence[Transfer]
) -> Mapping[str, Row[Any]]:
    """Return what is known of the recipients that are ours, and of the payments they were handed out for."""
    if not transfers:
        return {}
    recipients = list({transfer.recipient for transfer in transfers})
    found = await conn.exec_driver_sql(
        _OWNERS, (chain_scope.mode, chain_scope.family.name, recipients, chain_scope.scope)
    )
    return {row.address: row for row in found}


async def _internal(
    conn: AsyncConnection, chain_scope: WatchedChain, transfers: Sequence[Transfer], owners: Mapping[str, Row[Any]]
) -> set[str]:
    """Return the transactions in which we moved money between addresses of ours.

    The books of what we sent decide. Where they do not know a transaction, because they begin after it, gas is
    never a deposit, nor is what a merchant's address sends to another of its own.
    """
    senders = list({transfer.sender for transfer in transfers if transfer.sender is not None})
    if not senders:
        return set()
    ours = {
        row.address: row
        for row in await conn.exec_driver_sql(_OURS, (chain_scope.mode, chain_scope.family.name, senders))
    }
    suspects = [transfer for transfer in transfers if transfer.sender in ours]
    if not suspects:
        return set()
    tx_ids = list({transfer.tx_id for transfer in suspects})
    kinds = {row.tx_id: row.kind for row in await conn.exec_driver_sql(_SENT, (*chain_scope.key, tx_ids))}
    internal = set()
    for transfer in suspects:
        kind, sender = kinds.get(transfer.tx_id), ours[transfer.sender or ""]
        same_owner = sender.merchant_pk == owners[transfer.recipient].merchant_pk
        if kind in INTERNAL or (kind is None and (sender.purpose == "gas" or same_owner)):
            internal.add(transfer.tx_id)
    return internal


def _row(
    chain_scope: WatchedChain, transfer: Transfer, owner: Row[Any], ordinal: int, times: Mapping[int, datetime]
) -> tuple[Any, ...]:
    token = chain_scope.token(transfer.contract)
    right_chain = owner.chain == chain_scope.info.id
    return (
        chain_scope.ids.new("dep"),
        transfer.tx_id,
        transfer.position,
        owner.merchant_pk,
        owner.address_pk,
        owner.payment_pk,
        owner.payment_pk is not None and right_chain and owner.contract == transfer.contract,
        token.symbol,
        token.contract,
        token.decimals,
        transfer.amount,
        transfer.sender,
        transfer.height,
        transfer.block_hash,
        ordinal,
        times[transfer.height],
        owner.required_confirmations if right_chain else max(1, chain_scope.info.confirmations),
    )


_UPSERT = """
INSERT INTO deposits AS d (
    chain, scope, mode, detected_at, deposit_id, tx_id, position, merchant_pk, address_pk, payment_pk, matches, token,
    contract, decimals, units, sender, height, block_hash, ordinal, mined_at, required_confirmations
)
SELECT $1, $2, $3, $4, * FROM unnest(
    $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bool[], $12::text[],
    $13::text[], $14::bigint[], $15::numeric[], $16::text[], $17::bigint[], $18::text[], $19::bigint[],
    $20::timestamptz[], $21::bigint[]
)
ON CONFLICT (chain, scope, tx_id, position) DO UPDATE SET
    status = 'detected', incarnation = d.incarnation + 1, detected_at = excluded.detected_at, orphaned_at = NULL,
    confirmed_at = NULL, merchant_pk = excluded.merchant_pk, address_pk = excluded.address_pk,
    payment_pk = excluded.payment_pk, matches = excluded.matches, token = excluded.token,
    contract = excluded.contract, decimals = excluded.decimals, units = excluded.units, sender = excluded.sender,
    height = excluded.height, block_hash = excluded.block_hash, ordinal = excluded.ordinal,
    mined_at = excluded.mined_at, required_confirmations = excluded.required_confirmations
WHERE d.status = 'orphaned'
RETURNING d.payment_pk, d.height, d.tx_id, d.position
"""


async def _check_standing(
    conn: AsyncConnection, chain_scope: ChainScope, transfers: Sequence[Transfer], fresh: set[tuple[str, str]]
) -> None:
    """Refuse a node that shows, in a second block, a transfer which already stands in another."""
    for transfer in transfers:
        if (transfer.tx_id, transfer.position) in fresh:
            continue
        standing = await conn.exec_driver_sql(
            "SELECT block_hash FROM deposits WHERE chain = $1 AND scope = $2 AND tx_id = $3 AND position = $4",
            (*chain_scope.key, transfer.tx_id, transfer.position),
        )
        if standing.scalar_one() != transfer.block_hash:
            raise InconsistentChainError(
                f"{chain_scope.info.id}: transaction {transfer.tx_id} stands in two blocks at once"
            )


async def mark_dirty(conn: AsyncConnection, chain_scope: ChainScope, payment_pks: set[int]) -> None:
    """Have payments judged at the next poll that ends at the head; locked in order, as judging locks them.

    Payments of another chain, whose money came here by mistake, are left to its own watcher: nothing about them
    changes, and two watchers that hold each other's payments would wait for each other.
    """
    if payment_pks:
        await conn.exec_driver_sql(
            "WITH due AS (SELECT id FROM payments WHERE id = ANY($1::bigint[]) AND chain = $2 AND scope = $3"
            " ORDER BY id FOR NO KEY UPDATE) UPDATE payments SET dirty = true FROM due WHERE payments.id = due.id",
            (sorted(payment_pks), *chain_scope.key),
        )
