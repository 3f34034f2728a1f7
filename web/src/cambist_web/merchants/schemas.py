"""Bodies and answers of registering and signing in."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from cambist_web.schemas import Answer, Body, Name
from cambist_web.two_factor.schemas import TotpCode

Email = Annotated[str, Meta(min_length=3, max_length=254)]
Password = Annotated[str, Meta(max_length=1024)]
Token = Annotated[str, Meta(min_length=1, max_length=256)]


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
    """A merchant, as he sees himself."""

    merchant_id: str
    email: str
    name: str


class SignedIn(Answer, frozen=True, kw_only=True):
    """An access token. The refresh token is in the cookie, where no script can read it."""

    access_token: str
    token_type: str = "Bearer"  # noqa: S105  a scheme
    expires_in: int
    merchant: MerchantView


class ResetIssued(Answer, frozen=True, kw_only=True):
    """A reset token, for the operator to hand to the merchant."""

    token: str
    expires_in: int


class Message(Answer, frozen=True, kw_only=True):
    """Nothing to tell but a sentence."""

    message: str
