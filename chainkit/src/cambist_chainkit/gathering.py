"""Awaits several things at once, with one plain error where one of them fails."""

from __future__ import annotations

import asyncio
from typing import Any


async def gather_all(*awaitables: Any) -> list[Any]:  # noqa: ANN401 - as wide as asyncio.gather
    """Await all at once; at the first error, cancel the rest and raise that error itself, not a group of one."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_as_coroutine(awaitable)) for awaitable in awaitables]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def _as_coroutine(awaitable: Any) -> Any:  # noqa: ANN401 - passes through whatever it is given
    return await awaitable
