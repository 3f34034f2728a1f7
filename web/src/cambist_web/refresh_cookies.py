"""Cookies that prolong sessions: one for each kind of people, where no script can read it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from litestar.datastructures import Cookie
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.identity import operators, sessions
from cambist.services.identity.people import P, V

from .context import SignIns, Web
from .errors import AnyRequest


class RefreshCookie(Struct, frozen=True):
    """A cookie by its name and path over http alone.

    On HTTPS it is ``__Host-`` and the name: browsers take that from the host itself alone, so that no other host can
    plant one; the path is then the whole host.
    """

    name: str
    path: str
    for_operators: bool = False

    @property
    def secure_name(self) -> str:
        """Its name on HTTPS."""
        return f"__Host-{self.name}"

    def is_secure(self, web: Web) -> bool:
        """Say whether browsers reach those whom it is for over HTTPS."""
        settings = web.settings.web
        url = operators.base_url(settings) if self.for_operators else settings.base_url
        return url.lower().startswith("https://")

    def make(self, web: Web, value: str, *, max_age_s: int) -> Cookie:
        secure = self.is_secure(web)
        return Cookie(
            key=self.secure_name if secure else self.name,
            value=value,
            path="/" if secure else self.path,
            max_age=max_age_s,
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    def lasting(self, web: Web, session: sessions.OpenSession[P]) -> Cookie:
        """Return the cookie of a session, which lasts as long as the session."""
        max_age_s = int((session.expires_at - web.clock.now()).total_seconds())
        return self.make(web, session.refresh_token, max_age_s=max_age_s)

    async def end_session(
        self, conn: AsyncConnection, sign_ins: SignIns[V, P], request: AnyRequest, now: datetime
    ) -> Sequence[tuple[str, str]]:
        """End the session whose cookie the browser brought along: the one that is opened takes its cookie's place.

        After the person who signs in is locked: whoever changes the password locks the person before the sessions.
        Returns whose it was, and which, where there was one.
        """
        ended = []
        for name in (self.name, self.secure_name):
            session_id = sign_ins.refresh_tokens.session_of(request.cookies.get(name, ""))
            if session_id is not None:
                person_id = await sessions.revoke(conn, sign_ins.people, session_id, now=now)
                ended += [] if person_id is None else [(person_id, session_id)]
        return ended
