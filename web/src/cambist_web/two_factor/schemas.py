"""Bodies and answers of two-factor authentication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from cambist_web.schemas import Answer, Body

TotpCode = Annotated[str, Meta(max_length=64)]
"""Six digits of an authenticator, or a recovery code; ``totpCode`` in every body that takes one."""


class Enrol(Body, frozen=True, kw_only=True):
    """The merchant's password, and a code where there is a second factor already."""

    password: Annotated[str, Meta(max_length=1024)]
    totp_code: TotpCode | None = None


class Code(Body, frozen=True, kw_only=True):
    """A code that proves who asks."""

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
