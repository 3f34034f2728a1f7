"""What requests that send money have in common: what their use cases need, and what follows the commit."""

from __future__ import annotations

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import BusyError
from cambist.domain.intents import AskedBy
from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.errors import UnavailableError
from cambist.services.payouts.cancel import Asked, ask_to_cancel
from cambist.services.payouts.queue import PayoutContext

from .context import Web
from .origin import Audit

log = structlog.get_logger(__name__)


def payout_context(web: Web) -> PayoutContext:
    gateway = web.gateway
    return PayoutContext(registry=gateway.registry, keys=gateway.keys, clock=gateway.clock, ids=gateway.ids)


async def cancel(web: Web, audit: Audit, conn: AsyncConnection, payout_id: str, asked_by: AskedBy) -> Asked:
    """Ask to cancel a payout, refund or withdrawal that is there, and write down who did, unless somebody had before.

    After the commit, call ``changed_on``.
    """
    asked = await ask_to_cancel(conn, payout_id, asked_by, web.clock.now())
    if not asked.before:
        await audit.record(conn, Action.CANCEL_ASKED, subject=payout_id)
    return asked


async def sent_on(web: Web, actor: Actor, chain: str, *topics: str) -> None:
    """Wake the engine after the commit, and who listens for these topics.

    What is simulated is sent at once, with what was there when it was asked. On a busy simulated chain or database the
    worker sends it a moment later: the request itself has succeeded.
    """
    await changed_on(web, actor.mode, actor.project_pk, chain, *topics)


async def changed_on(web: Web, mode: str, project_pk: int, chain: str, *topics: str) -> None:
    """Do the same for a project that is known by its primary key."""
    await web.gateway.hints.publish("outbound", *topics)
    if mode != "sandbox":
        return
    try:
        await web.sandbox.send_queued(project_pk, [chain])
    except (UnavailableError, BusyError) as error:
        log.warning("sandbox_left_to_the_worker", project=project_pk, reason=str(error))
