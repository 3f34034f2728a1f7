"""Reads blocks again that the live watch has passed, and stores what it missed, as if it had been found live.

Nothing is judged here: what is found waits as any other deposit for the next poll that ends at the head. So states
follow in their order, and the live cursor is never moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import structlog
from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Cursor
from cambist.domain.troubles import Said, Trouble, say, unread
from cambist.hints import Hints
from cambist.plugin import Chain, ChainError, InconsistentChainError, ScanResult, Span, SpanTooWideError, Transfer
from cambist.ports import Clock, Ids
from cambist.services.errors import ConflictError, InvalidError
from cambist.services.jobs import requests
from cambist.services.jobs.requests import Job, Kind, NewJob
from cambist.services.receiving.deposits import AddressCache, store
from cambist.services.receiving.deposits.rows import lock_cursor
from cambist.services.receiving.deposits.store import WatchedChain

from .past import SCAN_TIMEOUT_S, read_past
from .rows import Anchor

log = structlog.get_logger(__name__)

BLOCKS_MAX = 1_000_000
FOUND_MAX = 100
"""Deposits that the result names; all are counted."""
BEHIND_MAX = 3
ASKED_AT_ONCE_MAX = 250
RETRY_S = 10.0
FAILED_RETRY_S = 30.0

_BOUNDS = select(Cursor.height, Cursor.head, Cursor.books_from).where(Cursor.scope == 0)


class Bounds(Struct, frozen=True, kw_only=True):
    """The first and the last block to be read again."""

    first: int
    last: int


class Progress(Struct, frozen=True, kw_only=True):
    """The last block that was read again, -1 before the first, and what was found so far.

    ``span_blocks`` are read at once, 0 for as many as the chain lets.
    """

    height: int = -1
    block_hash: str | None = None
    span_blocks: int = 0
    blocks: int = 0
    deposits: int = 0
    found: tuple[str, ...] = ()


class Step(Struct, frozen=True, kw_only=True):
    """What one step came to: ``over`` where all is read; ``retry_s`` and ``error`` where it must wait."""

    progress: Progress
    over: bool = False
    retry_s: float | None = None
    error: Said | None = None


async def ask(  # noqa: PLR0913, PLR0917  who asks for what
    conn: AsyncConnection, ids: Ids, clock: Clock, chain: str, first: int, last: int | None, requested_by: str
) -> Job:
    """Ask for blocks to be read again, by default up to where the live watch is; after the commit, hint ``jobs``.

    Asking for the same again returns the unfinished job: without an end also where the live watch has gone on. Raises
    InvalidError and ConflictError.
    """
    open_end = last is None
    row = (await conn.execute(_BOUNDS.where(Cursor.chain == chain))).one_or_none()
    if row is None or row.books_from is None:
        raise ConflictError("CHAIN_NOT_READ", f"{chain} has not been read yet, so nothing of it can be read again.")
    last = row.height if last is None else last
    if first <= row.books_from:
        words = f"must be above {row.books_from}: what addresses held at that block is booked, however it came"
        raise InvalidError.field("fromHeight", words, "RESCAN_OUT_OF_RANGE")
    if not first <= last <= row.height:
        words = f"must lie between fromHeight and {row.height}, the last block that was read"
        raise InvalidError.field("toHeight", words, "RESCAN_OUT_OF_RANGE")
    if last - first >= BLOCKS_MAX:
        raise InvalidError.field("toHeight", f"is more than {BLOCKS_MAX} blocks away", "RESCAN_OUT_OF_RANGE")
    new = NewJob(
        kind=Kind.RESCAN,
        arguments={"chain": chain, "first": first, "last": last} | ({"open_end": True} if open_end else {}),
        requested_by=requested_by,
        unique_key=chain,
    )
    job = await requests.request(conn, ids, new, clock.now())
    if not _is_the_same(job.arguments, new.arguments):
        raise ConflictError("RESCAN_RUNNING", f"Other blocks of {chain} are being read again, by job {job.job_id}.")
    return job


def _is_the_same(unfinished: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Return whether this was asked for. Where no end is named, it is the height of then, which moves on."""
    open_end = unfinished.get("open_end") and asked.get("open_end")
    return unfinished["first"] == asked["first"] and bool(open_end or unfinished["last"] == asked["last"])


class Keeper(Protocol):
    """Keeps a job's progress. What is written by who lost the job is rolled back."""

    def saving(self, progress: Mapping[str, Any]) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a transaction that keeps the progress, too."""

    async def keep(self, conn: AsyncConnection, progress: Mapping[str, Any]) -> None:
        """Keep another progress than the one that this transaction was opened with."""


class _LeftError(Exception):
    """The live watch has left the block that the endpoint was compared by."""

    def __init__(self, height: int) -> None:
        self.said = say(Trouble.BLOCKS_LEFT, blocks=f"block {height}")
        super().__init__(self.said.words)


class Rescanner:
    """Reads blocks of one live chain again. What is stored twice changes nothing."""

    def __init__(  # noqa: PLR0913  a composition root's parts, each by name
        self,
        *,
        db: Database,
        chain: Chain,
        chain_scope: WatchedChain,
        address_cache: AddressCache,
        bounds: Bounds,
        clock: Clock,
        hints: Hints,
    ) -> None:
        self._db, self._chain, self._chain_scope = db, chain, chain_scope
        self._address_cache, self._bounds = address_cache, bounds
        self._clock, self._hints = clock, hints

    async def step(self, progress: Progress, keeper: Keeper) -> Step:
        """Read the next span again, and store what was missing."""
        self._chain_scope = self._chain_scope.known_as(self._chain.info)
        first = max(progress.height + 1, self._bounds.first)
        if first > self._bounds.last:
            return Step(progress=progress, over=True)
        if (wait := await self._why_not_now()) is not None:
            return Step(progress=progress, retry_s=RETRY_S, error=wait)
        blocks = progress.span_blocks or self._chain.info.span_max
        span = Span(first=first, last=min(first + blocks - 1, self._bounds.last))
        parent = progress.block_hash if progress.height == span.first - 1 else None
        try:
            # Whatever was committed before is looked for, also addresses that are younger than the blocks.
            watch = await self._address_cache.refresh()
            result, anchor = await read_past(self._db, self._chain, self._chain_scope, span, watch, parent=parent)
            return await self._store(progress, result, anchor, keeper)
        except (SpanTooWideError, TimeoutError) as error:
            if span.length == 1:
                return _failed(progress, error)
            narrowed = replace(progress, span_blocks=max(1, span.length // 2))
            async with keeper.saving(asdict(narrowed)):
                return Step(progress=narrowed)
        except (ChainError, _LeftError) as error:
            return _failed(progress, error)

    async def _why_not_now(self) -> Said | None:
        """Return why the live watch comes first, or None where it leaves room."""
        async with self._db.autocommit() as conn:
            row = (await conn.execute(_BOUNDS.where(Cursor.chain == self._chain.info.id))).one_or_none()
        if row is None or row.height < self._bounds.last:
            return say(Trouble.BLOCKS_LEFT, blocks="blocks that were to be read")
        return say(Trouble.WATCH_BEHIND) if row.head - row.height > BEHIND_MAX else None

    async def _store(self, progress: Progress, result: ScanResult, anchor: Anchor, keeper: Keeper) -> Step:
        last, now = result.blocks[-1], self._clock.now()
        blocks = progress.span_blocks and min(self._chain.info.span_max, progress.span_blocks * 2)
        read = replace(progress, height=last.height, block_hash=last.hash, span_blocks=blocks)
        read = replace(read, blocks=progress.blocks + len(result.blocks))
        async with self._db.autocommit() as conn:
            missing = await store.missing(conn, self._chain_scope, result)
        if not missing:
            async with keeper.saving(asdict(read)):
                return Step(progress=read)
        await self._ask_again(missing)
        async with keeper.saving(asdict(read)) as conn:
            await lock_cursor(conn, *self._chain_scope.key)
            if await store.stored_hash(conn, self._chain_scope, anchor.height) != anchor.hash:
                # A reorg, or the live watch is so far ahead that it has forgotten this block: nothing is stored.
                raise _LeftError(anchor.height)
            saved = await store.save_missing(conn, self._chain_scope, result, now)
            found = (*progress.found, *saved.deposit_ids)[:FOUND_MAX]
            read = replace(read, deposits=progress.deposits + saved.deposits, found=found)
            await keeper.keep(conn, asdict(read))
        log.warning("rescan_found", chain=self._chain.info.id, deposits=list(saved.deposit_ids))
        topics = [f"account:{public_id}" for public_id in saved.accounts]
        await self._hints.publish(*topics, *(("webhooks",) if saved.events else ()))
        return Step(progress=read)

    async def _ask_again(self, missing: Sequence[Transfer]) -> None:
        """Ask for the transactions themselves. What is deep is credited at once, so one lie must not be enough.

        Raises InconsistentChainError.
        """
        blocks = {transfer.tx_id: transfer.block_hash for transfer in missing}
        tx_ids = list(blocks)
        for first in range(0, len(tx_ids), ASKED_AT_ONCE_MAX):
            some = tx_ids[first : first + ASKED_AT_ONCE_MAX]
            for tx_id, status in zip(some, await self._chain.transactions(some), strict=True):
                if status.state != "succeeded" or status.block is None or status.block.hash != blocks[tx_id]:
                    raise InconsistentChainError(f"transaction {tx_id} was read, and is {status.state} when asked for")


def _failed(progress: Progress, error: Exception) -> Step:
    # Should the chain have left the block that was read last, the next try must not insist on it.
    said = error.said if isinstance(error, _LeftError) else unread(error, timeout_s=SCAN_TIMEOUT_S)
    return Step(progress=replace(progress, block_hash=None), retry_s=FAILED_RETRY_S, error=said)
