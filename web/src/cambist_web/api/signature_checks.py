"""Whether a merchant's server checks signatures: two tests, of which it must take one and refuse the other."""

from __future__ import annotations

import asyncio
from datetime import datetime

from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from msgspec import Struct

from cambist.domain.webhooks import SignatureCheck
from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.webhooks import signature_checks
from cambist.services.webhooks.sender import AttemptResult, Sender
from cambist_web.auth import needs, owned_project_routes
from cambist_web.context import Web
from cambist_web.origin import Audit
from cambist_web.ratelimit import RateLimit
from cambist_web.schemas import Answer

CHECKS = RateLimit("webhook-check", 10)


class SignatureCheckView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the server did with a right and a wrong signature when it was last asked, for this URL and this secret."""

    result: SignatureCheck
    checked_at: datetime


class CheckedDelivery(Struct, frozen=True, kw_only=True, rename="camel"):
    """One of the two tests, and what was answered."""

    delivery_id: str
    status_code: int | None
    duration_ms: int
    response_body: str | None
    error: str | None


class SignatureChecked(Answer, frozen=True, kw_only=True):
    """What both answers show. `kept` is false where URL or secret became others meanwhile."""

    result: SignatureCheck
    checked_at: datetime
    kept: bool
    genuine: CheckedDelivery
    forged: CheckedDelivery


def check_view(result: SignatureCheck | None, checked_at: datetime | None) -> SignatureCheckView | None:
    if result is None or checked_at is None:
        return None
    return SignatureCheckView(result=result, checked_at=checked_at)


class SignatureChecks(Controller):
    tags = ("Webhooks",)

    @post("/check-webhook", status_code=200, summary="Check a server's signatures", opt=needs(member="webhooks"))
    async def check(
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        sender: NamedDependency[Sender],
        audit: NamedDependency[Audit],
    ) -> SignatureChecked:
        """Send `webhook.test` twice to the project's webhook URL now: signed rightly, and signed wrongly.

        `verified` is a server that answers the first one with 2xx and the second one with 4xx. The result stays in
        `signatureCheck` until URL or secret are others.
        """
        return await _check(web, sender, actor, audit, None)

    @post(
        "/webhook-endpoints/{endpoint_id:str}/check",
        status_code=200,
        summary="Check an endpoint's signatures",
        opt=needs(member="webhooks"),
    )
    async def check_endpoint(
        self,
        endpoint_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        sender: NamedDependency[Sender],
        audit: NamedDependency[Audit],
    ) -> SignatureChecked:
        """Do the same with an endpoint and its own secret, paused or not."""
        return await _check(web, sender, actor, audit, endpoint_id)


async def _check(web: Web, sender: Sender, actor: Actor, audit: Audit, endpoint_id: str | None) -> SignatureChecked:
    await web.limiter.take(CHECKS, actor.project_id)
    async with web.db.autocommit() as conn:
        tried = await signature_checks.prepare(
            conn, actor, endpoint_id=endpoint_id, secrets=web.secrets, ids=web.ids, now=web.clock.now()
        )
    # No transaction is open while a stranger's server takes its time.
    genuine, forged = await asyncio.gather(
        sender.send_once(tried.url, tried.genuine), sender.send_once(tried.url, tried.forged)
    )
    async with web.db.transaction() as conn:
        found = await signature_checks.record(conn, actor, tried, genuine, forged, now=web.clock.now())
        await audit.record(conn, Action.SIGNATURE_CHECKED, subject=tried.subject, result=found.result)
    return SignatureChecked(
        result=found.result,
        checked_at=found.checked_at,
        kept=found.kept,
        genuine=_delivery(found.genuine_id, genuine),
        forged=_delivery(found.forged_id, forged),
    )


def _delivery(delivery_id: str, result: AttemptResult) -> CheckedDelivery:
    return CheckedDelivery(
        delivery_id=delivery_id,
        status_code=result.status_code,
        duration_ms=result.duration_ms,
        response_body=result.response_preview,
        error=result.error,
    )


controllers = [owned_project_routes("/api/merchant/projects/{project_id:str}", SignatureChecks)]
