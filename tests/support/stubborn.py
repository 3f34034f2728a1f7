"""What a plugin does that catches its own cancellation, as a retry loop with a bare ``except:``."""

from __future__ import annotations

import asyncio


async def stay(freed: asyncio.Event) -> None:
    """Go on, whatever is asked of it, until it is freed."""
    while not freed.is_set():
        try:
            await freed.wait()
        except asyncio.CancelledError:
            continue
