"""Trackers: made by whoever owns them, and from then on managed with a token of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency, Provide
from litestar.params import FromPath, JSONBody, QueryParameter
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.actor import Actor
from cambist.services.audit.entries import Action
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.listing import Sort
from cambist.services.trackers import changes, create, credentials, read, testing
from cambist.services.trackers.changes import ChangeTracker
from cambist.services.trackers.create import CreateTracker, NewTracker
from cambist.services.trackers.credentials import TrackerAccess
from cambist.services.trackers.read import TrackerView, TrackerWithToken
from cambist.services.webhooks.sender import Sender
from cambist_web.auth import needs, project_routes, session_routes
from cambist_web.context import Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.once import Once
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, CursorPageAnswer, sent
from cambist_web.standing import still
from cambist_web.tracker_auth import TOKEN_ENDS, Creator, creator_routes, tracker_routes
from cambist_web.tracker_views import SHOWN_ONCE, CredentialsReplaced, FreshCredentials, TrackerMade, issued

from .deliveries import TESTS, TestResult, told_of_test

RANDOM_CHARS_LEAST = 32
"""Of a key that gives the new token to whoever has the old one: a UUID has 36."""

ProjectFilter = Annotated[str | None, QueryParameter(name="projectId", min_length=1, max_length=64)]


class TrackerAnswer(Answer, frozen=True, kw_only=True):
    """A tracker."""

    webhook: TrackerView


class TrackerList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of a project's trackers."""

    webhooks: Sequence[TrackerView]


class TokenList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of a merchant's trackers, each with its token."""

    webhooks: Sequence[TrackerWithToken]


async def _make(  # noqa: PLR0913, PLR0917  what a request has, and what it asks for
    conn: AsyncConnection, web: Web, audit: Audit, once: Once, project: Actor, new: NewTracker
) -> TrackerMade:
    made = await create.create_tracker(conn, web.trackers, project, new)
    told = {"name": made.name, "chain": new.chain, "url": made.url, "startBlock": made.start_block}
    await audit.record(
        conn,
        Action.TRACKER_MADE,
        subject=made.tracker.webhook_id,
        merchant_id=project.merchant_id,
        project=project.project_id,
        **told,
    )
    return await once.keep(conn, TrackerMade(webhook=issued(made), warning=SHOWN_ONCE))


class NewTrackers(Controller):
    tags = ("Trackers",)

    @post("/create", status_code=201, summary="Make a tracker", opt=needs("trackers"))
    async def create(
        self,
        data: JSONBody[CreateTracker],
        creator: NamedDependency[Creator],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> TrackerMade:
        """Make a watch list with a URL that hears of what moves there. `authToken` and `secretKey` are shown this once.

        An API key makes it for its own project. A session makes it for `projectId`, or for the merchant's first active
        project. With `X-Admin-Key`, `projectId` or `merchantId` is required. Without `startBlock` it watches from the
        newest block on that the gateway knows.
        """
        async with web.db.transaction() as conn:
            if creator.session is not None and data.project_id is not None:
                # No guard has looked at a project of the body, and a repetition is answered at the key.
                await create.owner_in_person(conn, creator.session, data.project_id)
            await once.take(conn)
            if creator.actor is not None:
                project = creator.actor
            elif creator.session is not None:
                session = await still(conn, creator.session, "trackers")
                project = await create.owner_in_person(conn, session, data.project_id)
            else:
                project = await create.owner_for_operator(conn, data.project_id, data.merchant_id)
            return await _make(conn, web, audit, once, project, data)


class OwnTrackers(Controller):
    tags = ("Trackers",)

    @get("/", summary="List your trackers with their tokens", opt=needs(member="trackers"))
    async def list(
        self,
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        project_id: ProjectFilter = None,
        sort: TimeSort = Sort.OLDEST,
    ) -> Response[TokenList]:
        """Return the trackers of all your projects, each with its `authToken`. A file leaves the tokens out."""
        query = asked.of(web, "trackers-of-all-projects", session.member_pk, sort=sort, filters=project_id)
        secrets = web.trackers.secrets
        return await query.answer(
            TokenList, lambda conn, part: read.list_of_merchant(conn, secrets, session, project_id, part)
        )


class Trackers(Controller):
    """What a tracker's own token is good for."""

    tags = ("Trackers",)

    @get("/get", summary="Read a tracker")
    async def read(self, tracker: NamedDependency[TrackerAccess], web: NamedDependency[Web]) -> TrackerAnswer:
        """Return the tracker that the token belongs to."""
        async with web.db.autocommit() as conn:
            return TrackerAnswer(webhook=await read.get(conn, tracker.pk))

    @post("/update", status_code=200, summary="Change a tracker")
    async def change(
        self,
        data: JSONBody[ChangeTracker],
        tracker: NamedDependency[TrackerAccess],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> TrackerAnswer:
        """Change what is sent and leave the rest. `maxAddresses` cannot be less than what is watched."""
        async with web.db.transaction() as conn:
            targets, now = web.settings.webhook_targets, web.clock.now()
            await changes.change(conn, tracker, data, targets=targets, now=now)
            await audit.record(conn, Action.TRACKER_CHANGED, subject=tracker.webhook_id, changed=sent(data))
            return TrackerAnswer(webhook=await read.get(conn, tracker.pk))

    @post("/activate", status_code=200, summary="Switch a tracker on")
    async def activate(
        self, tracker: NamedDependency[TrackerAccess], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> TrackerAnswer:
        """Have it tell of what moves from now on."""
        return await _switch(web, audit, tracker, on=True)

    @post("/deactivate", status_code=200, summary="Switch a tracker off")
    async def deactivate(
        self, tracker: NamedDependency[TrackerAccess], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> TrackerAnswer:
        """Stop its deliveries at once, those under way excepted. The token still works."""
        return await _switch(web, audit, tracker, on=False)

    @post(
        "/regenerate-secret",
        status_code=200,
        summary="Replace a tracker's token and secret",
        opt={TOKEN_ENDS: True},
    )
    async def regenerate(
        self,
        tracker: NamedDependency[TrackerAccess],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> CredentialsReplaced:
        """Return a new `authToken` and `secretKey`, shown this once. The old ones are invalid at once.

        The idempotency key has at least 32 characters here, chosen by chance: with it, the old token gets the same
        answer once more, for a day.
        """
        once.check_length(RANDOM_CHARS_LEAST)
        now = web.clock.now()
        async with web.db.transaction() as conn:
            await once.take(conn)
            fresh = await credentials.regenerate(conn, tracker, web.trackers.secrets, web.ids, now)
            await audit.record(conn, Action.TRACKER_CREDENTIALS_REPLACED, subject=tracker.webhook_id)
            webhook = FreshCredentials(
                webhook_id=tracker.webhook_id,
                auth_token=fresh.auth_token,
                secret_key=fresh.secret_key,
                rotated_at=now,
            )
            return await once.keep(conn, CredentialsReplaced(webhook=webhook, warning=SHOWN_ONCE))

    @post("/test", status_code=200, summary="Send a test delivery")
    async def test(
        self, tracker: NamedDependency[TrackerAccess], web: NamedDependency[Web], sender: NamedDependency[Sender]
    ) -> TestResult:
        """Send a made-up transaction to the tracker's URL now, signed with its `secretKey`."""
        await web.limiter.take(TESTS, tracker.webhook_id)
        async with web.db.autocommit() as conn:
            url, message = await testing.prepare(conn, web.trackers, tracker)
        result = await sender.send_once(url, message)
        return told_of_test(message, result)


async def _switch(web: Web, audit: Audit, tracker: TrackerAccess, *, on: bool) -> TrackerAnswer:
    async with web.db.transaction() as conn:
        await (changes.switch_on if on else changes.switch_off)(conn, tracker, now=web.clock.now())
        await audit.record(conn, Action.TRACKER_CHANGED, subject=tracker.webhook_id, changed={"isActive": on})
        return TrackerAnswer(webhook=await read.get(conn, tracker.pk))


async def _owned(webhook_id: FromPath[str], actor: NamedDependency[Actor], web: NamedDependency[Web]) -> TrackerAccess:
    async with web.db.autocommit() as conn:
        tracker = await credentials.find_in_project(conn, actor, webhook_id)
    if tracker is None:
        raise read.not_found()
    return tracker


OWNED = {"tracker": Provide(_owned)}
"""Gives handlers whose path has ``{webhook_id:str}`` in it the project's tracker, as a tracker's own token does."""


class ProjectTrackers(Controller):
    """A project's trackers, for a merchant in person, who needs no token of theirs."""

    tags = ("Trackers",)
    dependencies = OWNED

    @get("/", summary="List a project's trackers", opt=needs("read"))
    async def list(
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        sort: TimeSort = Sort.OLDEST,
    ) -> Response[TrackerList]:
        """Return the project's trackers."""
        query = asked.of(web, "trackers", actor.project_pk, sort=sort)
        return await query.answer(TrackerList, lambda conn, part: read.list_of_project(conn, actor.project_pk, part))

    @post("/", status_code=201, summary="Make a tracker for a project", opt=needs("trackers"))
    async def create(  # noqa: PLR0913, PLR0917  the body, and what the use case needs
        self,
        data: JSONBody[NewTracker],
        actor: NamedDependency[Actor],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        once: NamedDependency[Once],
    ) -> TrackerMade:
        """Make a tracker for this project. `authToken` and `secretKey` are shown this once."""
        async with web.db.transaction() as conn:
            await once.take(conn)
            await still(conn, session, "trackers", actor)
            return await _make(conn, web, audit, once, actor, data)

    @get("/{webhook_id:str}", summary="Read a project's tracker", opt=needs("read"))
    async def read(self, tracker: NamedDependency[TrackerAccess], web: NamedDependency[Web]) -> TrackerAnswer:
        """Return one of the project's trackers."""
        async with web.db.transaction() as conn:
            return TrackerAnswer(webhook=await read.get(conn, tracker.pk))

    @post("/{webhook_id:str}/activate", status_code=200, summary="Switch a project's tracker on", opt=needs("trackers"))
    async def activate(
        self, tracker: NamedDependency[TrackerAccess], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> TrackerAnswer:
        """Have it tell of what moves from now on."""
        return await _switch(web, audit, tracker, on=True)

    @post(
        "/{webhook_id:str}/deactivate", status_code=200, summary="Switch a project's tracker off", opt=needs("trackers")
    )
    async def deactivate(
        self, tracker: NamedDependency[TrackerAccess], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> TrackerAnswer:
        """Stop its deliveries at once, those under way excepted."""
        return await _switch(web, audit, tracker, on=False)

    @delete("/{webhook_id:str}", status_code=200, summary="Delete a project's tracker", opt=needs("trackers"))
    async def delete(
        self, tracker: NamedDependency[TrackerAccess], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> Answer:
        """End it for good: its token is invalid, its list empty. What it delivered stays in the log of deliveries."""
        async with web.db.transaction() as conn:
            await changes.remove_tracker(conn, tracker, now=web.clock.now())
            await audit.record(conn, Action.TRACKER_DELETED, subject=tracker.webhook_id)
        return Answer()


controllers = [
    creator_routes("/api/webhook", NewTrackers),
    session_routes("/api/merchant/webhooks", OwnTrackers),
    tracker_routes("/api/webhook", Trackers),
    project_routes("/trackers", ProjectTrackers),
]
