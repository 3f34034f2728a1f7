"""A project's events, for receivers that catch up: each as it was sent, and sending again what did not arrive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta

from cambist.services.actor import Actor
from cambist.services.errors import InvalidError
from cambist.services.listing import Period, Sort
from cambist.services.paging import FIRST_MOMENT, LAST_MOMENT, parse_moment
from cambist.services.webhooks import events, redelivery
from cambist.services.webhooks.events import EventAnswer, EventFilters
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.once import Once
from cambist_web.schemas import Answer, Body, CursorPageAnswer

Names = Annotated[
    str | None,
    QueryParameter(
        description="Of this name, or of one of several, with commas between.",
        pattern=r"^[a-z_.]{1,64}(,[a-z_.]{1,64}){0,49}$",
        max_length=64 * 50 + 49,
    ),
]
ResourceFilter = Annotated[str | None, QueryParameter(name="resourceId", min_length=1, max_length=64)]
EndpointId = Annotated[str, Meta(min_length=1, max_length=64)]
Moment = Annotated[str, Meta(min_length=1, max_length=40)]


class RedeliverEvent(Body, frozen=True, kw_only=True):
    """Where to send it again, if not to every target that it had."""

    endpoint_id: EndpointId | None = None


class FailedSince(Body, frozen=True, kw_only=True):
    """What is meant: what happened from `since`, included, to `until`, not included."""

    since: Moment
    until: Moment | None = None

    def moments(self) -> tuple[datetime, datetime]:
        """Return both. Raises InvalidError."""
        since = parse_moment("since", self.since) or FIRST_MOMENT
        until = parse_moment("until", self.until) or LAST_MOMENT
        if since >= until:
            raise InvalidError.field("until", "must be later than since")
        return since, until


class RedeliverFailed(FailedSince, frozen=True, kw_only=True):
    """What is meant: what happened from `since`, included, to `until`, not included, at one endpoint or at all."""

    endpoint_id: EndpointId | None = None


class EventDetail(Answer, frozen=True, kw_only=True):
    """One event."""

    event: EventAnswer


class EventList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of a project's events."""

    events: Sequence[EventAnswer]


class FailedRedelivered(Answer, frozen=True, kw_only=True):
    """How many deliveries were started, and whether asking again would start more."""

    queued: int
    more: bool


class Events(Controller):
    tags = ("Webhooks",)

    @get("/", summary="List events", opt=needs("read"))
    async def list(  # noqa: PLR0913  filters and paging, each by name
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        event: Names = None,
        resource_id: ResourceFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[EventList]:
        """Return the project's events, whether they were delivered or not.

        `payload` is the body, byte for byte as it was or would have been sent, and `eventId` its `X-Webhook-Id`.
        """
        wanted = EventFilters(
            names=() if event is None else event.split(","),
            resource_id=resource_id,
            since=period.since,
            until=period.until,
        )
        query = asked.of(web, "events", actor.project_pk, sort=sort, filters=wanted)
        return await query.answer(
            EventList, lambda conn, part: events.list_events(conn, actor.project_pk, wanted, part)
        )

    @get("/{event_id:str}", summary="Read an event", opt=needs("read"))
    async def read(
        self, event_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> EventDetail:
        """Return one event, and what became of it at each target."""
        async with web.db.transaction() as conn:
            return EventDetail(event=await events.get_event(conn, actor.project_pk, event_id))

    @post("/{event_id:str}/redeliver", status_code=200, summary="Send an event again", opt=needs("payments"))
    async def redeliver(
        self,
        event_id: FromPath[str],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        once: NamedDependency[Once],
        data: JSONBody[RedeliverEvent | None] = None,
    ) -> EventDetail:
        """Send the event again to each of its targets, or to one endpoint, with a fresh set of attempts.

        One that had no target goes to those that there are now. 409 while it is still being delivered to all.
        """
        endpoint_id = None if data is None else data.endpoint_id
        async with web.db.transaction() as conn:
            if await once.take(conn):
                event = await redelivery.redeliver_event(
                    conn, actor.project_pk, event_id, endpoint_id=endpoint_id, now=web.clock.now()
                )
            else:
                event = await events.get_event(conn, actor.project_pk, event_id)
        await web.gateway.hints.publish("webhooks")
        return EventDetail(event=event)

    @post("/redeliver", status_code=200, summary="Send again what failed", opt=needs("payments"))
    async def redeliver_failed(
        self,
        data: JSONBody[RedeliverFailed],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        once: NamedDependency[Once],
    ) -> FailedRedelivered:
        """Send again all events of a time that were dropped, or had no target then: up to 10,000, the oldest first.

        What is still being delivered is not started twice, so the request can be repeated.
        """
        now = web.clock.now()
        since, until = data.moments()
        async with web.db.transaction() as conn:
            await once.take(conn)
            done = await redelivery.redeliver_failed(
                conn, actor.project_pk, since=since, until=until, endpoint_id=data.endpoint_id, now=now
            )
            answer = await once.keep(conn, FailedRedelivered(queued=done.queued, more=done.more))
        if done.queued:
            await web.gateway.hints.publish("webhooks")
        return answer


controllers = [key_routes("/api/events", Events), project_routes("/events", Events)]
