"""The movements of a poll as rows: found, confirmed, orphaned. Whoever calls these holds the chain's cursor.

Nothing here can fail for what a chain shows: a poll that cannot store movements could not credit deposits either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import transposed
from cambist.domain.identifiers import sort_key
from cambist.domain.money import UNITS_MAX
from cambist.plugin import Head, ScanResult, Token, Transfer
from cambist.services.chain_scope import ChainScope

from . import history

TOPIC = "trackers"
"""The hint that there are new stages, published after the commit."""

ROWS_MAX = 5_000
"""Movements that one statement stores or confirms."""
MANY = 500
"""Movements from which on a subtransaction takes less time than it spares: it is two more answers to wait for."""

_LISTED = """
SELECT DISTINCT address FROM tracker_addresses
WHERE chain = $1 AND scope = $2 AND tracker_pk = ANY($3::bigint[]) AND address = ANY($4::text[])
"""

# One that stands already changes nothing: this block was read before, or its history was. The earlier
# incarnation is found in an index that holds nothing but what was orphaned: whatever the planner knows, that is quick.
# The newest counts, not how many there are, and hands on when the first was mined: retention deletes earlier ones.
_INSERT = """
INSERT INTO movements (
    chain, scope, required_confirmations, status, incarnation, first_mined_at, tx_id, position, sender, recipient,
    token, contract, decimals, units, height, block_hash, mined_at
)
SELECT $1, $2, $3, $4, coalesce(earlier.incarnation, 0) + 1, coalesce(earlier.first_mined_at, new.mined_at), new.*
FROM unnest(
    $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[]::numeric[],
    $13::bigint[], $14::text[], $15::timestamptz[]
) AS new (
    tx_id, position, sender, recipient, token, contract, decimals, units, height, block_hash, mined_at
)
LEFT JOIN LATERAL (
    SELECT m.incarnation, m.first_mined_at FROM movements m
    WHERE m.chain = $1 AND m.scope = $2 AND m.tx_id = new.tx_id AND m.position = new.position
        AND m.status = 'orphaned'
    ORDER BY m.incarnation DESC LIMIT 1
) AS earlier ON true
ON CONFLICT DO NOTHING
RETURNING id
"""
# What stands already, and is about to be told of: retention must not take it away before that.
_KEEP = """
UPDATE movements m SET stored_at = now()
FROM unnest($3::text[], $4::text[]) AS seen (tx_id, position)
WHERE m.chain = $1 AND m.scope = $2 AND m.tx_id = seen.tx_id AND m.position = seen.position
    AND m.status <> 'orphaned' AND m.stored_at < now() - interval '1 hour'
"""
_INSERT_AND_TELL = f"""
WITH stored AS ({_INSERT})
INSERT INTO movement_stages (chain, scope, movement_pk, stage, head, at)
SELECT $1, $2, id, 'detected', $16, $17 FROM stored ORDER BY id
"""  # noqa: S608  constants
_ALL_NEW = _INSERT_AND_TELL.replace("ON CONFLICT DO NOTHING", "")
"""As long as none stands already, which is rare: it takes four fifths of the time."""

CONFIRMED = (
    "chain = $1 AND scope = $2 AND status = 'detected' AND height <= {deepest}"
    " AND height <= {head} - required_confirmations"
)
"""The movements of chain $1 and scope $2 that have their confirmations at a head."""
_CONFIRM = f"""
WITH due AS (
    SELECT id FROM movements WHERE {CONFIRMED.format(deepest="$3", head="$4")}
    ORDER BY height LIMIT $5
), confirmed AS (
    UPDATE movements m SET status = 'confirmed' FROM due WHERE m.id = due.id RETURNING m.id
)
INSERT INTO movement_stages (chain, scope, movement_pk, stage, head, at)
SELECT $1, $2, id, 'confirmed', $4, $6 FROM confirmed ORDER BY id
"""  # noqa: S608  constants

# What is to be told of it is kept as if it was stored now: retention may be about to take an old one away.
_ORPHAN = """
WITH gone AS (
    UPDATE movements SET status = 'orphaned', stored_at = now()
    WHERE chain = $1 AND scope = $2 AND height > $3 AND status <> 'orphaned' RETURNING id
)
INSERT INTO movement_stages (chain, scope, movement_pk, stage, head, at)
SELECT $1, $2, id, 'orphaned', $3, $4 FROM gone ORDER BY id
"""


async def save(  # noqa: PLR0913, PLR0917  what is stored, and what was known of it
    conn: AsyncConnection,
    chain_scope: ChainScope,
    result: ScanResult,
    tracked: Collection[str],
    now: datetime,
    known_xid: int | None = None,
) -> int:
    """Store what moved in a span from or to addresses that trackers watch; return how many movements are new.

    What one contract says to have moved beyond any sum is left out, as for deposits; so is a token that is not
    registered. Transactions from ``known_xid`` on may have added addresses of which the scan did not know: those who
    asked for their past are read that span again. None where it looked for every address there is, or for all of those
    whose past was begun.
    """
    if known_xid is not None:
        await history.extend(conn, chain_scope, result.blocks[-1].height, known_xid)
    if not tracked:
        return 0
    rows = list(_rows(chain_scope, result, tracked))
    stored = 0
    fixed, seen = (*chain_scope.key, confirmations(chain_scope), "detected"), (result.blocks[-1].height, now)
    for first in range(0, len(rows), ROWS_MAX):
        some = rows[first : first + ROWS_MAX]
        stored += await _insert(conn, (*fixed, *transposed(some), *seen), is_many=len(some) >= MANY)
    return stored


async def _insert(conn: AsyncConnection, values: tuple[Any, ...], *, is_many: bool) -> int:
    if is_many:
        try:
            async with conn.begin_nested():
                return (await conn.exec_driver_sql(_ALL_NEW, values)).rowcount
        except IntegrityError:
            pass  # some stand already
    return (await conn.exec_driver_sql(_INSERT_AND_TELL, values)).rowcount


async def of_trackers(
    conn: AsyncConnection, chain_scope: ChainScope, tracker_pks: Sequence[int], result: ScanResult
) -> Sequence[tuple[Any, ...]]:
    """Return what moved from or to addresses of these trackers in a span, for ``save_past``."""
    addresses = ends(result.transfers)
    if not addresses:
        return []
    found = await conn.exec_driver_sql(_LISTED, (*chain_scope.key, list(tracker_pks), list(addresses)))
    return list(_rows(chain_scope, result, set(found.scalars())))


async def save_past(conn: AsyncConnection, chain_scope: ChainScope, rows: Sequence[tuple[Any, ...]]) -> None:
    """Store what moved in blocks that are deep enough, as confirmed. It has no stages: who asked is told by itself.

    Whoever calls this holds the chain's cursor, and knows that the blocks stand below it.
    """
    fixed = (*chain_scope.key, confirmations(chain_scope), "confirmed")
    for first in range(0, len(rows), ROWS_MAX):
        columns = transposed(rows[first : first + ROWS_MAX])
        await conn.exec_driver_sql(_KEEP, (*chain_scope.key, *columns[:2]))
        await conn.exec_driver_sql(_INSERT, (*fixed, *columns))


async def confirm(conn: AsyncConnection, chain_scope: ChainScope, head: Head, now: datetime) -> int:
    """Confirm what is deep enough in a chain that was read to ``head``; return how many, at most ``ROWS_MAX``.

    What is left the next poll confirms.
    """
    deep = deepest(chain_scope, head)
    done = await conn.exec_driver_sql(_CONFIRM, (*chain_scope.key, deep, head.height, ROWS_MAX, now))
    return done.rowcount


def deepest(chain_scope: ChainScope, head: Head) -> int:
    """Return the highest block whose movements are confirmed where the chain was read to ``head``."""
    return min(head.height - confirmations(chain_scope), chain_scope.deepest(head.height, head.finalized_height))


async def orphan_above(conn: AsyncConnection, chain_scope: ChainScope, height: int, now: datetime) -> int:
    """Orphan every movement above a fork; return how many."""
    done = await conn.exec_driver_sql(_ORPHAN, (*chain_scope.key, height, now))
    return done.rowcount


def confirmations(chain_scope: ChainScope) -> int:
    """Return how many confirmations movements of a chain need."""
    return max(1, chain_scope.info.confirmations)


def ends(transfers: Sequence[Transfer]) -> set[str]:
    """Return from whom and to whom something moved."""
    addresses = {transfer.recipient for transfer in transfers}
    return addresses | {transfer.sender for transfer in transfers if transfer.sender is not None}


def _rows(chain_scope: ChainScope, result: ScanResult, tracked: Collection[str]) -> Iterator[tuple[Any, ...]]:
    """Return the rows of what moved from or to these addresses: by block, and in it as what tells of them sorts."""
    tokens: Mapping[str | None, Token] = {token.contract: token for token in chain_scope.info.tokens}
    times = {block.height: datetime.fromtimestamp(block.time, UTC) for block in result.blocks}
    moved = [one for one in result.transfers if one.recipient in tracked or one.sender in tracked]
    for transfer in sorted(moved, key=lambda one: (one.height, sort_key(one.tx_id))):
        token = tokens.get(transfer.contract)
        if token is not None and transfer.amount <= UNITS_MAX:
            yield (
                transfer.tx_id,
                transfer.position,
                transfer.sender,
                transfer.recipient,
                token.symbol,
                token.contract,
                token.decimals,
                str(transfer.amount),  # which the driver writes in a fifth of a number's time
                transfer.height,
                transfer.block_hash,
                times[transfer.height],
            )
