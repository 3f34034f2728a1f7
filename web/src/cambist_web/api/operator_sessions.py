"""How operators sign in, stay signed in, and get back in: with a password and, always, a second factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, Response, post
from litestar.di import NamedDependency
from litestar.params import CookieParameter, JSONBody
from msgspec import Meta, Struct
from msgspec.structs import asdict
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.audit.entries import Action
from cambist.services.errors import UnauthenticatedError
from cambist.services.identity import credentials, merchants, people
from cambist.services.identity.credentials import SignIn
from cambist.services.identity.operators import OPERATORS, Operator, OperatorPrincipal, Role
from cambist.services.identity.sessions import OpenSession, Replayed, session_ended
from cambist_web.auth import public_routes, visitor_of
from cambist_web.context import Web
from cambist_web.errors import AnyRequest
from cambist_web.fetch_site import refuse_other_sites
from cambist_web.login_attempts import check_password
from cambist_web.origin import Audit, address_of
from cambist_web.permissions import permissions_of
from cambist_web.refresh_cookies import RefreshCookie
from cambist_web.schemas import Answer, Body

from .merchants import Email, Message, Password, ResetConfirm
from .two_factor import Enrolled, TotpCode, enrolled

COOKIE = RefreshCookie("cambist_admin_refresh", "/api/admin/auth", for_operators=True)
PlainToken = Annotated[str | None, CookieParameter(name=COOKIE.name, description="Over http alone.")]
SecureToken = Annotated[str | None, CookieParameter(name=COOKIE.secure_name, description="Over HTTPS.")]

ShownPassword = Annotated[str, Meta(max_length=1024)]


class OperatorSignIn(Body, frozen=True, kw_only=True):
    """E-mail address, password and a code: nobody is let in without one."""

    email: Email
    password: Password
    totp_code: TotpCode | None = None


class OperatorCode(Body, frozen=True, kw_only=True):
    """E-mail address and password, and the first code of the secret that was shown."""

    email: Email
    password: Password
    totp_code: TotpCode


class OperatorSelf(Struct, frozen=True, kw_only=True, rename="camel"):
    """The operator who asks: `permissions` are what the role may do."""

    operator_id: str
    email: str
    name: str
    role: Role
    permissions: Sequence[str]


class OperatorSignedIn(Answer, frozen=True, kw_only=True):
    """An access token. The refresh token is in a cookie, where no script can read it."""

    access_token: str
    token_type: str = "Bearer"  # noqa: S105  a scheme
    expires_in: int
    operator: OperatorSelf


class OperatorEnrolled(OperatorSignedIn, frozen=True, kw_only=True):
    """Signed in, and codes for when the authenticator is lost, each good for one time. They are shown this once."""

    recovery_codes: Sequence[str]


class OperatorAuth(Controller):
    """What needs no session yet."""

    tags = ("Operator sessions",)
    guards = (refuse_other_sites,)

    @post("/sign-in", status_code=200, summary="Sign in as an operator")
    async def sign_in(
        self,
        request: AnyRequest,
        data: JSONBody[OperatorSignIn],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Response[OperatorSignedIn]:
        """Return an access token, and set the cookie with the refresh token.

        401 `TWO_FACTOR_NOT_ENROLLED` where the password is right and there is no authenticator yet: enrol one first.
        """
        by_password = await show_operators_password(web, request, data.email, data.password)
        await web.operators.two_factor.check_sign_in(by_password.person.pk, data.totp_code)
        async with web.db.transaction() as conn:
            session = await _open(web, conn, request, audit, by_password)
        return Response(signed_in_answer(web, by_password.person, session), cookies=[COOKIE.lasting(web, session)])

    @post("/two-factor/enrol", status_code=200, summary="Get a secret for an operator's authenticator")
    async def enrol(
        self,
        request: AnyRequest,
        data: JSONBody[OperatorSignIn],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Enrolled:
        """Return a new secret, good for nothing until confirmed.

        The first one takes the password alone; with an authenticator in use, `totpCode` is a code of it, or a recovery
        code.
        """
        by_password = await show_operators_password(web, request, data.email, data.password)
        record = audit.of_operator(by_password.person.operator_id).recorder(Action.TWO_FACTOR_ENROLLED)
        made = await web.operators.two_factor.enrol(
            by_password.person.pk, by_password.person.email, data.totp_code, sign_in=by_password, record=record
        )
        return enrolled(made)

    @post("/two-factor/confirm", status_code=200, summary="Put an operator's authenticator into force")
    async def confirm(
        self,
        request: AnyRequest,
        data: JSONBody[OperatorCode],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Response[OperatorEnrolled]:
        """Put the secret into force with its first code, end every session of the operator, and begin one."""
        by_password = await show_operators_password(web, request, data.email, data.password)
        record = audit.of_operator(by_password.person.operator_id).recorder(Action.TWO_FACTOR_ENABLED)
        codes = await web.operators.two_factor.confirm(
            by_password.person.pk, data.totp_code, session_id="", sign_in=by_password, record=record
        )
        async with web.db.transaction() as conn:
            session = await _open(web, conn, request, audit, by_password)
        answer = OperatorEnrolled(**asdict(signed_in_answer(web, by_password.person, session)), recovery_codes=codes)
        return Response(answer, cookies=[COOKIE.lasting(web, session)])

    @post("/refresh", status_code=200, summary="Get an operator's next access token")
    async def refresh(
        self,
        request: AnyRequest,
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        refresh_token: PlainToken = None,
        secure_refresh_token: SecureToken = None,
    ) -> Response[OperatorSignedIn]:
        """Exchange the cookie's refresh token for the next one. Presenting a used one ends the session.

        But for 10 seconds after it was exchanged, the one before the newest gets the newest again.
        """
        token = secure_refresh_token if COOKIE.is_secure(web) else refresh_token
        if not token:
            raise UnauthenticatedError("SESSION_REQUIRED", "Sign in first.")
        operator = None
        async with web.db.transaction() as conn:
            session = await web.operators.sessions.rotate(conn, token, visitor_of(request), now=web.clock.now())
            if isinstance(session, Replayed):
                # By whom is not known: the thief, or the operator from whom it was stolen.
                told = {"subject": session.person_id, "session": session.session_id}
                await audit.record(conn, Action.REFRESH_REPLAYED, **told)
            elif session is not None:
                operator = await people.get(conn, OPERATORS, session.principal.person_pk)
        if session is None or isinstance(session, Replayed) or operator is None:
            raise session_ended()
        return Response(signed_in_answer(web, operator, session), cookies=[COOKIE.lasting(web, session)])

    @post("/sign-out", status_code=200, summary="Sign out as an operator")
    async def sign_out(
        self, request: AnyRequest, web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> Response[Message]:
        """End the cookie's session at once, its access tokens included. Without a session, nothing happens."""
        async with web.db.transaction() as conn:
            await _end_the_one_before(web, conn, request, audit)
        return Response(Message(message="Signed out."), cookies=[COOKIE.make(web, "", max_age_s=0)])

    @post("/set-password", status_code=200, summary="Set an operator's password by a link")
    async def set_password(
        self,
        request: AnyRequest,
        data: JSONBody[ResetConfirm],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Message:
        """Set a password with the token of a one-time link, and end every session. The second factor stays."""
        await web.limiter.take(web.limits.login_per_address, address_of(request))
        async with web.db.autocommit() as conn:
            operator = await credentials.of_link(conn, OPERATORS, data.token, now=web.clock.now())
        password_hash = await web.passwords.hash_new(data.password, [operator.email, operator.name])
        async with web.db.transaction() as conn:
            await credentials.set_by_link(conn, OPERATORS, data.token, password_hash, now=web.clock.now())
            by = audit.of_operator(operator.operator_id)
            await by.record(conn, Action.PASSWORD_CHANGED, subject=operator.operator_id, by="reset link")
        return Message(message="The password was set. Sign in with it.")


async def show_operators_password(web: Web, request: AnyRequest, typed: str, password: str) -> SignIn[Operator]:
    """Return whose password this is. Raises UnauthenticatedError and TooManyError."""
    email = merchants.spelling_of(typed)
    request.state.claimed_kind = OPERATORS.kind
    request.state.claimed_email = email if merchants.is_email(email) else None
    await web.limiter.take(web.limits.login_per_address, address_of(request))
    return await check_password(web, OPERATORS, request, email, password)


async def _open(
    web: Web, conn: AsyncConnection, request: AnyRequest, audit: Audit, by_password: SignIn[Operator]
) -> OpenSession[OperatorPrincipal]:
    """Begin a session of an operator who has shown password and code, and still has both."""
    await credentials.lock_password(conn, OPERATORS, by_password)
    await web.operators.two_factor.lock_sign_in(conn, by_password.person.pk, shown=True)
    await _end_the_one_before(web, conn, request, audit)
    session = await web.operators.sessions.open(conn, by_password.person.pk, visitor_of(request), now=web.clock.now())
    by = audit.of_operator(by_password.person.operator_id)
    await by.record(conn, Action.SESSION_OPENED, subject=session.principal.session_id, totp=True)
    return session


async def _end_the_one_before(web: Web, conn: AsyncConnection, request: AnyRequest, audit: Audit) -> None:
    for operator_id, session_id in await COOKIE.end_session(conn, web.operators, request, web.clock.now()):
        await audit.of_operator(operator_id).record(conn, Action.SESSION_ENDED, subject=session_id)


def signed_in_answer(web: Web, operator: Operator, session: OpenSession[OperatorPrincipal]) -> OperatorSignedIn:
    return OperatorSignedIn(
        access_token=web.operators.access_tokens.issue(session.principal),
        expires_in=web.settings.auth.access_token_s,
        operator=self_view(operator),
    )


def self_view(operator: Operator) -> OperatorSelf:
    return OperatorSelf(
        operator_id=operator.operator_id,
        email=operator.email,
        name=operator.name,
        role=operator.role,
        permissions=permissions_of(operator.role),
    )


controllers = [public_routes("/api/admin/auth", OperatorAuth)]
