"""Which site's page made a browser ask: what a cookie opens is refused to pages of other sites."""

from __future__ import annotations

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from cambist.services.errors import ForbiddenError

FOREIGN = frozenset({"cross-site", "same-site"})


async def refuse_other_sites(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """Refuse a request that a page of another site, or of another host of this one, made a browser send. A guard.

    Browsers say so on HTTPS in ``Sec-Fetch-Site``, which no page can set. Programs and old browsers do not send it;
    for those the cookie is ``SameSite=Strict``. Raises ForbiddenError.
    """
    if connection.headers.get("sec-fetch-site") in FOREIGN:
        raise ForbiddenError("OTHER_SITE", "This is for pages of the gateway itself, and for programs.")
