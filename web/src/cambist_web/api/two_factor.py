"""Turning two-factor authentication on and off, by the merchant in person, and the operator's way to reset it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import segno
import structlog
from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta

from cambist.services.audit.entries import Action
from cambist.services.errors import ForbiddenError, UnauthenticatedError
from cambist.services.identity import members, merchants, people, two_factor
from cambist.services.identity.credentials import SignIn
from cambist.services.identity.members import MEMBERS, Member
from cambist.services.identity.sessions import SessionPrincipal
from cambist.services.identity.two_factor import Enrolment
from cambist_web.auth import needs, session_routes
from cambist_web.context import Web
from cambist_web.errors import AnyRequest
from cambist_web.login_attempts import check_password
from cambist_web.operator_auth import admin_routes
from cambist_web.origin import Audit, address_of
from cambist_web.permissions import permits
from cambist_web.schemas import Answer, Body

TotpCode = Annotated[str, Meta(max_length=64)]
"""Six digits of an authenticator, or a recovery code; ``totpCode`` in every body that takes one."""
log = structlog.get_logger(__name__)


class Enrol(Body, frozen=True, kw_only=True):
    """The merchant's password, and a code where there is a second factor already."""

    password: Annotated[str, Meta(max_length=1024)]
    totp_code: TotpCode | None = None


class Code(Body, frozen=True, kw_only=True):
    """A code that proves who asks."""

    totp_code: TotpCode


class PasswordAndCode(Body, frozen=True, kw_only=True):
    """Both factors: who holds a session and the phone, or the password and a session, does not pass."""

    password: Annotated[str, Meta(max_length=1024)]
    totp_code: TotpCode


class ResetTwoFactor(Body, frozen=True, kw_only=True):
    """Whose authenticator is lost."""

    email: Annotated[str, Meta(min_length=3, max_length=254)]


class StatusView(Answer, frozen=True, kw_only=True):
    """Whether codes are asked for, and how many recovery codes are left."""

    enabled: bool
    recovery_codes_left: int


class Enrolled(Answer, frozen=True, kw_only=True):
    """A secret for the authenticator: to type, to open, and as a QR code (a `data:` URI of an SVG)."""

    secret: str
    otpauth_uri: str
    qr_code: str


class RecoveryCodes(Answer, frozen=True, kw_only=True):
    """Codes for when the authenticator is lost, each good for one time. They are shown this once."""

    recovery_codes: Sequence[str]


class TwoFactorRoutes(Controller):
    tags = ("Sessions",)

    @get("/", summary="Whether two-factor authentication is on", opt=needs(member="self"))
    async def status(self, session: NamedDependency[SessionPrincipal], web: NamedDependency[Web]) -> StatusView:
        """Say whether codes are asked for, and how many recovery codes are left."""
        async with web.db.autocommit() as conn:
            status = await web.two_factor.status(conn, session.member_pk)
        return StatusView(enabled=status.enabled, recovery_codes_left=status.recovery_codes_left)

    @post("/enrol", status_code=200, summary="Get a secret for an authenticator", opt=needs(member="self"))
    async def enrol(
        self,
        request: AnyRequest,
        session: NamedDependency[SessionPrincipal],
        data: JSONBody[Enrol],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Enrolled:
        """Return a new secret. It is good for nothing until confirmed; an authenticator in use stays so till then."""
        shown = await show_password(web, request, session, data.password)
        email, record = shown.person.email, audit.recorder(Action.TWO_FACTOR_ENROLLED)
        enrolment = await web.two_factor.enrol(session.member_pk, email, data.totp_code, record=record)
        return enrolled(enrolment)

    @post("/confirm", status_code=200, summary="Turn two-factor authentication on", opt=needs(member="self"))
    async def confirm(
        self,
        session: NamedDependency[SessionPrincipal],
        data: JSONBody[Code],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> RecoveryCodes:
        """Put the secret into force with its first code. Every other session of yours ends."""
        record = audit.recorder(Action.TWO_FACTOR_ENABLED)
        codes = await web.two_factor.confirm(
            session.member_pk, data.totp_code, session_id=session.session_id, record=record
        )
        return RecoveryCodes(recovery_codes=codes)

    @post("/recovery-codes", status_code=200, summary="Get new recovery codes", opt=needs(member="self"))
    async def renew_recovery_codes(
        self,
        request: AnyRequest,
        session: NamedDependency[SessionPrincipal],
        data: JSONBody[PasswordAndCode],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> RecoveryCodes:
        """Return new recovery codes; the ones before stop working."""
        await show_password(web, request, session, data.password)
        record = audit.recorder(Action.RECOVERY_CODES_RENEWED)
        codes = await web.two_factor.renew_recovery_codes(session.member_pk, data.totp_code, record=record)
        return RecoveryCodes(recovery_codes=codes)

    @post("/disable", status_code=200, summary="Turn two-factor authentication off", opt=needs(member="self"))
    async def disable(
        self,
        request: AnyRequest,
        session: NamedDependency[SessionPrincipal],
        data: JSONBody[PasswordAndCode],
        web: NamedDependency[Web],
        audit: NamedDependency[Audit],
    ) -> Answer:
        """Forget authenticator and recovery codes. What needs them is out of reach from then on."""
        await show_password(web, request, session, data.password)
        record = audit.recorder(Action.TWO_FACTOR_DISABLED)
        await web.two_factor.disable(session.member_pk, data.totp_code, record=record)
        return Answer()


class TwoFactorReset(Controller):
    """What the operator does for a merchant who lost authenticator and recovery codes."""

    tags = ("Operator",)

    @post(
        "/merchants/two-factor/reset",
        status_code=200,
        summary="Take a merchant's second factor away",
        opt=permits("merchants.recover"),
    )
    async def reset(
        self, data: JSONBody[ResetTwoFactor], web: NamedDependency[Web], audit: NamedDependency[Audit]
    ) -> Answer:
        """Turn two-factor authentication off for a merchant, and end every session."""
        email = merchants.normalize_email(data.email)
        async with web.db.transaction() as conn:
            member_id = await two_factor.reset(conn, MEMBERS, email, now=web.clock.now())
            merchant_id = await members.merchant_of(conn, member_id)
            await audit.record(conn, Action.TWO_FACTOR_RESET, subject=member_id, merchant_id=merchant_id)
        log.warning("two_factor_reset_by_operator", member_id=member_id, merchant_id=merchant_id)
        return Answer()


def enrolled(enrolment: Enrolment) -> Enrolled:
    """Answer a new secret."""
    qr_code = segno.make(enrolment.uri, micro=False).svg_data_uri(border=4)
    return Enrolled(secret=enrolment.secret, otpauth_uri=enrolment.uri, qr_code=qr_code)


async def show_password(web: Web, request: AnyRequest, session: SessionPrincipal, password: str) -> SignIn[Member]:
    """Check the password of a merchant who is signed in. Raises ForbiddenError.

    A right one is counted for the address, too: it costs as much as one that opens a session.
    """
    await web.limiter.take(web.limits.login_per_address, address_of(request))
    async with web.db.autocommit() as conn:
        email = (await people.get(conn, MEMBERS, session.member_pk)).email
    try:
        return await check_password(web, MEMBERS, request, email, password)
    except UnauthenticatedError:
        # The session is good, so no 401, at which a client would sign in again.
        raise ForbiddenError("PASSWORD_INVALID", "The password is wrong.") from None


controllers = [
    session_routes("/api/dashboard/two-factor", TwoFactorRoutes),
    admin_routes("/api/admin", TwoFactorReset),
]
