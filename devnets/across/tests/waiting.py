"""Waits for what happens by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
WAIT_S = 15.0


async def eventually(asked: Callable[[], Awaitable[T | None]]) -> T:
    """Return the first answer that is something."""
    async with asyncio.timeout(WAIT_S):
        while not (found := await asked()):  # noqa: ASYNC110 - the chains tell nobody
            await asyncio.sleep(0.02)
    return found
