"""What no request may carry, wherever it goes."""

from __future__ import annotations

from typing import Any

from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from cambist.services.errors import InvalidError


class RefuseUnstorable(ASGIMiddleware):
    """Refuses text in path and query that PostgreSQL cannot store: NUL, and what is no UTF-8.

    No guard, because it comes before those, and because Litestar copies the handler for each guard of a request.
    """

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Let the request pass, or raise InvalidError."""
        if not _storable(scope["path"]):
            raise InvalidError.field("path", "must be UTF-8 text without the character NUL")
        if scope["query_string"]:
            for name, value in ASGIConnection[Any, Any, Any, Any](scope).query_params.multi_items():
                if not _storable(name) or not _storable(value):
                    raise InvalidError.field("query", "must be UTF-8 text without the character NUL")
        await next_app(scope, receive, send)


def _storable(text: str) -> bool:
    if text.isascii():
        return "\0" not in text
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
