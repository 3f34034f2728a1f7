"""Tells trackers of what moved on one chain: at every hint and every second. Any number of workers may do so."""

from __future__ import annotations

from cambist.bootstrap import Gateway
from cambist.services.trackers.fan_out import FanOut
from cambist.services.trackers.movements import TOPIC

PAUSE_S = 1.0
"""The longest sleep. Hints make it shorter, losing them costs no more than this."""


async def keep_telling(gateway: Gateway, chain: str) -> None:
    """Tell of all that is stored of a live chain, until cancelled. A simulated one tells where it is followed."""
    fan_out = FanOut(gateway.db, gateway.clock, gateway.hints)
    async with gateway.hints.subscribe(TOPIC) as hints:
        while True:
            await fan_out.drain(chain, 0)
            await hints.wait(PAUSE_S)
