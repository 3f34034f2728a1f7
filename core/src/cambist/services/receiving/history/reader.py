"""Reads a chain's past for trackers, a span at a time, beside the live watch: see ``docs/decisions``, 0030.

All trackers of a chain share one reading, which goes up from block to block as a lift does: it takes along whoever
waits where it is, and begins at the bottom again when nobody is left above. So nobody waits longer than for one ride.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import structlog
from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.domain.troubles import Said, Trouble, say, unread
from cambist.hints import Hints
from cambist.plugin import (
    AddressFamily,
    Chain,
    ChainError,
    ScanResult,
    Span,
    SpanTooWideError,
)
from cambist.ports import Clock
from cambist.services.chain_scope import ChainScope
from cambist.services.platform import PlatformSettings, PlatformSettingsCache
from cambist.services.receiving.deposits.address_filter import AddressFilter
from cambist.services.receiving.deposits.rows import lock_cursor
from cambist.services.receiving.deposits.store import stored_hash
from cambist.services.trackers import fan_out, movements
from cambist.services.trackers.bodies import Stage
from cambist.services.trackers.fan_out import FanOut, is_gone
from cambist.services.trackers.telling import Told, tell

from . import rows
from .past import SCAN_TIMEOUT_S, read_past
from .rows import Anchor, Ground, Wanting

log = structlog.get_logger(__name__)

BEHIND_MAX = 1
"""While the live watch has more blocks than this left to read, the past waits."""
BEHIND_PAUSE_S = 0.5
BEHIND_PAUSES_MAX = 20
"""After so many the job's place is given to others."""
BEHIND_RETRY_S = 10.0
UNTOLD_MAX = 100
"""Movements of a span that are passed by since they cannot be told. With more, it is not they that are wrong."""
MOVEMENTS_MAX = 600
"""Movements that are told of in one transaction."""
KEYS_MAX = 10_000

Saving: TypeAlias = Callable[[Mapping[str, Any]], AbstractAsyncContextManager[AsyncConnection]]
"""Opens a transaction that also keeps the progress, and is committed only by who may still read."""

_KEYS = "SELECT id, address FROM tracker_addresses WHERE tracker_pk = $1 AND id > $2 ORDER BY id LIMIT $3"


class Progress(Struct, frozen=True, kw_only=True):
    """Where the lift is: the last block that was read, and how many are read at once, 0 for as many as the chain lets.

    ``block_hash`` is that block's, None where it is not known.
    """

    height: int = -1
    block_hash: str | None = None
    span_blocks: int = 0


class Step(Struct, frozen=True, kw_only=True):
    """What one step came to. ``over``: nothing is left to read now. ``retry_s`` and ``error``: what is, just failed."""

    progress: Progress
    blocks: int = 0
    over: bool = False
    retry_s: float | None = None
    error: Said | None = None


class _Part(Struct, frozen=True, kw_only=True):
    """What of a span is still to be told: stages that were looked up, and after which movement others follow.

    ``untold`` are the movements that were passed by in blocks which nobody was said yet to have read.
    """

    left: Sequence[Stage] = ()
    after: tuple[int, int] | None = (-1, 0)
    untold: Sequence[int] = ()


class _UntoldError(Exception):
    """So many movements of a span could not be told that it cannot be they that are wrong."""


class HistoryReader:
    """Reads the past of one chain in one scope. Any number may: what is stored and told twice changes nothing."""

    def __init__(  # noqa: PLR0913  a composition root's parts, each by name
        self,
        *,
        db: Database,
        chain: Chain,
        family: AddressFamily,
        scope: int,
        mode: str,
        clock: Clock,
        hints: Hints,
        blocks_max: int,
        pause_s: float,
    ) -> None:
        self._db, self._chain, self._family = db, chain, family
        self._chain_scope = ChainScope(info=chain.info, scope=scope, mode=mode)
        self._clock, self._hints = clock, hints
        self._blocks_max, self._pause_s = blocks_max, pause_s
        self._live = FanOut(db, clock, hints)
        self._pauses = 0
        self._platform = PlatformSettingsCache(db, clock)
        self._watch = AddressFilter(0)
        self._known: dict[int, tuple[str, int]] = {}

    async def step(self, progress: Progress, saving: Saving) -> Step:
        """Read the next span for all who want it, store and tell it; or find that there is nothing to read now.

        An endpoint that cannot or does not tell the truth postpones those who wanted the span, and nobody else.
        """
        self._chain_scope = self._chain_scope.known_as(self._chain.info)
        ground = await self._ground()
        if ground is None:
            return Step(progress=progress, over=True)
        async with self._db.autocommit() as conn:
            everybody = await rows.wanting(conn, self._chain_scope, ground.deep, self._clock.now())
        if not everybody:
            return await self._idle(progress)
        if ground.head - ground.height > BEHIND_MAX:
            return await self._wait(progress)
        self._pauses = 0
        span, served = self._next(progress, ground, everybody)
        await self._learn(served)
        try:
            result, anchor = await self._read(span, progress)
        except SpanTooWideError as error:
            if span.length == 1:
                return await self._postpone(progress, served, span, error, saving)
            async with self._saving(saving, narrowed := self._narrowed(progress, span)):
                return Step(progress=narrowed)
        except TimeoutError as error:
            return await self._postpone(self._narrowed(progress, span), served, span, error, saving)
        except ChainError as error:
            return await self._postpone(progress, served, span, error, saving)
        return await self._store(progress, served, result, anchor, saving)

    async def _ground(self) -> Ground | None:
        """Begin and end what is due, and return where the live watch is."""
        async with self._db.transaction() as conn:
            ground = await rows.end_read(conn, self._chain_scope)
            due = self._clock.now(), self._pause_s
            begins = ground is not None and await rows.any_to_begin(conn, self._chain_scope, *due)
        if begins:
            async with self._db.transaction() as conn:
                await rows.begin(conn, self._chain_scope, self._blocks_max, *due)
        return ground

    async def _wait(self, progress: Progress) -> Step:
        self._pauses += 1
        if self._pauses > BEHIND_PAUSES_MAX:
            self._pauses = 0
            return Step(progress=progress, retry_s=BEHIND_RETRY_S, error=say(Trouble.WATCH_BEHIND))
        await asyncio.sleep(BEHIND_PAUSE_S)
        return Step(progress=progress)

    async def _idle(self, progress: Progress) -> Step:
        now = self._clock.now()
        async with self._db.autocommit() as conn:
            failed = await rows.failed(conn, self._chain_scope, now)
        if failed is None:
            return Step(progress=progress, over=True)
        return Step(progress=progress, retry_s=(failed.due_at - now) / timedelta(seconds=1), error=failed.error)

    def _next(self, progress: Progress, ground: Ground, everybody: Sequence[Wanting]) -> tuple[Span, Sequence[Wanting]]:
        """Return the next blocks, and who wants them: at the lift's height or above it, or else from the bottom on."""
        waiting = [one for one in everybody if one.read_block >= progress.height] or everybody
        first = waiting[0].read_block + 1
        blocks = progress.span_blocks or self._chain.info.span_max
        last = min(first + blocks - 1, ground.deep, max(one.to_block for one in waiting))
        return Span(first=first, last=last), [one for one in waiting if one.read_block < last]

    async def _learn(self, served: Sequence[Wanting]) -> None:
        """Have the addresses of these trackers in the filter. A list's addresses are numbered as they are committed."""
        for one in served:
            xid, last_id = self._known.get(one.tracker_pk, ("", 0))
            while xid != one.xid:
                async with self._db.autocommit() as conn:
                    found = (await conn.exec_driver_sql(_KEYS, (one.tracker_pk, last_id, KEYS_MAX))).all()
                self._watch.update([self._family.address_key(row.address) for row in found])
                if len(found) < KEYS_MAX:
                    xid = one.xid
                if found:
                    last_id = found[-1].id
                self._known[one.tracker_pk] = (xid, last_id)

    async def _read(self, span: Span, progress: Progress) -> tuple[ScanResult, Anchor]:
        parent = progress.block_hash if progress.height == span.first - 1 else None
        return await read_past(self._db, self._chain, self._chain_scope, span, self._watch, parent=parent)

    def _narrowed(self, progress: Progress, span: Span) -> Progress:
        blocks = max(1, span.length // 2)
        log.info("history_span_halved", chain=self._chain.info.id, blocks=blocks)
        return replace(progress, span_blocks=blocks)

    async def _postpone(
        self, progress: Progress, served: Sequence[Wanting], span: Span, error: Exception, saving: Saving
    ) -> Step:
        """Have those tried again later who want the first of these blocks; the others begin behind it."""
        # Should the chain have left the block that was read last, the next try must not insist on it.
        progress = replace(progress, block_hash=None)
        is_untold = isinstance(error, _UntoldError)
        said = Said(Trouble.OTHER, str(error)) if is_untold else unread(error, timeout_s=SCAN_TIMEOUT_S)
        log.warning("history_failed", chain=self._chain.info.id, scope=self._chain_scope.scope, error=said.words)
        async with self._saving(saving, progress) as conn:
            first = [one for one in served if one.read_block < span.first]
            await rows.postpone(conn, first, said, self._clock.now())
        return Step(progress=progress)

    async def _store(
        self, progress: Progress, served: Sequence[Wanting], result: ScanResult, anchor: Anchor, saving: Saving
    ) -> Step:
        trackers = [one.tracker_pk for one in served]
        async with self._db.autocommit() as conn:
            moved = await movements.of_trackers(conn, self._chain_scope, trackers, result)
        if moved:
            async with self._saving(saving, progress) as conn:
                await lock_cursor(conn, *self._chain_scope.key)
                if await stored_hash(conn, self._chain_scope, anchor.height) != anchor.hash:
                    # A reorg went below what is deep, or the live watch is so far ahead that it forgot this block.
                    return Step(progress=progress)
                await movements.save_past(conn, self._chain_scope, moved)
        last = result.blocks[-1]
        blocks = progress.span_blocks and min(self._chain.info.span_max, progress.span_blocks * 2)
        done = Progress(height=last.height, block_hash=last.hash, span_blocks=blocks)
        span = Span(first=result.blocks[0].height, last=last.height)
        try:
            await self._tell((span.first, span.last), progress, done, served, saving)
        except _UntoldError as error:
            return await self._postpone(progress, served, span, error, saving)
        return Step(progress=done, blocks=len(result.blocks))

    async def _tell(
        self, blocks: tuple[int, int], progress: Progress, done: Progress, served: Sequence[Wanting], saving: Saving
    ) -> None:
        """Tell of all that stands in a span, a bounded part in a transaction; then the span is read."""
        part = _Part()
        while part.left or part.after is not None:
            # What happens now comes first: who tells holds the live telling's cursor.
            await self._live.drain(*self._chain_scope.key)
            async with self._saving(saving, progress) as conn:
                part, deliveries = await self._tell_part(conn, part, blocks, served)
            if len(part.untold) > UNTOLD_MAX:
                raise _UntoldError(f"More than {UNTOLD_MAX} movements from block {blocks[0]} on could not be told.")
            if deliveries:
                await self._hints.publish("webhooks", movements.TOPIC)
        async with self._saving(saving, done) as conn:
            await rows.count_untold(conn, served, part.untold)
            await rows.advance(conn, served, done.height)

    async def _tell_part(
        self, conn: AsyncConnection, part: _Part, blocks: tuple[int, int], served: Sequence[Wanting]
    ) -> tuple[_Part, int]:
        """Tell of the next stages; return what is left then, and how many deliveries were queued."""
        trackers = [one.tracker_pk for one in served]
        settings, now = await self._platform.get(), self._clock.now()
        head = await fan_out.lock_cursor(conn, *self._chain_scope.key)
        left, after = part.left, part.after
        if left:
            left = await rows.still_standing(conn, left)
        elif after is not None:
            found, after = await rows.stages_of(conn, self._chain_scope, blocks, after, trackers, MOVEMENTS_MAX)
            left = [Stage(movement_pk, stage, head, now) for movement_pk, stage in found]
        untold = part.untold
        told = await self._told(conn, left, settings, now, trackers)
        if told.stages or not left:
            left = left[told.stages :]
        else:
            untold = [*untold, left[0].movement_pk]
            left = [stage for stage in left if stage.movement_pk != left[0].movement_pk]
        if not left and after is not None:
            # Of the block where the next part begins more may follow; those before it need no second reading.
            await rows.count_untold(conn, served, untold)
            await rows.advance(conn, served, after[0] - 1)
            untold = ()
        return _Part(left=left, after=after, untold=untold), told.deliveries

    async def _told(
        self,
        conn: AsyncConnection,
        stages: Sequence[Stage],
        settings: PlatformSettings,
        now: datetime,
        trackers: Sequence[int],
    ) -> Told:
        """Tell of the first of these: of fewer where that fails, and of none where the first alone cannot be told."""
        count = len(stages)
        while True:
            try:
                async with conn.begin_nested():
                    return await tell(
                        conn,
                        *self._chain_scope.key,
                        stages[:count],
                        settings=settings,
                        now=now,
                        only_trackers=trackers,
                    )
            except Exception as error:
                if is_gone(error):
                    raise
                if count == 1:
                    log.exception("history_movement_untold", chain=self._chain.info.id, movement=stages[0].movement_pk)
                    return Told(stages=0, deliveries=0)
                count //= 2

    def _saving(self, saving: Saving, progress: Progress) -> AbstractAsyncContextManager[AsyncConnection]:
        return saving(asdict(progress))
