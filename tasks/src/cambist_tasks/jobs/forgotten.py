"""Jobs that Redis forgot."""

from __future__ import annotations

from cambist.bootstrap import Gateway
from cambist.services.jobs.requests import TOPIC


async def queue_forgotten(gateway: Gateway) -> bool:
    """Have every worker tell Redis again of jobs that are due."""
    await gateway.hints.publish(TOPIC)
    return False
