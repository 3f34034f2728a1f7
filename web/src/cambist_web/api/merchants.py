"""Registering, signing in, staying signed in, and the way back in."""

from __future__ import annotations

from typing import Annotated, Any

import structlog
from litestar import Controller, Request, Response, post
from litestar.di import NamedDependency
from litestar.params import CookieParameter, JSONBody
from msgspec import Meta
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.audit.entries import Action
from cambist.services.errors import ForbiddenError, UnauthenticatedError
from cambist.services.identity import credentials, members, merchants, people, sessions
from cambist.services.identity.members import MEMBERS, Member
from cambist.services.identity.merchants import Name
from cambist.services.identity.sessions import OpenSession, Replayed, SessionPrincipal, session_ended
from cambist_web.auth import public_routes, visitor_of
from cambist_web.context import Web
from cambist_web.fetch_site import refuse_other_sites
from cambist_web.login_attempts import check_password
from cambist_web.origin import Audit, Connection, address_of
from cambist_web.refresh_cookies import RefreshCookie
from cambist_web.schemas import Answer, Body

from .two_factor import TotpCode

Email = Annotated[str, Meta(min_length=3, max_length=254)]
Password = Annotated[str, Meta(max_length=1024)]
Token = Annotated[str, Meta(min_length=1, max_length=256)]

COOKIE = RefreshCookie("cambist_refresh", "/api/auth")

log = structlog.get_logger(__name__)

PlainToken = Annotated[str | None, CookieParameter(name=COOKIE.name, description="Over http alone.")]
SecureToken = Annotated[str | None, CookieParameter(name=COOKIE.secure_name, description="Over HTTPS.")]


class Register(Body, frozen=True, kw_only=True):
    """A new merchant."""

    email: Email
    password: Password
    name: Name


class Login(Body, frozen=True, kw_only=True):
    """E-mail address and password, and a code where the merchant has two-factor authentication on."""

    email: Email
    password: Password
    totp_code: TotpCode | None = None


class ResetRequest(Body, frozen=True, kw_only=True):
    """Whose password is lost."""

    email: Email


class ResetConfirm(Body, frozen=True, kw_only=True):
    """The token out of the link that the operator handed over, and the password to set."""

    token: Token
    password: Password


class MerchantView(Body, frozen=True, kw_only=True):
    """A merchant, as it sees itself."""

    merchant_id: str
    email: str
    name: str


class SignedIn(Answer, frozen=True, kw_only=True):
    """An access token. The refresh token is in the cookie, where no script can read it."""

    access_token: str
    token_type: str = "Bearer"  # noqa: S105  a scheme
    expires_in: int
    merchant: MerchantView


class Message(Answer, frozen=True, kw_only=True):
    """Nothing to tell but a sentence."""

    message: str


class Auth(Controller):
    tags = ("Sessions",)
    guards = (refuse_other_sites,)

    @post("/register", status_code=201, summary="Become a merchant")
    async def register(
        self,
        request: Request[Any, Any, Any],
        data: JSONBody[Register],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Response[SignedIn]:
        """Add a merchant and sign in. 503 `KEYS_UNAVAILABLE` when no address keys are in stock.

        A password that is easy to guess is refused. Live projects may need the operator's grant.
        """
        await web.limiter.take(web.limits.login_per_address, address_of(request))
        if not web.settings.registration_open:
            raise ForbiddenError("REGISTRATION_CLOSED", "This gateway does not take new merchants by itself.")
        email, name = merchants.normalize_email(data.email), merchants.check_name(data.name)
        password_hash = await web.passwords.hash_new(data.password, [email, name])
        live = web.settings.grants_live
        async with web.db.transaction() as conn:
            merchant = await members.register(
                conn, email=email, name=name, password_hash=password_hash, ids=web.ids, now=web.clock.now(), live=live
            )
            await _end_the_one_before(web, conn, request, audit)
            session = await open_session(web, conn, merchant, request)
            by = audit.of_member(merchant.member_id, merchant.merchant_id, session.principal.session_id)
            await by.record(conn, Action.MERCHANT_REGISTERED, subject=merchant.merchant_id, email=email)
            await by.record(conn, Action.SESSION_OPENED, subject=session.principal.session_id)
        return signed_in(web, merchant, session, status_code=201)

    @post("/login", status_code=200, summary="Sign in")
    async def login(
        self,
        request: Request[Any, Any, Any],
        data: JSONBody[Login],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Response[SignedIn]:
        """Return an access token, and set the cookie with the refresh token.

        401 `TWO_FACTOR_REQUIRED` where the password is right and `totpCode` is missing.
        """
        email = merchants.spelling_of(data.email)
        # A refusal is written down with this address: unless it is none, such as a password in the wrong field.
        request.state.claimed_kind = "merchant"
        request.state.claimed_email = email if merchants.is_email(email) else None
        await web.limiter.take(web.limits.login_per_address, address_of(request))
        sign_in = await check_password(web, MEMBERS, request, email, data.password)
        shown = await web.two_factor.check_sign_in(sign_in.person.pk, data.totp_code)
        async with web.db.transaction() as conn:
            await credentials.lock_password(conn, MEMBERS, sign_in)
            await web.two_factor.lock_sign_in(conn, sign_in.person.pk, shown=shown)
            await _end_the_one_before(web, conn, request, audit)
            session = await open_session(web, conn, sign_in.person, request)
            who = sign_in.person
            by = audit.of_member(who.member_id, who.merchant_id, session.principal.session_id)
            await by.record(conn, Action.SESSION_OPENED, subject=session.principal.session_id, totp=shown or None)
        return signed_in(web, sign_in.person, session)

    @post("/refresh", status_code=200, summary="Get the next access token")
    async def refresh(
        self,
        request: Request[Any, Any, Any],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        refresh_token: PlainToken = None,
        secure_refresh_token: SecureToken = None,
    ) -> Response[SignedIn]:
        """Exchange the cookie's refresh token for the next one. Presenting a used one ends the session.

        But for 10 seconds after it was exchanged, the one before the newest gets the newest again.
        """
        token = secure_refresh_token if COOKIE.is_secure(web) else refresh_token
        if not token:
            raise UnauthenticatedError("SESSION_REQUIRED", "Sign in first.")
        merchant = None
        async with web.db.transaction() as conn:
            session = await web.sessions.rotate(conn, token, visitor_of(request), now=web.clock.now())
            if isinstance(session, Replayed):
                whose = await members.merchant_of(conn, session.person_id)
                await audit.record(
                    conn,
                    Action.REFRESH_REPLAYED,
                    subject=session.session_id,
                    merchant_id=whose,
                    member=session.person_id,
                )
            elif session is not None:
                merchant = await people.get(conn, MEMBERS, session.principal.member_pk)
        if session is None or isinstance(session, Replayed) or merchant is None:
            raise session_ended()
        return signed_in(web, merchant, session)

    @post("/logout", status_code=200, summary="Sign out")
    async def logout(
        self,
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
        refresh_token: PlainToken = None,
        secure_refresh_token: SecureToken = None,
    ) -> Response[Message]:
        """End the cookie's session at once, its access tokens included. Without a session, nothing happens."""
        token = secure_refresh_token if COOKIE.is_secure(web) else refresh_token
        session_id = web.refresh_tokens.session_of(token) if token else None
        if session_id is not None:
            async with web.db.transaction() as conn:
                member_id = await sessions.revoke(conn, MEMBERS, session_id, now=web.clock.now())
                if member_id is not None:
                    by = audit.of_member(member_id, await members.merchant_of(conn, member_id), session_id)
                    await by.record(conn, Action.SESSION_ENDED, subject=session_id)
        return Response(Message(message="Signed out."), cookies=[COOKIE.make(web, "", max_age_s=0)])

    @post("/password-reset/request", status_code=200, summary="Ask for a password reset")
    async def request_reset(
        self,
        request: Request[Any, Any, Any],
        data: JSONBody[ResetRequest],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Message:
        """Tell the operator, who hands out the reset link. The answer is the same for unknown addresses."""
        await web.limiter.take(web.limits.login_per_address, address_of(request))
        email = merchants.normalize_email(data.email)
        audit.count(Action.PASSWORD_RESET_ASKED, email=email)
        log.warning("password_reset_requested", email=email)
        return Message(message="The operator was told. A link to set a new password comes from there.")

    @post("/password-reset/confirm", status_code=200, summary="Set a new password")
    async def confirm_reset(
        self,
        request: Request[Any, Any, Any],
        data: JSONBody[ResetConfirm],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Message:
        """Set a new password with a reset token, and end every session of the merchant."""
        await web.limiter.take(web.limits.login_per_address, address_of(request))
        async with web.db.autocommit() as conn:
            merchant = await credentials.of_link(conn, MEMBERS, data.token, now=web.clock.now())
        password_hash = await web.passwords.hash_new(data.password, [merchant.email, merchant.name])
        async with web.db.transaction() as conn:
            now = web.clock.now()
            merchant = await credentials.set_by_link(conn, MEMBERS, data.token, password_hash, now=now)
            by = audit.of_member(merchant.member_id, merchant.merchant_id)
            await by.record(conn, Action.PASSWORD_CHANGED, subject=merchant.member_id, by="reset link")
        return Message(message="The password was changed. Sign in with the new one.")


async def _end_the_one_before(web: Web, conn: AsyncConnection, request: Request[Any, Any, Any], audit: Audit) -> None:
    for member_id, session_id in await COOKIE.end_session(conn, web.merchants, request, web.clock.now()):
        by = audit.of_member(member_id, await members.merchant_of(conn, member_id), session_id)
        await by.record(conn, Action.SESSION_ENDED, subject=session_id)


async def open_session(
    web: Web, conn: AsyncConnection, merchant: Member, connection: Connection
) -> OpenSession[SessionPrincipal]:
    """Begin a session of a member who has signed in from there. Raises ForbiddenError where they are suspended."""
    await merchants.refuse_suspended(conn, merchant.merchant_pk)
    return await web.sessions.open(conn, merchant.pk, visitor_of(connection), now=web.clock.now())


def signed_in(
    web: Web, merchant: Member, session: OpenSession[SessionPrincipal], *, status_code: int = 200
) -> Response[SignedIn]:
    """Answer with an access token of the session, and the cookie that prolongs it."""
    body = SignedIn(
        access_token=web.access_tokens.issue(session.principal),
        expires_in=web.settings.auth.access_token_s,
        merchant=MerchantView(merchant_id=merchant.merchant_id, email=merchant.email, name=merchant.name),
    )
    return Response(body, status_code=status_code, cookies=[COOKIE.lasting(web, session)])


controllers = [
    public_routes("/api/auth", Auth),
]
