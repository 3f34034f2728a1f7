"""What a merchant in person sees and does with webhooks: the log of deliveries, sending again, testing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, Raw
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.actor import Actor
from cambist.services.identity.projects import Url
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.trackers import transactions
from cambist.services.trackers.bodies import TRANSACTION_PREFIX
from cambist.services.webhooks import delivery_log, redelivery, samples
from cambist.services.webhooks.delivery_log import DeliveryAnswer, Json, Status
from cambist.services.webhooks.sender import AttemptResult, Message, Sender
from cambist_web.auth import needs, owned_project_routes, project_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.once import Once
from cambist_web.ratelimit import RateLimit
from cambist_web.schemas import Answer, Body, CursorPageAnswer, NonEmptyFilter

EventName = Annotated[str, Meta(min_length=1, max_length=64)]
StatusFilter = Annotated[Status | None, QueryParameter()]
ResourceFilter = Annotated[str | None, QueryParameter(name="resourceId", min_length=1, max_length=64)]

TESTS = RateLimit("webhook-test", 30)


class TestWebhook(Body, frozen=True, kw_only=True):
    """Which event to pretend, and where to send it, if not to the project's URL."""

    event: EventName
    url: Url | None = None


class TestResult(Answer, frozen=True, kw_only=True):
    """What came of a test delivery."""

    delivered: bool
    status_code: int | None
    duration_ms: int
    signature: str
    timestamp: str
    payload: Json
    response_body: str | None
    error: str | None


class DeliveryDetail(Answer, frozen=True, kw_only=True):
    """One delivery."""

    delivery: DeliveryAnswer


class DeliveryList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of a project's deliveries."""

    deliveries: Sequence[DeliveryAnswer]


class Deliveries(Controller):
    tags = ("Webhooks",)

    @get("/", summary="List webhook deliveries", opt=needs(member="read"))
    async def list(  # noqa: PLR0913  filters and paging, each by name
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        status: StatusFilter = None,
        event: NonEmptyFilter = None,
        resource_id: ResourceFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[DeliveryList]:
        """Return the project's deliveries, each with its attempts: one for each event and target.

        A tracker's transaction is a resource, too.
        """

        async def found(conn: AsyncConnection, part: Part) -> Listed[DeliveryAnswer]:
            told = None
            if resource_id is not None and resource_id.startswith(f"{TRANSACTION_PREFIX}_"):
                told = await transactions.delivery_ids(conn, resource_id)
            return await delivery_log.list_deliveries(
                conn,
                actor.project_pk,
                part,
                status=status,
                event=event,
                resource_id=resource_id,
                delivery_ids=told,
                period=period,
            )

        filters = status, event, resource_id, period
        query = asked.of(web, "deliveries", actor.project_pk, sort=sort, filters=filters)
        return await query.answer(DeliveryList, found)

    @get("/{delivery_id:str}", summary="Read a webhook delivery", opt=needs(member="read"))
    async def read(
        self, delivery_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> DeliveryDetail:
        """Return one delivery with its attempts."""
        async with web.db.transaction() as conn:
            found = await delivery_log.get_delivery(conn, actor.project_pk, delivery_id)
        return DeliveryDetail(delivery=found)

    @post(
        "/{delivery_id:str}/redeliver", status_code=200, summary="Send a delivery again", opt=needs(member="webhooks")
    )
    async def redeliver(
        self,
        delivery_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        once: NamedDependency[Once],
    ) -> DeliveryDetail:
        """Make the delivery due at once, with a fresh set of attempts. 409 while it is still being delivered."""
        async with web.db.transaction() as conn:
            if await once.take(conn):
                delivery = await redelivery.redeliver(conn, actor.project_pk, delivery_id, now=web.clock.now())
            else:
                delivery = await delivery_log.get_delivery(conn, actor.project_pk, delivery_id)
        await web.gateway.hints.publish("webhooks")
        return DeliveryDetail(delivery=delivery)


class WebhookTests(Controller):
    tags = ("Webhooks",)

    @post("/test-webhook", status_code=200, summary="Send a test webhook", opt=needs(member="webhooks"))
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
        return await send_test(web, sender, actor, data)


async def send_test(
    web: Web, sender: Sender, actor: Actor, asked: TestWebhook, endpoint_id: str | None = None
) -> TestResult:
    """Send a made-up event to the project's URL or an endpoint's, signed by its real secret."""
    await web.limiter.take(TESTS, actor.project_id)
    async with web.db.autocommit() as conn:
        url, message = await samples.prepare(
            conn,
            actor,
            event=asked.event,
            url=asked.url,
            endpoint_id=endpoint_id,
            secrets=web.secrets,
            ids=web.ids,
            now=web.clock.now(),
            targets=web.settings.webhook_targets,
        )
    result = await sender.send_once(url, message)
    return told_of_test(message, result)


def told_of_test(message: Message, result: AttemptResult) -> TestResult:
    """Return what a test delivery was, and what came of it."""
    return TestResult(
        delivered=result.delivered,
        status_code=result.status_code,
        duration_ms=result.duration_ms,
        signature=result.signature,
        timestamp=str(result.timestamp_ms),
        payload=Raw(message.body),
        response_body=result.response_preview,
        error=result.error,
    )


controllers = [
    project_routes("/deliveries", Deliveries),
    owned_project_routes("/api/merchant/projects/{project_id:str}", WebhookTests),
]
