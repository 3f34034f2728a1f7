"""What a merchant does with sessions of its own: steps one up, lists and ends them; and changes the password."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Annotated

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta
from msgspec.structs import asdict
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.audit.entries import Action
from cambist.services.errors import ForbiddenError, UnauthenticatedError
from cambist.services.identity import credentials, sessions
from cambist.services.identity.members import MEMBERS
from cambist.services.identity.sessions import STEP_UP_S, SessionPrincipal, SessionView
from cambist.services.listing import Listed, Part
from cambist_web.auth import needs, session_routes
from cambist_web.context import Web
from cambist_web.errors import AnyRequest
from cambist_web.lists import Asked
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, Body, CursorPageAnswer

from .merchants import Password, SignedIn, open_session, signed_in
from .two_factor import Code, TotpCode, show_password


class SessionSort(StrEnum):
    """The orders of a list of sessions: by when they were used last, or made; the newest or the oldest first."""

    USED_LAST = "-lastUsedAt"
    USED_FIRST = "lastUsedAt"
    NEWEST = "-createdAt"
    OLDEST = "createdAt"


class ChangePassword(Body, frozen=True, kw_only=True):
    """The password in force and the one to set, and a code where there is a second factor and no step-up."""

    current_password: Annotated[str, Meta(max_length=1024)]
    new_password: Password
    totp_code: TotpCode | None = None


class SteppedUp(Answer, frozen=True, kw_only=True):
    """Until when the session may do what needs a second factor."""

    expires_at: datetime
    expires_in: int


class OwnSession(SessionView, frozen=True, kw_only=True):
    """A session. `current` is the one that asks."""

    current: bool


class SessionList(CursorPageAnswer, frozen=True, kw_only=True):
    """One page of somebody's open sessions."""

    sessions: Sequence[OwnSession]


SessionSorted = Annotated[
    SessionSort, QueryParameter(description="By when they were made, or used last; `-` is the newest first.")
]


def own_session(found: SessionView, current: str) -> OwnSession:
    """Answer one of somebody's sessions, and tell whether it asks."""
    return OwnSession(**asdict(found), current=found.session_id == current)


class SessionRoutes(Controller):
    tags = ("Sessions",)

    @post("/step-up", status_code=200, summary="Step a session up", opt=needs(member="self"))
    async def step_up(
        self,
        session: NamedDependency[SessionPrincipal],
        data: JSONBody[Code],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> SteppedUp:
        """Let this session do what needs a second factor, for five minutes: move live money, open live access.

        Withdrawals and approved addresses need a code of their own all the same.
        """
        until = await web.two_factor.step_up(session, data.totp_code, record=audit.recorder(Action.STEPPED_UP))
        return SteppedUp(expires_at=until, expires_in=STEP_UP_S)

    @get("/sessions", summary="List your sessions", opt=needs(member="self"))
    async def list(
        self,
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        sort: SessionSorted = SessionSort.USED_LAST,
    ) -> Response[SessionList]:
        """Return your open sessions, and where each was used last."""
        query, now = asked.of(web, "sessions", session.member_pk, sort=sort), web.clock.now()

        async def found(conn: AsyncConnection, part: Part) -> Listed[OwnSession]:
            listed = await web.sessions.list(conn, session.member_pk, part, now=now)
            return listed.shown_as(partial(own_session, current=session.session_id))

        return await query.answer(SessionList, found)

    @delete("/sessions", status_code=200, summary="End your other sessions", opt=needs(member="self"))
    async def end_others(
        self, session: NamedDependency[SessionPrincipal], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> Answer:
        """End every session of yours but this one, access tokens included."""
        async with web.db.transaction() as conn:
            await sessions.revoke_all(conn, MEMBERS, session.member_pk, now=web.clock.now(), but=session.session_id)
            await audit.record(conn, Action.SESSION_ENDED, subject="all other sessions")
        return Answer()

    @delete("/sessions/{session_id:str}", status_code=200, summary="End a session", opt=needs(member="self"))
    async def end(
        self,
        session_id: FromPath[str],
        session: NamedDependency[SessionPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Answer:
        """End one session of yours, this one too if it is named, access tokens included."""
        async with web.db.transaction() as conn:
            await web.sessions.end(conn, session.member_pk, session_id, now=web.clock.now())
            await audit.record(conn, Action.SESSION_ENDED, subject=session_id)
        return Answer()

    @post("/password", status_code=200, summary="Change the password", opt=needs(member="self"))
    async def change_password(
        self,
        request: AnyRequest,
        session: NamedDependency[SessionPrincipal],
        data: JSONBody[ChangePassword],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Response[SignedIn]:
        """Set a new password, end every session of yours, this one too, and begin a new one.

        Needs the password in force, and with two-factor authentication on, `totpCode` or a step-up.
        """
        shown = await show_password(web, request, session, data.current_password)
        merchant = shown.person
        password_hash = await web.passwords.hash_new(
            data.new_password, [merchant.email, merchant.name], field="newPassword"
        )
        await _show_second_factor(web, session, data.totp_code)
        async with web.db.transaction() as conn:
            try:
                await credentials.change_password(conn, MEMBERS, shown, password_hash, now=web.clock.now())
            except UnauthenticatedError:
                raise ForbiddenError("PASSWORD_INVALID", "The password was changed a moment ago.") from None
            await audit.record(conn, Action.PASSWORD_CHANGED, subject=merchant.member_id, by="the password before")
            opened = await open_session(web, conn, merchant, request)
            by = audit.of_member(merchant.member_id, merchant.merchant_id, opened.principal.session_id)
            await by.record(conn, Action.SESSION_OPENED, subject=opened.principal.session_id)
        return signed_in(web, merchant, opened)


async def _show_second_factor(web: Web, session: SessionPrincipal, code: str | None) -> None:
    """Take the code, or the session's step-up, where the merchant has a second factor. Raises ForbiddenError."""
    if code is not None:
        await web.two_factor.require_code(session.member_pk, code)
        return
    async with web.db.autocommit() as conn:
        enabled = (await web.two_factor.status(conn, session.member_pk)).enabled
    if enabled:
        await web.two_factor.check_step_up(session)


controllers = [session_routes("/api/auth", SessionRoutes)]
