"""What a tracker tells of the past: stopped, and begun anew. How far it is stands in the tracker itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from litestar import Controller, post
from litestar.di import NamedDependency
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.audit.entries import Action
from cambist.services.trackers import history, read
from cambist.services.trackers.credentials import TrackerAccess
from cambist_web.auth import needs, project_routes
from cambist_web.context import Web
from cambist_web.origin import Audit
from cambist_web.tracker_auth import tracker_routes

from .trackers import OWNED, TrackerAnswer

Change: TypeAlias = Callable[[AsyncConnection, int], Awaitable[None]]


async def _change(web: Web, audit: Audit, tracker: TrackerAccess, change: Change) -> TrackerAnswer:
    async with web.db.transaction() as conn:
        await audit.record(
            conn, Action.TRACKER_CHANGED, subject=tracker.webhook_id, changed={"history": change.__name__}
        )
        await change(conn, tracker.pk)
        return TrackerAnswer(webhook=await read.get(conn, tracker.pk))


class History(Controller):
    tags = ("Trackers",)

    @post("/cancel", status_code=200, summary="Stop reading a tracker's past")
    async def cancel(
        self, tracker: NamedDependency[TrackerAccess], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> TrackerAnswer:
        """Tell no more of the past, also not of addresses that are added later, until it is begun anew.

        What was told stays told, and new blocks are told as before. Where nothing is being read, nothing changes.
        """
        return await _change(web, audit, tracker, history.cancel)

    @post("/restart", status_code=200, summary="Read a tracker's past anew")
    async def restart(
        self, tracker: NamedDependency[TrackerAccess], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> TrackerAnswer:
        """Read the past from `startBlock` on, for every address on the list. What was delivered is not told again."""
        return await _change(web, audit, tracker, history.restart)


class ProjectHistory(Controller):
    """The same for a merchant in person, who needs no token of the tracker's."""

    tags = ("Trackers",)
    dependencies = OWNED

    @post(
        "/{webhook_id:str}/history/cancel",
        status_code=200,
        summary="Stop reading a project's tracker's past",
        opt=needs("trackers"),
    )
    async def cancel(
        self, tracker: NamedDependency[TrackerAccess], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> TrackerAnswer:
        """Tell no more of the past until it is begun anew. New blocks are told as before."""
        return await _change(web, audit, tracker, history.cancel)

    @post(
        "/{webhook_id:str}/history/restart",
        status_code=200,
        summary="Read a project's tracker's past anew",
        opt=needs("trackers"),
    )
    async def restart(
        self, tracker: NamedDependency[TrackerAccess], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> TrackerAnswer:
        """Read the past from `startBlock` on, for every address on the list. What was delivered is not told again."""
        return await _change(web, audit, tracker, history.restart)


controllers = [
    tracker_routes("/api/webhook/history", History),
    project_routes("/trackers", ProjectHistory),
]
