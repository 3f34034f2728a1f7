"""Chains are read anew from the first height at which there can be money of ours, by the same watcher as ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from cambist.db.engine import Database
from cambist.hints import Hints
from cambist.plugin import AddressFamily, Chain, ChainError
from cambist.ports import Clock, Ids
from cambist.services.accounting.ledger import Posting, is_posted, post
from cambist.services.receiving.deposits import AddressCache, Watcher, cursors
from cambist.services.receiving.deposits import store as deposits_store
from cambist.services.recovery.reconcile.books import MODE, SCOPE
from cambist.services.recovery.unfinished import KIND

from .manifest import RestoreError

log = structlog.get_logger(__name__)

FAILURES_MAX = 8
PAUSE_FIRST_S = 1.0
TOLD_EVERY_BLOCKS = 10_000

Told = Callable[[str], None]


class Scanner:
    """Reads one chain up to its head."""

    def __init__(  # noqa: PLR0913  a composition's parts, each by name
        self, *, db: Database, chain: Chain, family: AddressFamily, address_cache: AddressCache, clock: Clock, ids: Ids
    ) -> None:
        self._db = db
        self._chain = chain
        self._clock = clock
        self._chain_scope = deposits_store.WatchedChain(info=chain.info, family=family, scope=SCOPE, mode=MODE, ids=ids)
        self._watcher = Watcher(
            db=db,
            chain=chain,
            family=family,
            address_cache=address_cache,
            scope=SCOPE,
            mode=MODE,
            clock=clock,
            ids=ids,
            hints=Hints(None),
            fiat_currencies=(),  # the prices of now are not those of when the money came
        )

    async def begin(self, first_height: int) -> None:
        """Have reading start here, unless a restore has begun it. Raises RestoreError."""
        begun = f"read:{self._chain.info.id}"
        async with self._db.transaction() as conn:
            if await cursors.load_cursor(conn, self._chain_scope) is not None:
                # What somebody else reads begins where the chain stood then: what lies below would never be found.
                if not await is_posted(conn, KIND, begun):
                    raise self._read_by_others()
                return
        try:
            async with self._chain.view() as view:
                head = await view.head()
                # The block before: one that is stored counts as read.
                height = min(max(0, first_height - 1), head.height)
                block = await view.block(height)
                lowest = max(0, height - self._chain.info.hashes_kept)
                below = [height - 2**step for step in range((height - lowest).bit_length())]
                earlier = [await view.block(one) for one in below]
        except ChainError as error:
            raise self._failure(error) from error
        async with self._db.transaction() as conn:
            cursor = await cursors.create_cursor(conn, self._chain_scope, block, earlier, self._clock.now())
            if cursor.hash != block.hash:
                raise self._read_by_others()
            await post(conn, MODE, [Posting(mode=MODE, kind=KIND, reference=begun, movements=[])])

    async def read(self, told: Told) -> int:
        """Read on until the head is reached, and return its height. Raises RestoreError, and can be repeated then."""
        failures, told_at = 0, 0
        async with self._watcher.reading_ahead():
            while True:
                try:
                    polled = await self._watcher.poll()
                except ChainError as error:
                    failures += 1
                    if failures > FAILURES_MAX:
                        raise self._failure(error) from error
                    log.warning("restore_poll_failed", chain=self._chain.info.id, error=str(error))
                    await asyncio.sleep(PAUSE_FIRST_S * failures)
                    continue
                failures = 0
                if not polled.behind:
                    return polled.height
                if polled.height >= told_at:
                    told(f"{self._chain.info.id}: at height {polled.height}, {polled.behind} to go")
                    told_at = polled.height + TOLD_EVERY_BLOCKS

    def _read_by_others(self) -> RestoreError:
        return RestoreError(
            f"{self._chain.info.id} is read by a worker already, which has begun at its head. What came before would"
            " not be found: stop every worker, and restore into another new database."
        )

    def _failure(self, error: ChainError) -> RestoreError:
        return RestoreError(
            f"{self._chain.info.id} cannot be read: {error}. What was done is kept, and the same command goes on from"
            " there."
        )
