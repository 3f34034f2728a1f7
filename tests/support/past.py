"""The past of a chain, read for trackers step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from cambist.hints import Hints
from cambist.plugin import AddressFamily, Chain
from cambist.services.receiving.history import HistoryReader, Progress, Step
from cambist.services.trackers.fan_out import FanOut
from cambist.testing.memory import memory_chain_info
from cambist.testing.memory.plugin import MemoryChainConfig
from tests.support.trackers import Watchers

ONE = 1_000_000
INFO = memory_chain_info(config=MemoryChainConfig(span_max=4, confirmations=3))


class Past:
    """One reader, and its progress, which is kept as a job's is: only by a transaction that is committed."""

    def __init__(
        self,
        db: Any,
        chain: Chain,
        family: AddressFamily,
        clock: Any,
        *,
        scope: int = 0,
        blocks_max: int = 1_000_000,
        pause_s: float = 0,
        progress: Progress | None = None,
    ) -> None:
        self.db = db
        self.progress = progress or Progress()
        self.steps: list[Step] = []
        self.reader = HistoryReader(
            db=db,
            chain=chain,
            family=family,
            scope=scope,
            mode="sandbox" if scope else "live",
            clock=clock,
            hints=Hints(None),
            blocks_max=blocks_max,
            pause_s=pause_s,
        )

    @asynccontextmanager
    async def saving(self, progress: Mapping[str, Any]) -> AsyncIterator[Any]:
        async with self.db.transaction() as conn:
            yield conn
        self.progress = msgspec.convert(progress, Progress)

    async def step(self) -> Step:
        step = await self.reader.step(self.progress, self.saving)
        self.steps.append(step)
        return step

    async def read(self) -> int:
        """Read until nothing is left that can be read now; return how many blocks were."""
        before = len(self.steps)
        while not (step := await self.step()).over and step.retry_s is None:
            pass
        return sum(step.blocks for step in self.steps[before:])


def mover(shop: Any, chain: Any, watcher: Any, token: Any) -> Callable[..., Awaitable[list[str]]]:
    """Return what pays an address in each of so many blocks, and has the live watch read and tell of them."""
    fan = FanOut(shop.db, shop.clock, Hints(None))

    async def move(address: str | None = None, blocks: int = 1, **how: Any) -> list[str]:
        paid = []
        for _ in range(blocks):
            if address is not None:
                paid.append(chain.transfer(token, address, ONE, **how))
            chain.mine()
        await shop.poll(watcher)
        await fan.drain("memory", 0)
        return paid

    return move


async def heard(watchers: Watchers, tracker: int) -> Counter[tuple[str, str]]:
    """Return what a tracker was told: how often of which transaction what."""
    return Counter((one["data"]["txHash"], one["data"]["status"]) for one in await watchers.told(tracker))


def whole(*paid: Sequence[str]) -> Counter[tuple[str, str]]:
    """Return what is heard of transactions that were told to their end, once."""
    return Counter((tx_id, stage) for some in paid for tx_id in some for stage in ("detected", "confirmed"))


async def told_of(watchers: Watchers, tracker: int) -> Any:
    """Return the row of a tracker's history."""
    [row] = await watchers.rows("SELECT * FROM tracker_histories WHERE tracker_pk = $1", tracker)
    return row
