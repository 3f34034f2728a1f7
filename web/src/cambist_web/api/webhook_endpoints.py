"""A project's webhook endpoints: where its events go beside the default URL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from litestar import Controller, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.webhooks import delivery_log, endpoints
from cambist.services.webhooks.delivery_log import DeliveryAnswer
from cambist.services.webhooks.endpoints import ChangeEndpoint, Endpoint, EventNames, Url
from cambist.services.webhooks.sender import Sender
from cambist_web.auth import needs, owned_project_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.once import Once
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, Body, CursorPageAnswer, NonEmptyFilter, sent
from cambist_web.standing import still

from .deliveries import DeliveryList, ResourceFilter, StatusFilter, TestResult, TestWebhook, send_test
from .projects import RotateSecret, SecretRotated, rotated
from .signature_checks import SignatureCheckView, check_view


class CreateEndpoint(Body, frozen=True, kw_only=True):
    """A new endpoint. `events` are the names that it hears of; with none it hears of all, new ones too."""

    url: Url
    events: EventNames = []  # noqa: RUF012  msgspec copies it
    paused: bool = False


class EndpointView(Struct, frozen=True, kw_only=True, rename="camel"):
    """An endpoint. `previousSecretUntil` is there while a rotated secret still signs beside the new one."""

    endpoint_id: str
    url: str
    events: Sequence[str]
    paused: bool
    secret_rotated_at: datetime
    previous_secret_until: datetime | None
    signature_check: SignatureCheckView | None
    created_at: datetime


class EndpointDetail(Answer, frozen=True, kw_only=True):
    """One endpoint."""

    endpoint: EndpointView


class EndpointMade(EndpointDetail, frozen=True, kw_only=True):
    """The new endpoint, with its signing secret, shown once."""

    webhook_secret: str


class EndpointList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of a project's endpoints."""

    endpoints: Sequence[EndpointView]


def endpoint_view(endpoint: Endpoint, now: datetime) -> EndpointView:
    until = endpoint.previous_secret_until
    return EndpointView(
        endpoint_id=endpoint.endpoint_id,
        url=endpoint.url,
        events=endpoint.events,
        paused=endpoint.paused,
        secret_rotated_at=endpoint.secret_rotated_at,
        previous_secret_until=until if until is not None and until > now else None,
        signature_check=check_view(endpoint.signature_check, endpoint.signature_checked_at),
        created_at=endpoint.created_at,
    )


class WebhookEndpoints(Controller):
    tags = ("Webhooks",)

    @post("/", status_code=201, summary="Add a webhook endpoint", opt=needs(member="webhooks", step_up=True))
    async def create(  # noqa: PLR0913, PLR0917  the body, and what the use case needs
        self,
        data: JSONBody[CreateEndpoint],
        actor: NamedDependency[Actor],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> EndpointMade:
        """Add a URL that hears of the project's events from now on. `webhookSecret` is shown this once."""
        now = web.clock.now()
        async with web.db.transaction() as conn:
            await once.take(conn)
            await still(conn, session, "webhooks", actor)
            endpoint, secret = await web.endpoints.create(
                conn, actor.project_pk, url=data.url, events=data.events, paused=data.paused, now=now
            )
            await audit.record(conn, Action.ENDPOINT_ADDED, subject=endpoint.endpoint_id, changed=sent(data))
            made = EndpointMade(endpoint=endpoint_view(endpoint, now), webhook_secret=secret)
            return await once.keep(conn, made)

    @get("/", summary="List webhook endpoints", opt=needs(member="read"))
    async def list(
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        sort: TimeSort = Sort.OLDEST,
    ) -> Response[EndpointList]:
        """Return the project's endpoints, without their secrets."""

        async def found(conn: AsyncConnection, part: Part) -> Listed[EndpointView]:
            listed = await endpoints.list_endpoints(conn, actor.project_pk, part)
            return listed.shown_as(partial(endpoint_view, now=web.clock.now()))

        query = asked.of(web, "webhook-endpoints", actor.project_pk, sort=sort)
        return await query.answer(EndpointList, found)

    @get("/{endpoint_id:str}", summary="Read a webhook endpoint", opt=needs(member="read"))
    async def read(
        self, endpoint_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> EndpointDetail:
        """Return one endpoint."""
        async with web.db.autocommit() as conn:
            endpoint = await endpoints.find(conn, actor.project_pk, endpoint_id)
        return EndpointDetail(endpoint=endpoint_view(endpoint, web.clock.now()))

    @patch("/{endpoint_id:str}", summary="Change a webhook endpoint", opt=needs(member="webhooks", step_up=True))
    async def change(  # noqa: PLR0913, PLR0917  the path, the body, and what the use case needs
        self,
        endpoint_id: FromPath[str],
        data: JSONBody[ChangeEndpoint],
        actor: NamedDependency[Actor],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> EndpointDetail:
        """Change what is sent and leave the rest. What is queued goes to a new URL, too.

        While `paused` is true, events queue; what was under way may still arrive. They are delivered when it is false.
        """
        now = web.clock.now()
        async with web.db.transaction() as conn:
            await still(conn, session, "webhooks", actor)
            endpoint = await web.endpoints.change(conn, actor.project_pk, endpoint_id, data, now=now)
            await audit.record(conn, Action.ENDPOINT_CHANGED, subject=endpoint_id, changed=sent(data))
        await web.gateway.hints.publish("webhooks")
        return EndpointDetail(endpoint=endpoint_view(endpoint, now))

    @delete(
        "/{endpoint_id:str}",
        status_code=200,
        summary="Delete a webhook endpoint",
        opt=needs(member="webhooks", step_up=True),
    )
    async def remove(
        self,
        endpoint_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Answer:
        """Send nothing there any more. What it has not been sent is dropped; its log stays with the deliveries."""
        async with web.db.transaction() as conn:
            await endpoints.delete(conn, actor.project_pk, endpoint_id, now=web.clock.now())
            await audit.record(conn, Action.ENDPOINT_DELETED, subject=endpoint_id)
        return Answer()

    @post(
        "/{endpoint_id:str}/rotate-secret",
        status_code=200,
        summary="Replace an endpoint's secret",
        opt=needs(member="webhooks", step_up=True),
    )
    async def rotate_secret(  # noqa: PLR0913, PLR0917  the path, the body, and what the use case needs
        self,
        endpoint_id: FromPath[str],
        actor: NamedDependency[Actor],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        data: JSONBody[RotateSecret | None] = None,
    ) -> SecretRotated:
        """Return a new signing secret, shown this once. The old one is invalid at once, if no overlap is asked for."""
        asked, now = data or RotateSecret(), web.clock.now()
        async with web.db.transaction() as conn:
            await still(conn, session, "webhooks", actor)
            rotation = await web.endpoints.rotate_secret(
                conn, actor.project_pk, endpoint_id, overlap=asked.overlap, now=now, key=asked.idempotency_key
            )
            if not rotation.replayed:
                await audit.record(
                    conn, Action.WEBHOOK_SECRET_ROTATED, subject=endpoint_id, overlap_minutes=asked.overlap_minutes
                )
        return rotated(rotation)

    @post(
        "/{endpoint_id:str}/test",
        status_code=200,
        summary="Send a test webhook to an endpoint",
        opt=needs(member="webhooks"),
    )
    async def test(
        self,
        endpoint_id: FromPath[str],
        data: JSONBody[TestWebhook],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        sender: NamedDependency[Sender],
    ) -> TestResult:
        """Send a made-up event now, signed with the endpoint's real secret, paused or not: to it, or to `url`."""
        return await send_test(web, sender, actor, data, endpoint_id)

    @get("/{endpoint_id:str}/deliveries", summary="List an endpoint's deliveries", opt=needs(member="read"))
    async def deliveries(  # noqa: PLR0913  filters and paging, each by name
        self,
        endpoint_id: FromPath[str],
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
        """Return what the endpoint was sent or will be, each with its attempts."""

        async def found(conn: AsyncConnection, part: Part) -> Listed[DeliveryAnswer]:
            endpoint = await endpoints.find(conn, actor.project_pk, endpoint_id)
            return await delivery_log.list_deliveries(
                conn,
                actor.project_pk,
                part,
                endpoint_pk=endpoint.pk,
                status=status,
                event=event,
                resource_id=resource_id,
                period=period,
            )

        owner, filters = (actor.project_pk, endpoint_id), (status, event, resource_id, period)
        query = asked.of(web, "endpoint-deliveries", *owner, sort=sort, filters=filters)
        return await query.answer(DeliveryList, found)


controllers = [owned_project_routes("/api/merchant/projects/{project_id:str}/webhook-endpoints", WebhookEndpoints)]
