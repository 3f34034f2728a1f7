"""What operators do with their own sessions, passwords and recovery codes."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import Meta
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.audit.entries import Action
from cambist.services.errors import ForbiddenError, UnauthenticatedError
from cambist.services.identity import credentials, people, sessions
from cambist.services.identity.credentials import SignIn
from cambist.services.identity.operators import OPERATORS, Operator, OperatorPrincipal
from cambist.services.identity.sessions import STEP_UP_S
from cambist.services.listing import Listed, Part
from cambist_web.auth import visitor_of
from cambist_web.context import Web
from cambist_web.errors import AnyRequest
from cambist_web.lists import Asked
from cambist_web.operator_auth import operator_routes
from cambist_web.origin import Audit
from cambist_web.schemas import Answer, Body

from .merchants import Message, Password
from .operator_sessions import (
    COOKIE,
    OperatorSelf,
    OperatorSignedIn,
    self_view,
    show_operators_password,
    signed_in_answer,
)
from .sessions import OwnSession, SessionList, SessionSort, SessionSorted, SteppedUp, own_session
from .two_factor import Code, PasswordAndCode, RecoveryCodes, TotpCode

ShownPassword = Annotated[str, Meta(max_length=1024)]


class NewOperatorPassword(Body, frozen=True, kw_only=True):
    """The password in force, the one to set, and a code."""

    current_password: ShownPassword
    new_password: Password
    totp_code: TotpCode


class OperatorMe(Answer, frozen=True, kw_only=True):
    """Who asks, until when the session has stepped up, and how many recovery codes are left."""

    operator: OperatorSelf
    step_up_until: datetime | None
    recovery_codes_left: int


class OperatorInPerson(Controller):
    """What an operator does with their own sessions and credentials."""

    tags = ("Operator sessions",)

    @get("/me", summary="Who is signed in")
    async def me(self, operator: NamedDependency[OperatorPrincipal], web: NamedDependency[Web]) -> OperatorMe:
        """Return who asks, the role, and what it may do."""
        async with web.db.transaction() as conn:
            person = await people.get(conn, OPERATORS, operator.operator_pk)
            status = await web.operators.two_factor.status(conn, operator.operator_pk)
        return OperatorMe(
            operator=self_view(person),
            step_up_until=operator.step_up_until if operator.has_stepped_up(web.clock.now()) else None,
            recovery_codes_left=status.recovery_codes_left,
        )

    @post("/step-up", status_code=200, summary="Step an operator's session up")
    async def step_up(
        self,
        operator: NamedDependency[OperatorPrincipal],
        data: JSONBody[Code],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> SteppedUp:
        """Let this session do what needs a second factor, for five minutes."""
        record = audit.recorder(Action.STEPPED_UP)
        until = await web.operators.two_factor.step_up(operator, data.totp_code, record=record)
        return SteppedUp(expires_at=until, expires_in=STEP_UP_S)

    @get("/sessions", summary="List an operator's sessions")
    async def list_sessions(
        self,
        operator: NamedDependency[OperatorPrincipal],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        sort: SessionSorted = SessionSort.USED_LAST,
    ) -> Response[SessionList]:
        """Return your open sessions, and where each was used last."""
        query, now = asked.of(web, "operator-sessions", operator.operator_pk, sort=sort), web.clock.now()

        async def found(conn: AsyncConnection, part: Part) -> Listed[OwnSession]:
            listed = await web.operators.sessions.list(conn, operator.operator_pk, part, now=now)
            return listed.shown_as(partial(own_session, current=operator.session_id))

        return await query.answer(SessionList, found)

    @delete("/sessions", status_code=200, summary="End an operator's other sessions")
    async def end_others(
        self, operator: NamedDependency[OperatorPrincipal], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> Answer:
        """End every session of yours but this one, access tokens included."""
        async with web.db.transaction() as conn:
            pk, now = operator.operator_pk, web.clock.now()
            await sessions.revoke_all(conn, OPERATORS, pk, now=now, but=operator.session_id)
            await audit.record(conn, Action.SESSION_ENDED, subject="all other sessions")
        return Answer()

    @delete("/sessions/{session_id:str}", status_code=200, summary="End an operator's session")
    async def end(
        self,
        session_id: FromPath[str],
        operator: NamedDependency[OperatorPrincipal],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Answer:
        """End one session of yours, this one too if it is named, access tokens included."""
        async with web.db.transaction() as conn:
            await web.operators.sessions.end(conn, operator.operator_pk, session_id, now=web.clock.now())
            await audit.record(conn, Action.SESSION_ENDED, subject=session_id)
        return Answer()

    @post("/sign-out-everywhere", status_code=200, summary="End all of an operator's sessions")
    async def sign_out_everywhere(
        self, operator: NamedDependency[OperatorPrincipal], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> Response[Message]:
        """End every session of yours, this one too, access tokens included."""
        async with web.db.transaction() as conn:
            await sessions.revoke_all(conn, OPERATORS, operator.operator_pk, now=web.clock.now())
            await audit.record(conn, Action.SESSION_ENDED, subject="all sessions")
        return Response(Message(message="Signed out."), cookies=[COOKIE.make(web, "", max_age_s=0)])

    @post("/password", status_code=200, summary="Change an operator's password")
    async def change_password(
        self,
        request: AnyRequest,
        operator: NamedDependency[OperatorPrincipal],
        data: JSONBody[NewOperatorPassword],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Response[OperatorSignedIn]:
        """Set a new password, end every session of yours, this one too, and begin a new one."""
        shown = await _shown_again(web, request, operator, data.current_password)
        about = [shown.person.email, shown.person.name]
        password_hash = await web.passwords.hash_new(data.new_password, about, field="newPassword")
        await web.operators.two_factor.require_code(operator.operator_pk, data.totp_code)
        async with web.db.transaction() as conn:
            try:
                await credentials.change_password(conn, OPERATORS, shown, password_hash, now=web.clock.now())
            except UnauthenticatedError:
                raise ForbiddenError("PASSWORD_INVALID", "The password was changed a moment ago.") from None
            told = {"subject": operator.operator_id, "by": "the password before"}
            await audit.record(conn, Action.PASSWORD_CHANGED, **told)
            session = await web.operators.sessions.open(
                conn, operator.operator_pk, visitor_of(request), now=web.clock.now()
            )
            await audit.record(conn, Action.SESSION_OPENED, subject=session.principal.session_id)
        return Response(signed_in_answer(web, shown.person, session), cookies=[COOKIE.lasting(web, session)])

    @post("/recovery-codes", status_code=200, summary="Get an operator's new recovery codes")
    async def renew_recovery_codes(
        self,
        request: AnyRequest,
        operator: NamedDependency[OperatorPrincipal],
        data: JSONBody[PasswordAndCode],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> RecoveryCodes:
        """Return new recovery codes; the ones before stop working."""
        await _shown_again(web, request, operator, data.password)
        record = audit.recorder(Action.RECOVERY_CODES_RENEWED)
        two_factor = web.operators.two_factor
        codes = await two_factor.renew_recovery_codes(operator.operator_pk, data.totp_code, record=record)
        return RecoveryCodes(recovery_codes=codes)


async def _shown_again(web: Web, request: AnyRequest, operator: OperatorPrincipal, password: str) -> SignIn[Operator]:
    """Check the password of an operator who is signed in. Raises ForbiddenError: the session is good."""
    async with web.db.autocommit() as conn:
        email = (await people.get(conn, OPERATORS, operator.operator_pk)).email
    try:
        return await show_operators_password(web, request, email, password)
    except UnauthenticatedError:
        raise ForbiddenError("PASSWORD_INVALID", "The password is wrong.") from None


controllers = [operator_routes("/api/admin/auth", OperatorInPerson)]
