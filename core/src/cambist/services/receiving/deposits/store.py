"""The statements of a poll: cursor, blocks and deposits as rows. Decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import structlog
from msgspec import Struct, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import transposed
from cambist.domain.money import UNITS_MAX
from cambist.plugin import AddressFamily, InconsistentChainError, ScanResult, Transfer
from cambist.ports import Ids
from cambist.services.chain_scope import ChainScope
from cambist.services.receiving.accounts import events as account_events
from cambist.services.receiving.accounts.snapshots import CURRENCIES, Snapshot, encode, fresh_points

from .blocks import append_blocks, insert_blocks, keep_blocks, moment
from .owners import Minimums, Owners, ends_of, internal_txs, minimums_of, owners_of, why_not_counted
from .sent import Sent

log = structlog.get_logger(__name__)

KEPT_HEIGHTS_MAX = 1_000
"""How many blocks beyond the recent ones are looked at for a fork: years of deposits keep as many in a table."""


class WatchedChain(ChainScope, frozen=True, kw_only=True):
    """A chain whose transfers are stored: ``ids`` makes the identifiers of deposits and events.

    ``fiat_currencies`` is what deposits to accounts are valued in.
    """

    family: AddressFamily
    ids: Ids
    fiat_currencies: Sequence[str] = CURRENCIES


async def oldest_address(conn: AsyncConnection, chain_scope: ChainScope) -> datetime | None:
    """Return when the first payment or account was given an address on this chain."""
    # A simulated chain's scope is its project, which says the same again for the sake of the index.
    created = await conn.exec_driver_sql(
        "SELECT least((SELECT min(created_at) FROM payments"
        " WHERE chain = $1 AND scope = $2 AND ($2 = 0 OR project_pk = $2)),"
        " (SELECT min(c.created_at) FROM account_chains c JOIN accounts a ON a.id = c.account_pk"
        " WHERE c.chain = $1 AND a.mode = $3 AND ($2 = 0 OR a.project_pk = $2)))",
        (*chain_scope.key, chain_scope.mode),
    )
    found: datetime | None = created.scalar_one()
    return found


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


class Saved(Struct, frozen=True, kw_only=True):
    """What storing a scan did: which deposits are new, and of accounts, how many events and whose pages changed.

    ``tracked`` are the ends of its transfers that trackers watch, where that was asked.
    """

    deposits: int = 0
    deposit_ids: Sequence[str] = ()
    events: int = 0
    accounts: Sequence[str] = ()
    tracked: Collection[str] = ()


async def save(
    conn: AsyncConnection,
    chain_scope: WatchedChain,
    result: ScanResult,
    now: datetime,
    sent: Mapping[str, Sent] | None,
) -> Saved:
    """Store a scan's blocks and its transfers to addresses of ours, and tell of those to accounts.

    Blocks with such transfers are kept for ever, and those with what we sent, as ``note_sent`` has noted it.

    A transfer that is stored and stands changes nothing; one that was orphaned lives again, in its next
    incarnation. What we move between addresses of ours is no deposit.
    """
    ends = await ends_of(conn, chain_scope, result.transfers)
    wanted = await _wanted(conn, chain_scope, result, ends.owners, sent)
    heights = {one.height for one in (sent or {}).values()} | {one.height for one in wanted}
    await append_blocks(conn, chain_scope, result.blocks, kept=heights)
    saved = await _save_wanted(conn, chain_scope, result, wanted, ends.owners, now)
    return structs.replace(saved, tracked=ends.tracked)


async def missing(conn: AsyncConnection, chain_scope: WatchedChain, result: ScanResult) -> Sequence[Transfer]:
    """Return the transfers of a scan that are deposits, and that are not stored, or were orphaned."""
    owners = await owners_of(conn, chain_scope, chain_scope.family, result.transfers)
    wanted = await _wanted(conn, chain_scope, result, owners)
    if not wanted:
        return []
    rows = await conn.exec_driver_sql(
        "SELECT tx_id, position FROM deposits WHERE chain = $1 AND scope = $2 AND tx_id = ANY($3::text[])"
        " AND status <> 'orphaned'",
        (*chain_scope.key, list({transfer.tx_id for transfer in wanted})),
    )
    standing = {(row.tx_id, row.position) for row in rows}
    return [transfer for transfer in wanted if (transfer.tx_id, transfer.position) not in standing]


async def save_missing(conn: AsyncConnection, chain_scope: WatchedChain, result: ScanResult, now: datetime) -> Saved:
    """Store what a scan of blocks that the cursor has passed shows and is not stored yet, as ``save`` does.

    Whoever calls this holds the cursor, and knows that the blocks stand below it. Blocks are kept where they hold
    something of ours.
    """
    owners = await owners_of(conn, chain_scope, chain_scope.family, result.transfers)
    wanted = await _wanted(conn, chain_scope, result, owners)
    heights = {transfer.height for transfer in wanted}
    if wanted:
        await insert_blocks(conn, chain_scope, [one for one in result.blocks if one.height in heights], kept=heights)
        await keep_blocks(conn, chain_scope, heights)
    return await _save_wanted(conn, chain_scope, result, wanted, owners, now)


async def _wanted(
    conn: AsyncConnection,
    chain_scope: WatchedChain,
    result: ScanResult,
    owners: Owners,
    sent: Mapping[str, Sent] | None = None,
) -> Sequence[Transfer]:
    """Return the transfers that are deposits."""
    wanted = [
        transfer for transfer in result.transfers if transfer.recipient in owners and _countable(chain_scope, transfer)
    ]
    internal = await internal_txs(conn, chain_scope, chain_scope.family, wanted, owners, sent)
    return [transfer for transfer in wanted if transfer.tx_id not in internal]


async def _save_wanted(  # noqa: PLR0913, PLR0917  what is stored, and what is known of it
    conn: AsyncConnection,
    chain_scope: WatchedChain,
    result: ScanResult,
    wanted: Sequence[Transfer],
    owners: Owners,
    now: datetime,
) -> Saved:
    if not wanted:
        return Saved()
    known = await _known(conn, chain_scope, wanted, owners, result, now)
    rows = [_row(chain_scope, transfer, ordinal, known) for ordinal, transfer in enumerate(wanted)]
    fresh = list(await conn.exec_driver_sql(_UPSERT, (*chain_scope.key, chain_scope.mode, now, *transposed(rows))))
    if len(fresh) < len(rows):
        await _check_standing(conn, chain_scope, wanted, {(row.tx_id, row.position) for row in fresh})
    await mark_dirty(conn, chain_scope, {row.payment_pk for row in fresh if row.payment_pk is not None})
    received = [row.id for row in fresh if row.account_pk is not None and row.matches]
    told = await account_events.tell(conn, received, account_events.RECEIVED, chain_scope.ids, now)
    deposit_ids = [row.deposit_id for row in fresh]
    return Saved(deposits=len(fresh), deposit_ids=deposit_ids, events=told.events, accounts=told.accounts)


class _Known(NamedTuple):
    """What is known of the transfers of a scan: whose they are, when they were mined, what counts, what it is worth."""

    owners: Owners
    times: Mapping[int, datetime]
    minimums: Minimums
    points: Mapping[str, Snapshot]


async def _known(  # noqa: PLR0913, PLR0917  each is one thing that is known
    conn: AsyncConnection,
    chain_scope: WatchedChain,
    wanted: Sequence[Transfer],
    owners: Owners,
    result: ScanResult,
    now: datetime,
) -> _Known:
    times = {block.height: moment(block.time) for block in result.blocks}
    found = {transfer.recipient: owners[transfer.recipient] for transfer in wanted}.values()
    symbols = {
        chain_scope.token(transfer.contract).symbol
        for transfer in wanted
        if owners[transfer.recipient].account_pk is not None
    }
    points = await fresh_points(conn, symbols, chain_scope.fiat_currencies, now)
    return _Known(owners, times, await minimums_of(conn, chain_scope, found), points)


def _countable(chain_scope: ChainScope, transfer: Transfer) -> bool:
    """Refuse an amount that no token has: only a contract that turned hostile says so, and sums must stay sums."""
    if transfer.amount <= UNITS_MAX:
        return True
    log.error("transfer_beyond_belief", chain=chain_scope.info.id, tx_id=transfer.tx_id, contract=transfer.contract)
    return False


def _row(chain_scope: WatchedChain, transfer: Transfer, ordinal: int, known: _Known) -> tuple[Any, ...]:
    owner, token = known.owners[transfer.recipient], chain_scope.token(transfer.contract)
    right_chain = owner.chain == chain_scope.info.id
    matches = owner.payment_pk is not None and right_chain and owner.contract == transfer.contract
    held_reason = fiat = fiat_reason = None
    if owner.account_pk is not None:
        held_reason = why_not_counted(owner, token, transfer.amount, known.minimums)
        matches = held_reason is None
        fiat, fiat_reason = encode(known.points[token.symbol.upper()], chain_scope.fiat_currencies)
    return (
        chain_scope.ids.new("dep"),
        transfer.tx_id,
        transfer.position,
        owner.merchant_pk,
        owner.address_pk,
        owner.payment_pk,
        owner.account_pk,
        matches,
        held_reason,
        token.symbol,
        token.contract,
        token.decimals,
        transfer.amount,
        transfer.sender,
        transfer.height,
        transfer.block_hash,
        ordinal,
        known.times[transfer.height],
        owner.required_confirmations if right_chain else max(1, chain_scope.info.confirmations),
        fiat,
        fiat_reason,
    )


# What a deposit was worth when it was first seen stays, also where it comes back after a reorg, but not where another
# token or account comes back in its place: a contract may pay otherwise in another block. What did not count for its
# account, and was sent back, does not count now either, whatever the account takes by now: nobody is credited with it.
# Nor does that of which a refund was sent and failed: its block has gone with the deposit's, so it may be mined yet.
_UPSERT = """
INSERT INTO deposits AS d (
    chain, scope, mode, first_seen_at, detected_at, deposit_id, tx_id, position, merchant_pk, address_pk, payment_pk,
    account_pk, matches, held_reason, token, contract, decimals, units, sender, height, block_hash, ordinal, mined_at,
    required_confirmations, fiat, fiat_reason
)
SELECT $1, $2, $3, $4, $4, n.deposit_id, n.tx_id, n.position, n.merchant_pk, n.address_pk, n.payment_pk,
    n.account_pk, n.matches, n.held_reason, n.token, n.contract, n.decimals, n.units, n.sender, n.height, n.block_hash,
    n.ordinal, n.mined_at, n.required_confirmations, n.fiat::jsonb, n.fiat_reason
FROM unnest(
    $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bool[],
    $13::text[], $14::text[], $15::text[], $16::bigint[], $17::numeric[], $18::text[], $19::bigint[], $20::text[],
    $21::bigint[], $22::timestamptz[], $23::bigint[], $24::text[], $25::text[]
) AS n (
    deposit_id, tx_id, position, merchant_pk, address_pk, payment_pk, account_pk, matches, held_reason, token, contract,
    decimals, units, sender, height, block_hash, ordinal, mined_at, required_confirmations, fiat, fiat_reason
)
ON CONFLICT (chain, scope, tx_id, position) DO UPDATE SET
    status = 'detected', incarnation = d.incarnation + 1, detected_at = excluded.detected_at, orphaned_at = NULL,
    confirmed_at = NULL, merchant_pk = excluded.merchant_pk, address_pk = excluded.address_pk,
    payment_pk = excluded.payment_pk, account_pk = excluded.account_pk, token = excluded.token,
    contract = excluded.contract, decimals = excluded.decimals, units = excluded.units, sender = excluded.sender,
    height = excluded.height, block_hash = excluded.block_hash, ordinal = excluded.ordinal,
    mined_at = excluded.mined_at, required_confirmations = excluded.required_confirmations,
    (fiat, fiat_reason, matches, held_reason) = (
        SELECT CASE WHEN is_same THEN d.fiat ELSE excluded.fiat END,
            CASE WHEN is_same THEN d.fiat_reason ELSE excluded.fiat_reason END,
            CASE WHEN stays_held THEN false ELSE excluded.matches END,
            CASE WHEN stays_held THEN d.held_reason ELSE excluded.held_reason END
        FROM (SELECT d.account_pk IS NOT DISTINCT FROM excluded.account_pk
            AND d.contract IS NOT DISTINCT FROM excluded.contract) AS one (is_same)
        CROSS JOIN LATERAL (SELECT is_same AND d.held_reason IS NOT NULL
            AND (EXISTS (SELECT FROM refund_parts part WHERE part.deposit_pk = d.id)
                OR EXISTS (SELECT FROM payouts sent WHERE sent.deposit_pk = d.id AND sent.broadcast_at IS NOT NULL))
        ) AS sent_back (stays_held)
    )
WHERE d.status = 'orphaned'
RETURNING d.id, d.deposit_id, d.payment_pk, d.account_pk, d.matches, d.height, d.tx_id, d.position
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
