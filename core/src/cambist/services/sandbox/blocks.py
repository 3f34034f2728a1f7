"""Writes simulated chains: blocks that hash-link, transfers, reorganisations, and time that passes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import ChainInfo, Token, Units
from cambist.ports import Ids

FAUCET = "sandbox"
"""Who pays in a sandbox: nobody with an address. Everything else is sent by the gateway, from a main wallet."""

AGE_MAX = timedelta(days=100 * 365)
"""How old anything can become by letting time pass."""


class Tip(Struct, frozen=True, kw_only=True):
    """The newest block of a simulated chain, locked until the transaction ends."""

    project_pk: int
    info: ChainInfo
    height: int
    hash: str
    mined_at: datetime
    salt: int


async def is_read(conn: AsyncConnection, project_pk: int, info: ChainInfo) -> bool:
    """Whether the gateway has begun to read the chain."""
    found = await conn.exec_driver_sql(
        "SELECT 1 FROM chain_cursors WHERE chain = $1 AND scope = $2", (info.id, project_pk)
    )
    return found.first() is not None


async def lock_tip(conn: AsyncConnection, project_pk: int, info: ChainInfo, now: datetime) -> Tip:
    """Return the newest block; a chain that was never used begins here. Others who write to it wait."""
    key = (project_pk, info.id)
    begun = await conn.exec_driver_sql(
        "INSERT INTO sandbox_chains (project_pk, chain, height) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING", key
    )
    if begun.rowcount:
        parent = _text(info, bytes(32))
        await conn.exec_driver_sql(
            "INSERT INTO sandbox_blocks (project_pk, chain, height, hash, parent_hash, mined_at)"
            " VALUES ($1, $2, 0, $3, $4, $5)",
            (*key, _hash(info, project_pk, 0, 0, parent), parent, now),
        )
    # One statement would join the block as it was before the wait for the lock.
    chain = (
        await conn.exec_driver_sql(
            "SELECT height, salt FROM sandbox_chains WHERE project_pk = $1 AND chain = $2 FOR UPDATE", key
        )
    ).one()
    return await _tip(conn, project_pk, info, chain.height, chain.salt)


async def _tip(conn: AsyncConnection, project_pk: int, info: ChainInfo, height: int, salt: int) -> Tip:
    block = (
        await conn.exec_driver_sql(
            "SELECT hash, mined_at FROM sandbox_blocks WHERE project_pk = $1 AND chain = $2 AND height = $3",
            (project_pk, info.id, height),
        )
    ).one()
    return Tip(project_pk=project_pk, info=info, height=height, hash=block.hash, mined_at=block.mined_at, salt=salt)


async def mine(conn: AsyncConnection, tip: Tip, blocks: int, now: datetime) -> Tip:
    """Put blocks on top; the first takes every waiting transfer. A clock that went back does not take time along."""
    mined_at = max(now, tip.mined_at)
    heights = range(tip.height + 1, tip.height + blocks + 1)
    links = [tip.hash]
    for height in heights:
        links.append(_hash(tip.info, tip.project_pk, height, tip.salt, links[-1]))
    await conn.exec_driver_sql(
        "INSERT INTO sandbox_blocks (project_pk, chain, mined_at, height, hash, parent_hash)"
        " SELECT $1, $2, $3, * FROM unnest($4::bigint[], $5::text[], $6::text[])",
        (tip.project_pk, tip.info.id, mined_at, list(heights), links[1:], links[:-1]),
    )
    await conn.exec_driver_sql(
        "UPDATE sandbox_transfers SET height = $3 WHERE project_pk = $1 AND chain = $2 AND height IS NULL",
        (tip.project_pk, tip.info.id, tip.height + 1),
    )
    await conn.exec_driver_sql(
        "UPDATE sandbox_chains SET height = $3, salt = $4 WHERE project_pk = $1 AND chain = $2",
        (tip.project_pk, tip.info.id, heights[-1], tip.salt),
    )
    await _prune(conn, tip)
    return Tip(
        project_pk=tip.project_pk,
        info=tip.info,
        height=heights[-1],
        hash=links[-1],
        mined_at=mined_at,
        salt=tip.salt,
    )


class NewTransfer(Struct, frozen=True, kw_only=True):
    """A transfer to be made. Nobody with an address sends it, unless somebody is named; one may revert."""

    recipient: str
    contract: str | None
    units: Units
    sender: str = FAUCET
    reverts: bool = False


async def transfer(  # noqa: PLR0913  a transfer has as many parts
    conn: AsyncConnection, tip: Tip, token: Token, recipient: str, units: Units, *, ids: Ids
) -> str:
    """Make a transfer that waits for the next block, and return its transaction's id."""
    new = NewTransfer(recipient=recipient, contract=token.contract, units=units)
    return (await transfers(conn, tip, [new], ids=ids))[0]


_TRANSFER = """
INSERT INTO sandbox_transfers (project_pk, chain, tx_id, position, sender, recipient, contract, units, reverts)
SELECT $1, $2, n.tx_id, CASE WHEN n.contract IS NULL THEN 'native' ELSE 'log:0' END, n.sender, n.recipient, n.contract,
    n.units, n.reverts
FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::numeric[], $8::bool[])
    WITH ORDINALITY AS n (tx_id, sender, recipient, contract, units, reverts, place)
ORDER BY n.place
"""


async def transfers(conn: AsyncConnection, tip: Tip, new: Sequence[NewTransfer], *, ids: Ids) -> Sequence[str]:
    """Make transfers that wait for the next block, each in a transaction of its own, whose ids are returned."""
    tx_ids = [_text(tip.info, ids.random_bytes(32)) for _ in new]
    await conn.exec_driver_sql(
        _TRANSFER,
        (
            tip.project_pk,
            tip.info.id,
            tx_ids,
            [one.sender for one in new],
            [one.recipient for one in new],
            [one.contract for one in new],
            [Decimal(one.units) for one in new],
            [one.reverts for one in new],
        ),
    )
    return tx_ids


async def reorganise(conn: AsyncConnection, tip: Tip, depth: int, now: datetime, *, drop: bool) -> Tip:
    """Replace the newest blocks by as many others; what stood in them is dropped, or waits to be mined again.

    What the gateway sent is never dropped: it would send the same transaction again.
    """
    fork = tip.height - depth
    above = (tip.project_pk, tip.info.id, fork)
    where = "WHERE project_pk = $1 AND chain = $2 AND height > $3"
    await conn.exec_driver_sql(f"DELETE FROM sandbox_blocks {where}", above)  # noqa: S608  a constant
    removed = await conn.exec_driver_sql(f"SELECT id FROM sandbox_transfers {where}", above)  # noqa: S608  a constant
    rows = ([row.id for row in removed],)
    new_tip = await mine(conn, await _tip(conn, tip.project_pk, tip.info, fork, tip.salt + 1), depth, now)
    # Only now: as waiting transfers, the first of the new blocks would have taken them.
    if drop:
        await conn.exec_driver_sql(
            "DELETE FROM sandbox_transfers WHERE id = ANY($1::bigint[]) AND sender = $2", (*rows, FAUCET)
        )
    await conn.exec_driver_sql("UPDATE sandbox_transfers SET height = NULL WHERE id = ANY($1::bigint[])", rows)
    return new_tip


async def reorg_depth_max(conn: AsyncConnection, tip: Tip) -> int:
    """Return how many blocks can be replaced so that the gateway can follow: it must remember the one below."""
    known = await conn.exec_driver_sql(
        "SELECT min(height) FROM chain_blocks WHERE chain = $1 AND scope = $2", (tip.info.id, tip.project_pk)
    )
    lowest = known.scalar_one()
    return max(0, min(tip.height - (lowest or 0), tip.info.hashes_kept))


async def used_chains(conn: AsyncConnection, project_pk: int) -> Sequence[str]:
    """Return the chains on which the project has payments or blocks."""
    rows = await conn.exec_driver_sql(
        "SELECT chain FROM sandbox_chains WHERE project_pk = $1"
        " UNION SELECT chain FROM payments WHERE project_pk = $1 AND scope = $1 ORDER BY chain",
        (project_pk,),
    )
    return [row.chain for row in rows]


async def lock_cursor(conn: AsyncConnection, project_pk: int, info: ChainInfo) -> None:
    """Let nobody store a poll until the transaction ends.

    A look that is being stored holds the cursor, then deposits, then payments; whoever waits here holds none.
    """
    await conn.exec_driver_sql(
        "SELECT 1 FROM chain_cursors WHERE chain = $1 AND scope = $2 FOR NO KEY UPDATE", (info.id, project_pk)
    )


async def pass_time(conn: AsyncConnection, tip: Tip, seconds: int, now: datetime) -> None:
    """Let time pass on a simulated chain: whatever happened on it happened that much longer ago.

    So nobody needs a second clock: expiry, grace, the checkout's countdown and the webhooks' retries all keep
    to the one that everything else keeps to. What is older than anybody's patience stays where it is: time that is
    let pass for ever must not lead out of the calendar.
    """
    await lock_cursor(conn, tip.project_pk, tip.info)
    since = (tip.info.id, tip.project_pk, timedelta(seconds=seconds), now - AGE_MAX)
    for statement in (
        """
        UPDATE payments SET created_at = created_at - $3::interval, expires_at = expires_at - $3::interval
        WHERE chain = $1 AND scope = $2 AND created_at > $4
        """,
        """
        UPDATE deposits SET mined_at = mined_at - $3::interval, detected_at = detected_at - $3::interval,
            confirmed_at = confirmed_at - $3::interval, orphaned_at = orphaned_at - $3::interval
        WHERE chain = $1 AND scope = $2 AND mined_at > $4
        """,
        """
        UPDATE payouts SET created_at = created_at - $3::interval, updated_at = updated_at - $3::interval,
            broadcast_at = broadcast_at - $3::interval, finished_at = finished_at - $3::interval
        WHERE chain = $1 AND scope = $2 AND created_at > $4
        """,
        """
        UPDATE chain_blocks SET mined_at = mined_at - $3::interval
        WHERE chain = $1 AND scope = $2 AND mined_at > $4
        """,
        """
        UPDATE sandbox_blocks SET mined_at = mined_at - $3::interval
        WHERE chain = $1 AND project_pk = $2 AND mined_at > $4
        """,
    ):
        await conn.exec_driver_sql(statement, since)


async def _prune(conn: AsyncConnection, tip: Tip) -> None:
    """Forget blocks that were read long ago and hold nothing."""
    await conn.exec_driver_sql(
        "DELETE FROM sandbox_blocks b USING chain_cursors c"
        " WHERE b.project_pk = $1 AND b.chain = $2 AND c.scope = b.project_pk AND c.chain = b.chain"
        " AND b.height < c.height - $3 AND NOT EXISTS (SELECT FROM sandbox_transfers t"
        " WHERE t.project_pk = b.project_pk AND t.chain = b.chain AND t.height = b.height)",
        (tip.project_pk, tip.info.id, 2 * tip.info.hashes_kept),
    )


def _hash(info: ChainInfo, project_pk: int, height: int, salt: int, parent: str) -> str:
    return _text(info, hashlib.sha256(f"{project_pk}/{info.id}/{height}/{salt}/{parent}".encode()).digest())


def _text(info: ChainInfo, digest: bytes) -> str:
    return f"0x{digest.hex()}" if info.is_evm else digest.hex()
