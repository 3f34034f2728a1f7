"""Awaits several things at once, with one plain error where one of them fails."""

from __future__ import annotations

import asyncio
from typing import Any


async def gather_all(*awaitables: Any) -> list[Any]:  # noqa: ANN401 - as wide as asyncio.gather
    """Await all at once; at the first error, cancel the rest and raise that error itself, not a group of one.

    No asyncio.TaskGroup: before Python 3.13 one that fails leaves its task marked as being cancelled, and in 3.11.2,
    which Debian 12 has, ``asyncio.timeout`` then ends such a task for good with CancelledError.
    """
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
