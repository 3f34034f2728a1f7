"""What no request may carry, wherever it goes."""

from __future__ import annotations

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from cambist.services.errors import InvalidError


async def refuse_unstorable(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """Refuse text in path and query that PostgreSQL cannot store: NUL, and what is no UTF-8. A guard."""
    if not _storable(connection.scope["path"]):
        raise InvalidError.field("path", "must be UTF-8 text without the character NUL")
    if connection.scope["query_string"]:
        for name, value in connection.query_params.multi_items():
            if not _storable(name) or not _storable(value):
                raise InvalidError.field("query", "must be UTF-8 text without the character NUL")


def _storable(text: str) -> bool:
    if text.isascii():
        return "\0" not in text
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
