"""How the operator stops a merchant, and lets it go on: see ``docs/operators/merchants.md``."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import structlog
from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Meta

from cambist.services.audit.entries import Action
from cambist.services.identity import suspension
from cambist.services.identity.suspension import REASON_CHARS_MAX
from cambist.services.sending.suspended import wake
from cambist_web.context import Web
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body

log = structlog.get_logger(__name__)


class Suspend(Body, frozen=True, kw_only=True):
    """Why a merchant is suspended. Operators read it, the merchant does not."""

    reason: Annotated[str, Meta(min_length=1, max_length=REASON_CHARS_MAX)]


class MerchantStanding(Answer, frozen=True, kw_only=True):
    """Since when a merchant is suspended; null where it is not."""

    merchant_id: str
    suspended_at: datetime | None


class Suspension(Controller):
    """What the operator does about a merchant who must not go on."""

    tags = ("Operator",)

    @post("/{merchant_id:str}/suspend", status_code=200, summary="Suspend a merchant", opt=permits("merchants.suspend"))
    async def suspend(
        self,
        merchant_id: FromPath[str],
        data: JSONBody[Suspend],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> MerchantStanding:
        """Let nobody act for a merchant, and nothing of it leave.

        Its sessions end, its keys and tokens are refused, and what waits to be sent waits. What is signed already ends
        as always, and money that comes is credited. It holds within a second, everywhere.
        """
        now = web.clock.now()
        async with web.db.transaction() as conn:
            await suspension.suspend(conn, merchant_id, data.reason, now=now)
            told = {"reason": data.reason}
            await audit.record(conn, Action.MERCHANT_SUSPENDED, subject=merchant_id, merchant_id=merchant_id, **told)
        web.key_cache.clear()
        log.warning("merchant_suspended", merchant_id=merchant_id)
        return MerchantStanding(merchant_id=merchant_id, suspended_at=now)

    @post(
        "/{merchant_id:str}/reinstate",
        status_code=200,
        summary="Reinstate a merchant",
        opt=permits("merchants.suspend"),
    )
    async def reinstate(
        self, merchant_id: FromPath[str], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> MerchantStanding:
        """End a merchant's suspension: what waited goes on at once. Its members sign in anew."""
        async with web.db.transaction() as conn:
            merchant_pk = await suspension.reinstate(conn, merchant_id)
            await wake(conn, merchant_pk, web.clock.now())
            await audit.record(conn, Action.MERCHANT_REINSTATED, subject=merchant_id, merchant_id=merchant_id)
        web.key_cache.clear()
        await web.gateway.hints.publish("outbound")
        log.warning("merchant_reinstated", merchant_id=merchant_id)
        return MerchantStanding(merchant_id=merchant_id, suspended_at=None)


controllers = [admin_routes("/api/admin/merchants", Suspension)]
