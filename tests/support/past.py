"""The past of a chain, read for trackers step by step."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from cambist.hints import Hints
from cambist.plugin import AddressFamily, Chain
from cambist.services.receiving.history import HistoryReader, Progress, Step


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
