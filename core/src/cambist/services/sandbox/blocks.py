"""Writes simulated chains: blocks that hash-link, transfers, reorganisations, and time that passes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, structs
from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, delete, exists, func, select, union, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import (
    ChainBlock,
    Cursor,
    Deposit,
    Exchange,
    Movement,
    Payment,
    Payout,
    SandboxBlock,
    SandboxChain,
    SandboxTransfer,
)
from cambist.db.structs import one_of
from cambist.plugin import ChainInfo, Units
from cambist.ports import Ids
from cambist.services.receiving.deposits.rows import lock_cursor

FAUCET = "sandbox"
"""Who pays in a sandbox: nobody with an address."""
EXCHANGE = "sandbox-exchange"
"""Who takes what is exchanged and pays for it, likewise. Everything else is sent by the gateway, from a main wallet."""
NOBODY = frozenset({FAUCET, EXCHANGE})

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


def own(
    table: type[SandboxChain | SandboxBlock | SandboxTransfer],
    project_pk: int | BindParameter[int],
    chain: str | BindParameter[str],
) -> ColumnElement[bool]:
    """Return the condition for the rows of this project and chain."""
    return and_(table.project_pk == project_pk, table.chain == chain)


GIVEN: tuple[BindParameter[int], BindParameter[str]] = bindparam("of_project"), bindparam("on_chain")
"""The project and the chain of a statement that is made once, for ``own``: they come with each use, see ``given``."""


def given(project_pk: int, chain: str) -> dict[str, Any]:
    """Return what a statement of ``GIVEN`` is given."""
    return {"of_project": project_pk, "on_chain": chain}


_LOCK = select(SandboxChain).where(own(SandboxChain, *GIVEN)).with_for_update()
_BLOCK = select(SandboxBlock).where(own(SandboxBlock, *GIVEN), SandboxBlock.height == bindparam("at_height"))
_TAKE_WAITING = (
    update(SandboxTransfer)
    .where(own(SandboxTransfer, *GIVEN), SandboxTransfer.height.is_(None))
    .values(height=bindparam("first_height"))
)
_GROW = (
    update(SandboxChain)
    .where(own(SandboxChain, *GIVEN))
    .values(height=bindparam("last_height"), salt=bindparam("new_salt"))
)
_PRUNE = delete(SandboxBlock).where(
    own(SandboxBlock, *GIVEN),
    Cursor.scope == GIVEN[0],
    Cursor.chain == GIVEN[1],
    SandboxBlock.height < Cursor.height - bindparam("kept"),
    ~exists().where(own(SandboxTransfer, *GIVEN), SandboxTransfer.height == SandboxBlock.height),
)


async def lock_tip(conn: AsyncConnection, project_pk: int, info: ChainInfo, now: datetime) -> Tip:
    """Return the newest block; a chain that was never used begins here. Others who write to it wait."""
    # One statement would join the block as it was before the wait for the lock.
    chain = (await conn.execute(_LOCK, given(project_pk, info.id))).one_or_none()
    if chain is None:
        await _begin(conn, project_pk, info, now)
        chain = (await conn.execute(_LOCK, given(project_pk, info.id))).one()
    return await _tip(conn, project_pk, info, chain.height, chain.salt)


async def _begin(conn: AsyncConnection, project_pk: int, info: ChainInfo, now: datetime) -> None:
    """Write a chain's first block, unless others do: then wait until they have."""
    first = {"project_pk": project_pk, "chain": info.id, "height": 0}
    begun = await conn.execute(insert(SandboxChain).values(first).on_conflict_do_nothing())
    if begun.rowcount:
        parent = _text(info, bytes(32))
        genesis = first | {"hash": _hash(info, project_pk, 0, 0, parent), "parent_hash": parent, "mined_at": now}
        await conn.execute(insert(SandboxBlock).values(genesis))


async def _tip(conn: AsyncConnection, project_pk: int, info: ChainInfo, height: int, salt: int) -> Tip:
    block = (await conn.execute(_BLOCK, given(project_pk, info.id) | {"at_height": height})).one()
    return Tip(project_pk=project_pk, info=info, height=height, hash=block.hash, mined_at=block.mined_at, salt=salt)


async def mine(conn: AsyncConnection, tip: Tip, blocks: int, now: datetime) -> Tip:
    """Put blocks on top; the first takes every waiting transfer. A clock that went back does not take time along."""
    mined_at = max(now, tip.mined_at)
    heights = range(tip.height + 1, tip.height + blocks + 1)
    links = [tip.hash]
    for height in heights:
        links.append(_hash(tip.info, tip.project_pk, height, tip.salt, links[-1]))
    await conn.execute(
        insert(SandboxBlock).values(project_pk=tip.project_pk, chain=tip.info.id, mined_at=mined_at),
        [
            {"height": height, "hash": link, "parent_hash": parent}
            for height, parent, link in zip(heights, links[:-1], links[1:], strict=True)
        ],
    )
    of_tip = given(tip.project_pk, tip.info.id)
    await conn.execute(_TAKE_WAITING, of_tip | {"first_height": tip.height + 1})
    await conn.execute(_GROW, of_tip | {"last_height": heights[-1], "new_salt": tip.salt})
    # Blocks that were read long ago and hold nothing are forgotten.
    await conn.execute(_PRUNE, of_tip | {"kept": 2 * tip.info.hashes_kept})
    return structs.replace(tip, height=heights[-1], hash=links[-1], mined_at=mined_at)


class NewTransfer(Struct, frozen=True, kw_only=True):
    """A transfer to be made. Nobody with an address sends it, unless somebody is named; one may revert."""

    recipient: str
    contract: str | None
    units: Units
    sender: str = FAUCET
    reverts: bool = False


async def transactions(
    conn: AsyncConnection, tip: Tip, new: Sequence[Sequence[NewTransfer]], *, ids: Ids
) -> Sequence[str]:
    """Make transactions that wait for the next block, each of some transfers, and return their ids.

    Of a transaction's transfers, one may be of the native coin.
    """
    tx_ids = [_text(tip.info, ids.random_bytes(32)) for _ in new]
    rows = [
        structs.asdict(one) | {"tx_id": tx_id, "position": "native" if one.contract is None else f"log:{number}"}
        for together, tx_id in zip(new, tx_ids, strict=True)
        for number, one in enumerate(together)
    ]
    await conn.execute(insert(SandboxTransfer).values(project_pk=tip.project_pk, chain=tip.info.id), rows)
    return tx_ids


async def reorganise(conn: AsyncConnection, tip: Tip, depth: int, now: datetime, *, drop: bool) -> Tip:
    """Replace the newest blocks by as many others; what stood in them is dropped, or waits to be mined again.

    What the gateway sent is never dropped: it would send the same transaction again. Nor is what was paid for it.
    """
    fork = tip.height - depth
    key = tip.project_pk, tip.info.id
    await conn.execute(delete(SandboxBlock).where(own(SandboxBlock, *key), SandboxBlock.height > fork))
    above = own(SandboxTransfer, *key), SandboxTransfer.height > fork
    removed = one_of(SandboxTransfer.id, (await conn.scalars(select(SandboxTransfer.id).where(*above))).all())
    new_tip = await mine(conn, await _tip(conn, tip.project_pk, tip.info, fork, tip.salt + 1), depth, now)
    # Only now: as waiting transfers, the first of the new blocks would have taken them.
    if drop:
        await conn.execute(delete(SandboxTransfer).where(removed, SandboxTransfer.sender == FAUCET))
    await conn.execute(update(SandboxTransfer).where(removed).values(height=None))
    return new_tip


async def reorg_depth_max(conn: AsyncConnection, tip: Tip) -> int:
    """Return how many blocks can be replaced so that the gateway can follow: it must remember the one below."""
    known = ChainBlock.chain == tip.info.id, ChainBlock.scope == tip.project_pk
    lowest = await conn.scalar(select(func.min(ChainBlock.height)).where(*known))
    return max(0, min(tip.height - (lowest or 0), tip.info.hashes_kept))


async def used_chains(conn: AsyncConnection, project_pk: int) -> Sequence[str]:
    with_blocks = select(SandboxChain.chain).where(SandboxChain.project_pk == project_pk)
    paid = select(Payment.chain).where(Payment.project_pk == project_pk, Payment.scope == project_pk)
    return sorted(await conn.scalars(union(with_blocks, paid)))


async def pass_time(conn: AsyncConnection, tip: Tip, seconds: int, now: datetime) -> None:
    """Let time pass on a simulated chain: whatever happened on it, or began there, happened that much longer ago.

    So nobody needs a second clock: expiry, grace, the checkout's countdown and the webhooks' retries all keep
    to the one that everything else keeps to. What is older than anybody's patience stays where it is: time that is
    let pass for ever must not lead out of the calendar.
    """
    await lock_cursor(conn, tip.info.id, tip.project_pk)
    passed = timedelta(seconds=seconds)
    for chain, scope, moments in (
        (Payment.chain, Payment.scope, (Payment.created_at, Payment.expires_at)),
        (
            Deposit.chain,
            Deposit.scope,
            (Deposit.mined_at, Deposit.first_seen_at, Deposit.detected_at, Deposit.confirmed_at, Deposit.orphaned_at),
        ),
        (Payout.chain, Payout.scope, (Payout.created_at, Payout.updated_at, Payout.broadcast_at, Payout.finished_at)),
        (
            Exchange.source_chain,
            Exchange.scope,
            (Exchange.created_at, Exchange.updated_at, Exchange.broadcast_at, Exchange.finished_at),
        ),
        (Movement.chain, Movement.scope, (Movement.mined_at,)),
        (ChainBlock.chain, ChainBlock.scope, (ChainBlock.mined_at,)),
        (SandboxBlock.chain, SandboxBlock.project_pk, (SandboxBlock.mined_at,)),
    ):
        of_chain = chain == tip.info.id, scope == tip.project_pk, moments[0] > now - AGE_MAX
        await conn.execute(update(scope.class_).where(*of_chain).values({one: one - passed for one in moments}))


def forgotten_hash(info: ChainInfo, project_pk: int, height: int) -> str:
    """Return what stands for the hash of a block that was forgotten, where no block that is left tells it."""
    return _hash(info, project_pk, height, 0, "forgotten")


def _hash(info: ChainInfo, project_pk: int, height: int, salt: int, parent: str) -> str:
    return _text(info, hashlib.sha256(f"{project_pk}/{info.id}/{height}/{salt}/{parent}".encode()).digest())


def _text(info: ChainInfo, digest: bytes) -> str:
    return f"0x{digest.hex()}" if info.is_evm else digest.hex()
