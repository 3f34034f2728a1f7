"""Refuses whatever changes something while the database is being restored.

Half-way, deposits are booked and what was paid out since is not: merchants would spend what they have spent before, and
the restore could not book it any more.
"""

from __future__ import annotations

from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send
from sqlalchemy.exc import SQLAlchemyError

from cambist.services.errors import UnavailableError
from cambist.services.recovery import unfinished

from .context import Web, web_of
from .origin import Connection

READS = frozenset({"GET", "HEAD", "OPTIONS"})


class RefuseWhileRestored(ASGIMiddleware):
    """Lets requests change something while no restore is under way; once none can begin any more, without asking."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Let the request pass, or raise UnavailableError."""
        if scope.get("method") not in READS:
            connection: Connection = ASGIConnection(scope)
            web = web_of(connection.app)
            if not web.is_restored and await _is_unfinished(web):
                message = "The gateway is being restored. Nothing was done; try again later."
                raise UnavailableError("UNAVAILABLE", message)
        await next_app(scope, receive, send)


async def _is_unfinished(web: Web) -> bool:
    try:
        async with web.db.autocommit() as conn:
            standing = await unfinished.standing(conn)
    except (SQLAlchemyError, OSError):
        return False  # what asks the database for more says so itself
    web.is_restored = not standing.may_begin and not standing.goes_on
    return standing.goes_on
