"""What requests that send money have in common: what their use cases need, and what follows the commit."""

from __future__ import annotations

import structlog

from cambist.db.engine import BusyError
from cambist.services.actor import Actor
from cambist.services.errors import UnavailableError
from cambist.services.payouts.queue import PayoutContext

from .context import Web

log = structlog.get_logger(__name__)


def payout_context(web: Web) -> PayoutContext:
    gateway = web.gateway
    return PayoutContext(registry=gateway.registry, keys=gateway.keys, clock=gateway.clock, ids=gateway.ids)


async def sent_on(web: Web, actor: Actor, chain: str, *topics: str) -> None:
    """Wake the engine after the commit, and who listens for these topics.

    What is simulated is sent at once, with what was there when it was asked. On a busy simulated chain or database the
    worker sends it a moment later: the request itself has succeeded.
    """
    await web.gateway.hints.publish("outbound", *topics)
    if actor.mode != "sandbox":
        return
    try:
        await web.sandbox.send_queued(actor.project_pk, [chain])
    except (UnavailableError, BusyError) as error:
        log.warning("sandbox_left_to_the_worker", project=actor.project_id, reason=str(error))
