"""One-time links into the merchants' dashboard, for somebody who cannot sign in yet."""

from __future__ import annotations

from cambist.settings import WebSettings

from .routes import PATH


def password_link(web: WebSettings, token: str) -> str:
    """Return where somebody sets a password."""
    return _link(web, "set-password", token)


def invitation_link(web: WebSettings, token: str) -> str:
    """Return where somebody joins a team."""
    return _link(web, "join", token)


def _link(web: WebSettings, page: str, token: str) -> str:
    # No browser sends what is behind the #, so no server logs it.
    return f"{web.base_url.rstrip('/')}{PATH}/{page}#{token}"
