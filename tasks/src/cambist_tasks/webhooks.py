"""The worker's deliverer of webhooks, made from the operator's settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cambist.bootstrap import Gateway
from cambist.domain.webhooks import RetrySchedule
from cambist.services.webhooks.delivery import Deliverer
from cambist.services.webhooks.lanes import Limits
from cambist.services.webhooks.secrets import SigningSecrets
from cambist.services.webhooks.sender import open_sender


@asynccontextmanager
async def open_deliverer(gateway: Gateway) -> AsyncIterator[Deliverer]:
    """Open the way out, and yield a deliverer that is not running yet."""
    settings = gateway.settings.webhooks
    async with open_sender(
        clock=gateway.clock,
        timeout_ms=settings.timeout_ms,
        targets=gateway.settings.webhook_targets,
    ) as sender:
        yield Deliverer(
            db=gateway.db,
            sender=sender,
            secrets=SigningSecrets(gateway.secrets),
            hints=gateway.hints,
            clock=gateway.clock,
            schedule=RetrySchedule(retries=settings.retries, base_delay_ms=settings.base_delay_ms),
            timeout_ms=settings.timeout_ms,
            limits=Limits(quick_max=settings.concurrency, lane_max=settings.concurrency_per_host),
        )
