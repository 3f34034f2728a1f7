"""What customers are told when a page cannot be shown: errors are judged as for programs, and told in other words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from litestar import MediaType, Request, Response
from litestar.exceptions import HTTPException
from litestar.types import ExceptionHandlersMap

from cambist.db.engine import BusyError
from cambist.services.errors import ServiceError
from cambist_web.errors import ErrorBody, on_busy, on_http_error, on_service_error, on_unexpected

from .pages import Pages

AGAIN_S = 15
"""When a page that cannot be shown just now loads itself anew."""

TOO_MANY = 429
OF_THE_GATEWAY = 500

NO_SUCH_PAGE = "This link does not lead to a page. Please check it, or go back to the shop and start again."
AWAY = (
    "This page cannot be shown just now, and tries again by itself. If you have sent something already, it is not lost:"
    " the page shows it then. If you have not, please wait for the page before you send."
)

_KEPT = ("retry-after", "x-request-id")
"""Headers of the answer to programs that a page has as well."""

Answer: TypeAlias = Callable[[Request[Any, Any, Any], Any], Response[ErrorBody]]


def told_to_people(
    pages: Callable[[Request[Any, Any, Any]], Pages], headers: Mapping[str, str]
) -> ExceptionHandlersMap:
    """Return the handlers of errors that answer with a page: each logs and counts as the one for programs does."""

    def in_words(answer: Answer) -> Callable[[Request[Any, Any, Any], Any], Response[Any]]:
        def tell(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
            said = answer(request, error)
            status = said.status_code or OF_THE_GATEWAY
            is_away = status == TOO_MANY or status >= OF_THE_GATEWAY
            html = pages(request).message(
                "Not available just now" if is_away else "No such page",
                AWAY if is_away else NO_SUCH_PAGE,
                again_s=AGAIN_S if is_away else None,
            )
            kept = {name: value for name, value in said.headers.items() if name.lower() in _KEPT}
            return Response(html, status_code=status, media_type=MediaType.HTML, headers={**headers, **kept})

        return tell

    return {
        ServiceError: in_words(on_service_error),
        HTTPException: in_words(on_http_error),
        BusyError: in_words(on_busy),
        Exception: in_words(on_unexpected),
    }
