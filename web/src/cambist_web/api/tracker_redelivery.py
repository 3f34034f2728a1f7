"""Sending a tracker again what was dropped while its receiver was away."""

from __future__ import annotations

from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from cambist.services.trackers.credentials import TrackerAccess
from cambist.services.webhooks import redelivery
from cambist_web.auth import needs, project_routes
from cambist_web.context import Web
from cambist_web.once import Once
from cambist_web.tracker_auth import tracker_routes

from .events import FailedRedelivered, FailedSince
from .trackers import OWNED


async def _redeliver(web: Web, once: Once, tracker: TrackerAccess, data: FailedSince) -> FailedRedelivered:
    since, until = data.moments()
    async with web.db.transaction() as conn:
        await once.take(conn)
        done = await redelivery.redeliver_of_tracker(
            conn, tracker.actor.project_pk, tracker.pk, since=since, until=until, now=web.clock.now()
        )
        answer = await once.keep(conn, FailedRedelivered(queued=done.queued, more=done.more))
    if done.queued:
        await web.gateway.hints.publish("webhooks")
    return answer


class Redelivery(Controller):
    tags = ("Trackers",)

    @post("/", status_code=200, summary="Send a tracker again what failed")
    async def redeliver(
        self,
        data: JSONBody[FailedSince],
        tracker: NamedDependency[TrackerAccess],
        web: NamedDependency[Web],
        once: NamedDependency[Once],
    ) -> FailedRedelivered:
        """Send again all deliveries of a time that were dropped: up to 10,000, the oldest first.

        What is still being delivered is not started twice, so the request can be repeated. 409 while it is switched
        off.
        """
        return await _redeliver(web, once, tracker, data)


class ProjectRedelivery(Controller):
    """The same for a merchant in person, who needs no token of the tracker's."""

    tags = ("Trackers",)
    dependencies = OWNED

    @post(
        "/{webhook_id:str}/redeliver",
        status_code=200,
        summary="Send a project's tracker again what failed",
        opt=needs("trackers"),
    )
    async def redeliver(
        self,
        data: JSONBody[FailedSince],
        tracker: NamedDependency[TrackerAccess],
        web: NamedDependency[Web],
        once: NamedDependency[Once],
    ) -> FailedRedelivered:
        """Send again all deliveries of a time that were dropped: up to 10,000, the oldest first."""
        return await _redeliver(web, once, tracker, data)


controllers = [
    tracker_routes("/api/webhook/redeliver", Redelivery),
    project_routes("/trackers", ProjectRedelivery),
]
