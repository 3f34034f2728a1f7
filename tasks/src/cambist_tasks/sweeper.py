"""Does every few seconds what nobody may forget: each chore on its own, so that a failing one stops no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog
from msgspec import Struct

log = structlog.get_logger(__name__)

CHORE_TIMEOUT_S = 60.0


class Chore(Struct, frozen=True, kw_only=True):
    """Something to do again and again. ``work`` returns True while there is more to do at once."""

    name: str
    work: Callable[[], Awaitable[bool]]
    interval_s: float


async def sweep(chores: Sequence[Chore]) -> None:
    """Do every chore at its interval until cancelled."""
    async with asyncio.TaskGroup() as group:
        for chore in chores:
            group.create_task(_repeat(chore), name=f"chore {chore.name}")


async def _repeat(chore: Chore) -> None:
    while True:
        more = False
        try:
            async with asyncio.timeout(CHORE_TIMEOUT_S):
                more = await chore.work()
        except Exception:
            log.exception("chore_failed", chore=chore.name)
        await asyncio.sleep(0 if more else chore.interval_s)
