"""One poll of a chain: from the stored cursor towards the head, on one endpoint, a span at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import structlog
from msgspec import Struct

from cambist.db.engine import Database
from cambist.hints import Hints
from cambist.plugin import (
    AddressFamily,
    Block,
    Chain,
    ChainView,
    Head,
    InconsistentChainError,
    Span,
    SpanTooWideError,
)
from cambist.ports import Clock, Ids
from cambist.services.receiving.accounts.snapshots import CURRENCIES
from cambist.services.trackers import movements

from . import cursors, judging, opening_balances, store
from .addresses import AddressCache, Known
from .blocks import height_before, time_between
from .checking import Scanned, checked
from .cursors import Cursor, CursorMovedError, TokensUnknownError
from .pending import Pending, read_pending
from .read_ahead import ReadAhead
from .store import WatchedChain
from .storing import NOTHING_SAVED, store_span

log = structlog.get_logger(__name__)

LAG_TOLERATED_BLOCKS = 3
LAG_TOLERATED = timedelta(seconds=5)
"""An endpoint this far behind what was already seen is asked again later, and that is no outage.

Behind one address there are often several nodes, some seconds apart: a few blocks, or dozens of short ones.
"""


class ReorgTooDeepError(InconsistentChainError):
    """The chain has left every block that is remembered: an operator must look before anything is credited."""


class PollResult(Struct, frozen=True, kw_only=True):
    """What one poll did. ``behind`` is how many blocks are left to read: poll again at once while above zero."""

    head: int
    height: int
    behind: int
    blocks: int = 0
    deposits: int = 0
    orphaned: int = 0
    transitions: int = 0


class Watcher:
    """Follows one chain in one scope: 0 for the live chain, a project's primary key for its simulated one.

    Any number of watchers may follow the same chain at once: each commit compares and sets the cursor, so all
    but one of them have polled in vain.
    """

    def __init__(  # noqa: PLR0913  a composition root's parts, each by name
        self,
        *,
        db: Database,
        chain: Chain,
        family: AddressFamily,
        address_cache: AddressCache,
        scope: int,
        mode: str,
        clock: Clock,
        ids: Ids,
        hints: Hints,
        fiat_currencies: Sequence[str] = CURRENCIES,
        tokens_revision: Callable[[], int] = lambda: 0,
    ) -> None:
        """Follow a chain; ``tokens_revision`` tells which tokens it looks for when it is asked."""
        self._db = db
        self._chain = chain
        self._address_cache = address_cache
        self._clock = clock
        self._hints = hints
        self._tokens_revision = tokens_revision
        self._known_scope = WatchedChain(
            info=chain.info, family=family, scope=scope, mode=mode, ids=ids, fiat_currencies=fiat_currencies
        )
        self._span_blocks = chain.info.span_max
        self._books_open = scope != 0  # simulated chains have no gas station
        self._stored_since: int | None = None
        self._read_to = -1
        self._ahead: ReadAhead | None = None

    @property
    def _chain_scope(self) -> WatchedChain:
        """The chain as it is known now: tokens are added while it is watched."""
        self._known_scope = self._known_scope.known_as(self._chain.info)
        return self._known_scope

    async def poll(self) -> PollResult:
        """Read one span, or judge what is due when there is nothing to read.

        Raises ChainUnavailableError and InconsistentChainError, after which nothing has changed.
        """
        # Which tokens are looked for is known before the view is there: it may know more, and never fewer.
        revision = self._tokens_revision()
        async with self._chain.view() as view:
            # Time is read before the head. So a payment that is past its expiry "now" had every block up to then
            # scanned when it is judged.
            now = self._clock.now()
            head = await view.head()
            pending = await self._pending(head, now)
            if pending is None:
                await self._begin(view, head, now)
                pending = await self._pending(head, now)
            if pending is None:
                raise AssertionError("the cursor was just created")
            cursor = pending.cursor
            if not self._books_open:
                await self._open_books(head, pending)
            try:
                return await self._poll(view, head, pending, now, revision)
            except TokensUnknownError:
                log.info("tokens_awaited", chain=self._chain_scope.info.id, revision=revision)
                return PollResult(head=head.height, height=cursor.height, behind=0)
            except CursorMovedError:
                # Polled in vain, through no fault of the endpoint: what is left to do is for the next poll to see.
                return PollResult(head=head.height, height=cursor.height, behind=1)

    @asynccontextmanager
    async def reading_ahead(self) -> AsyncIterator[None]:
        """Read the next span while the last one is stored, until the block ends."""
        self._ahead = ahead = ReadAhead(self._chain_scope.info.id)
        try:
            yield
        finally:
            self._ahead = None
            await ahead.drop()

    async def _open_books(self, head: Head, pending: Pending) -> None:
        if self._stored_since is None:
            self._stored_since = pending.cursor.height
        since, finalized, self._books_open = self._stored_since, head.finalized_height, bool(pending.is_open)
        if pending.is_open is False:
            self._books_open = await opening_balances.open_books(
                self._db, self._chain, self._chain_scope, pending.cursor, since=since, finalized=finalized
            )

    async def _pending(self, head: Head, now: datetime) -> Pending | None:
        # Where no block is new, as far as this watcher knows, nothing is scanned.
        addresses = self._address_cache if head.height > self._read_to else None
        async with self._db.autocommit() as conn:
            blocks, asks_books = self._span_blocks, not self._books_open
            pending = await read_pending(
                conn, self._chain_scope, head, now, addresses=addresses, span_blocks=blocks, asks_books=asks_books
            )
        if pending is not None:
            self._read_to = pending.cursor.height
        return pending

    async def _poll(self, view: ChainView, head: Head, pending: Pending, now: datetime, revision: int) -> PollResult:
        cursor = pending.cursor
        if head.height < cursor.height:
            return await self._wait(head, cursor)
        if (await view.block(cursor.height)).hash != cursor.hash:
            return await self._walk_back(view, head, cursor, now)
        if cursor.height == head.height:
            return await self._judge(head, pending, now)
        return await self._advance(view, head, pending, now, revision)

    async def _begin(self, view: ChainView, head: Head, now: datetime) -> None:
        """Start where the oldest address on this chain could first have been paid to; at the head if there is none."""
        async with self._db.autocommit() as conn:
            since = await store.oldest_address(conn, self._chain_scope)
        height = head.height if since is None else await height_before(view, head.height, since)
        block = await view.block(height)
        # Ever wider apart, down to the depth of the deepest reorg: the very first block may be replaced, too.
        lowest = max(0, height - self._chain_scope.info.hashes_kept)
        below = [height - 2**step for step in range((height - lowest).bit_length())]
        earlier = [await view.block(one) for one in below]
        async with self._db.transaction() as conn:
            await cursors.create_cursor(conn, self._chain_scope, block, earlier, now)

    async def _wait(self, head: Head, cursor: Cursor) -> PollResult:
        """Do nothing while an endpoint's chain is shorter than what was read.

        It lags, or is in the middle of a reorg. Were its word taken, a node that is being synchronized anew
        could take back every credit there is; a branch that won is soon as high as the one that lost.
        """
        behind = cursor.height - head.height
        if behind > LAG_TOLERATED_BLOCKS and not await self._is_recent(head.height, cursor):
            raise InconsistentChainError(f"the endpoint is {behind} blocks behind what was seen")
        return PollResult(head=head.height, height=cursor.height, behind=0)

    async def _is_recent(self, height: int, cursor: Cursor) -> bool:
        async with self._db.autocommit() as conn:
            apart = await time_between(conn, self._chain_scope, height, cursor.height)
        return apart is not None and apart <= LAG_TOLERATED

    async def _walk_back(self, view: ChainView, head: Head, cursor: Cursor, now: datetime) -> PollResult:
        """Take everything back that stood above the fork: deposits are orphaned, their credits reversed."""
        async with self._db.autocommit() as conn:
            heights = await store.stored_heights(conn, self._chain_scope)
        fork = await self._fork(view, heights)
        async with self._db.transaction() as conn:
            await cursors.move_cursor(
                conn, self._chain_scope, old=cursor, new=Cursor(fork.height, fork.hash), head=head, now=now
            )
            orphaned = await judging.orphan_above(conn, self._chain_scope, fork.height, now)
            stages = await movements.orphan_above(conn, self._chain_scope, fork.height, now)
            await store.forget_above(conn, self._chain_scope, fork.height)
        await self._tell(judging.Judgement(), stages=stages)
        depth = cursor.height - fork.height
        log.warning(
            "reorg", chain=self._chain_scope.info.id, scope=self._chain_scope.scope, fork=fork.height, depth=depth
        )
        return PollResult(head=head.height, height=fork.height, behind=head.height - fork.height, orphaned=orphaned)

    async def _fork(self, view: ChainView, heights: Sequence[int]) -> Block:
        """Find the highest remembered block that is still on the best chain, by halving."""
        low, high, fork = 0, len(heights) - 1, None
        while low <= high:
            middle = (low + high) // 2
            block = await view.block(heights[middle])
            async with self._db.autocommit() as conn:
                known = await store.stored_hash(conn, self._chain_scope, block.height)
            if block.hash == known:
                fork, low = block, middle + 1
            else:
                high = middle - 1
        if fork is None:
            raise ReorgTooDeepError(
                f"{self._chain_scope.info.id}: the chain no longer holds any of the {len(heights)} remembered blocks"
            )
        return fork

    async def _advance(self, view: ChainView, head: Head, pending: Pending, now: datetime, revision: int) -> PollResult:
        """Scan the next span, and commit everything it holds with the cursor."""
        cursor = pending.cursor
        span = self._next_span(head, cursor)
        try:
            scanned = await self._taken(head, cursor, revision)
            scanned = scanned or await self._scan(
                view, head, cursor, span, revision, pending.histories_begun, pending.known
            )
        except SpanTooWideError:
            if span.length == 1:
                raise
            self._halve(span)
            return PollResult(head=head.height, height=cursor.height, behind=head.height - cursor.height)
        except asyncio.CancelledError:
            # Given up because it took too long: as long a span would take too long again.
            self._halve(span)
            raise
        self._span_blocks = min(self._chain.info.span_max, self._span_blocks * 2)
        result = scanned.result
        last = result.blocks[-1]
        read = Cursor(last.height, last.hash)
        # The rest is read up to the head that is newest by then: else a quick chain is always some blocks further on.
        if self._ahead is not None and head.height - last.height >= self._span_blocks:
            self._ahead.start(read, self._read_on(head, read, pending.histories_begun))
        stored = await store_span(self._db, self._chain_scope, head, pending, now, scanned)
        self._read_to = last.height
        await self._tell(stored.judgement, stored.saved, stored.stages)
        return PollResult(
            head=head.height,
            height=last.height,
            behind=head.height - last.height,
            blocks=len(result.blocks),
            deposits=stored.saved.deposits,
            transitions=stored.judgement.transitions,
        )

    def _next_span(self, head: Head, cursor: Cursor) -> Span:
        return Span(first=cursor.height + 1, last=min(head.height, cursor.height + self._span_blocks))

    async def _scan(  # noqa: PLR0913, PLR0917  what is read, and what is known of it
        self,
        view: ChainView,
        head: Head,
        cursor: Cursor,
        span: Span,
        revision: int,
        histories_begun: int,
        known: Known | None = None,
    ) -> Scanned:
        """Return the span that follows the cursor, checked."""
        # The span's last block is known before the addresses are, and must be the one that is scanned. So no
        # address handed out before a block was made can be missing from the cache when that block is scanned.
        # Where it is the head, which was asked for first of all, what was learnt of addresses since is enough.
        is_head = span.last == head.height
        last_hash = head.hash if is_head else (await view.block(span.last)).hash
        if known is None or not is_head:
            known = Known(await self._address_cache.refresh(), self._address_cache.known_xid)
        result = checked(await view.scan(span, known.watch), span, cursor.hash, last_hash)
        return Scanned(result=result, known_xid=known.xid, histories_begun=histories_begun, tokens_revision=revision)

    async def _read_on(self, head: Head, cursor: Cursor, histories_begun: int) -> Scanned:
        """Scan what follows a cursor that is being stored. The next poll decides whether it is of use."""
        revision = self._tokens_revision()
        async with self._chain.view() as view:
            span = self._next_span(head, cursor)
            return await self._scan(view, head, cursor, span, revision, histories_begun)

    async def _taken(self, head: Head, cursor: Cursor, revision: int) -> Scanned | None:
        """Return what was read ahead, if it follows the cursor, knows all tokens and the head has not left it."""
        scanned = None if self._ahead is None else await self._ahead.take(cursor)
        if scanned is None or scanned.tokens_revision < revision:
            return None
        last = scanned.result.blocks[-1]
        left = last.height > head.height or (last.height == head.height and last.hash != head.hash)
        return None if left else scanned

    def _halve(self, span: Span) -> None:
        self._span_blocks = max(1, span.length // 2)
        log.info("span_halved", chain=self._chain_scope.info.id, blocks=self._span_blocks)

    async def _judge(self, head: Head, pending: Pending, now: datetime) -> PollResult:
        """Judge what became due by time alone: nothing new stands in the chain."""
        cursor, judgement, stages = pending.cursor, judging.Judgement(), 0
        if pending.judge or pending.confirm_movements:
            async with self._db.transaction() as conn:
                await cursors.move_cursor(conn, self._chain_scope, old=cursor, new=cursor, head=head, now=now)
                if pending.judge:
                    judgement = await judging.judge(conn, self._chain_scope, head, now, counts_on=False)
                if pending.confirm_movements:
                    stages = await movements.confirm(conn, self._chain_scope, head, now)
            await self._tell(judgement, stages=stages)
        elif pending.is_news:
            async with self._db.autocommit() as conn:
                await cursors.move_cursor(conn, self._chain_scope, old=cursor, new=cursor, head=head, now=now)
        return PollResult(head=head.height, height=cursor.height, behind=0, transitions=judgement.transitions)

    async def _tell(self, judgement: judging.Judgement, saved: store.Saved = NOTHING_SAVED, stages: int = 0) -> None:
        topics = [f"payment:{public_id}" for public_id in judgement.changed]
        topics += [f"account:{public_id}" for public_id in {*judgement.accounts, *saved.accounts}]
        if judgement.events or saved.events:
            topics.append("webhooks")
        if stages:
            topics.append(movements.TOPIC)
        await self._hints.publish(*topics)
