"""Access tokens: short-lived JWTs that name a session. HS256 only; every claim is required and checked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import jwt

from cambist.ports import Clock
from cambist.services.errors import UnauthenticatedError
from cambist.services.identity.people import Principal

ALGORITHM = "HS256"
ISSUER = "cambist"
MERCHANTS_AUDIENCE = "cambist-dashboard"
OPERATORS_AUDIENCE = "cambist-admin"
LEEWAY = timedelta(seconds=5)
"""How far apart the clocks of two web servers may be."""

REQUIRED = ("exp", "iat", "iss", "aud", "sub", "sid")


class AccessTokens:
    """Issues and reads access tokens of one kind of people, with one key."""

    def __init__(self, key: bytes, clock: Clock, *, lifetime_s: int, audience: str) -> None:
        """Sign with ``key``, which is used for nothing else."""
        self._key = key
        self._clock = clock
        self._lifetime_s = lifetime_s
        self._audience = audience

    def issue(self, principal: Principal) -> str:
        now = self._clock.now()
        claims = {
            "iss": ISSUER,
            "aud": self._audience,
            "sub": principal.person_id,
            "sid": principal.session_id,
            "iat": now,
            "exp": now + timedelta(seconds=self._lifetime_s),
        }
        return jwt.encode(claims, self._key, ALGORITHM)

    def session_of(self, token: str) -> str:
        """Return the session that the token names. Raises UnauthenticatedError for anything but a token of ours."""
        return self.read(token)[0]

    def read(self, token: str) -> tuple[str, datetime]:
        """Return the session that the token names, and when it expires.

        Raises UnauthenticatedError for anything but a token of ours.
        """
        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=[ALGORITHM],
                audience=self._audience,
                issuer=ISSUER,
                # Times are checked below, against the clock that is injected.
                options={"require": list(REQUIRED), "verify_exp": False, "verify_iat": False, "verify_nbf": False},
            )
        except jwt.InvalidTokenError:
            raise _refused() from None
        session_id, expires, issued = claims["sid"], claims["exp"], claims["iat"]
        if not isinstance(session_id, str) or type(expires) is not int or type(issued) is not int:
            raise _refused()
        now = self._clock.now()
        if not _time(issued) - LEEWAY <= now < _time(expires):
            raise _refused()
        return session_id, _time(expires)


def _time(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise _refused() from None


def _refused() -> UnauthenticatedError:
    return UnauthenticatedError("INVALID_TOKEN", "The access token is not valid, or has expired.")
