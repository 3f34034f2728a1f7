"""What a merchant in person sees and does with webhooks: the log of deliveries, sending again, testing."""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Raw

from cambist.services.actor import Actor
from cambist.services.paging import LIMIT
from cambist.services.webhooks import log, test_deliveries
from cambist.services.webhooks.sender import Sender
from cambist_web.context import Web
from cambist_web.parameters import Limit, NonEmptyFilter, Page
from cambist_web.ratelimit import RateLimit

from .schemas import DeliveryDetail, DeliveryList, TestResult, TestWebhook, delivery_answer

TESTS = RateLimit("webhook-test", 30)

ResourceFilter = Annotated[str | None, QueryParameter(name="resourceId", min_length=1, max_length=64)]


class Deliveries(Controller):
    """The events of one project."""

    tags = ("Webhooks",)

    @get("/", summary="List webhook deliveries")
    async def list(  # noqa: PLR0913  filters and paging, each by name
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        *,
        status: NonEmptyFilter = None,
        event: NonEmptyFilter = None,
        resource_id: ResourceFilter = None,
        page: Page = 1,
        limit: Limit = LIMIT,
    ) -> DeliveryList:
        """Return the project's events, newest first, each with its attempts."""
        async with web.db.transaction() as conn:
            found = await log.list_deliveries(
                conn, actor.project_pk, status=status, event=event, resource_id=resource_id, page=page, limit=limit
            )
        shown = [delivery_answer(delivery) for delivery in found.items]
        return DeliveryList(deliveries=shown, page=page, limit=limit, total=found.total)

    @get("/{delivery_id:str}", summary="Read a webhook delivery")
    async def read(
        self, delivery_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> DeliveryDetail:
        """Return one event with its attempts."""
        async with web.db.transaction() as conn:
            found = await log.get_delivery(conn, actor.project_pk, delivery_id)
        return DeliveryDetail(delivery=delivery_answer(found))

    @post("/{delivery_id:str}/redeliver", status_code=200, summary="Send an event again")
    async def redeliver(
        self, delivery_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> DeliveryDetail:
        """Make the event due at once, with a fresh set of attempts. 409 while it is still being delivered."""
        async with web.db.transaction() as conn:
            delivery = await log.redeliver(conn, actor.project_pk, delivery_id, now=web.clock.now())
        await web.gateway.hints.publish("webhooks")
        return DeliveryDetail(delivery=delivery_answer(delivery))


class WebhookTests(Controller):
    """Trying a receiver out."""

    tags = ("Webhooks",)

    @post("/test-webhook", status_code=200, summary="Send a test webhook")
    async def send(
        self,
        data: JSONBody[TestWebhook],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        sender: NamedDependency[Sender],
    ) -> TestResult:
        """Send a made-up event now, signed with the real secret, to `url` or the project's webhook URL.

        The header `X-Webhook-Test` is `true`, `data.isTest` too, and identifiers have the form `pay_test_...`.
        """
        await web.limiter.take(TESTS, actor.project_id)
        async with web.db.autocommit() as conn:
            test = await test_deliveries.prepare(
                conn,
                actor,
                event=data.event,
                url=data.url,
                secrets=web.secrets,
                ids=web.ids,
                now=web.clock.now(),
                allow_private_targets=web.settings.webhooks.allow_private_targets,
            )
        result = await test_deliveries.send(sender, test)
        return TestResult(
            delivered=result.delivered,
            status_code=result.status_code,
            duration_ms=result.duration_ms,
            signature=result.signature,
            timestamp=str(result.timestamp_ms),
            payload=Raw(test.message.body),
            response_body=result.response_preview,
            error=result.error,
        )
