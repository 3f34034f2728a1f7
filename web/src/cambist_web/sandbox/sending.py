"""What a sandbox project sends is sent within the request that asks for it."""

from __future__ import annotations

from collections.abc import Collection

import structlog

from cambist.services.actor import Actor
from cambist.services.errors import UnavailableError
from cambist_web.context import Web

log = structlog.get_logger(__name__)


async def send_simulated(web: Web, actor: Actor, chain_ids: Collection[str]) -> None:
    """Send at once what a request has queued and committed, where its chains are simulated.

    On a busy chain the worker sends it a moment later: the request itself has succeeded.
    """
    if actor.mode != "sandbox":
        return
    try:
        await web.sandbox.send_queued(actor.project_pk, chain_ids)
    except UnavailableError as error:
        log.warning("sandbox_left_to_the_worker", project=actor.project_id, reason=error.message)
