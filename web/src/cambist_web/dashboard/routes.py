"""The addresses of the dashboards: for each one page, at every path below its own, and the files of both."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any

from litestar import Controller, MediaType, Request, Response, Router, get, route
from litestar.enums import HttpMethod
from litestar.params import FromPath
from litestar.response import Redirect
from litestar.types import ControllerRouterHandler

from cambist_web.auth import public_routes

from .files import BuiltFile, BuiltFiles, ReplacedError

ASSETS_PATH = "/dashboard-assets"
PATH = "/dashboard"
OPERATORS_PATH = "/operator"

YEAR_S = 31_536_000

SHOWN = (HttpMethod.GET, HttpMethod.HEAD)
"""How pages are asked for: monitors do without the body, which the server leaves out."""

NOT_BUILT = "The dashboard has not been built: run make dashboard.\n"
REPLACED = "The dashboard was built anew: start the gateway again.\n"

PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
"""Nothing from elsewhere, nothing inline, in no frame. The page itself is asked for anew, and its files never."""

AnyRequest = Request[Any, Any, Any]

_files = BuiltFiles()


class Pages(Controller):
    """The same page for every path: which of its parts is shown, the page itself reads in its address."""

    include_in_schema = False

    @route(["/", "/{path:path}"], http_method=SHOWN, sync_to_thread=False)
    def page(self, request: AnyRequest) -> Response[bytes]:
        """Return the page."""
        return _page(request, "dashboard.html")


class OperatorPages(Controller):
    """The operators' page, in the same way."""

    include_in_schema = False

    @route(["/", "/{path:path}"], http_method=SHOWN, sync_to_thread=False)
    def page(self, request: AnyRequest) -> Response[bytes]:
        """Return the page."""
        return _page(request, "operator.html")


class Start(Controller):
    """The gateway's own address, as somebody types it."""

    include_in_schema = False

    @route("/", http_method=SHOWN, sync_to_thread=False)
    def start(self) -> Redirect:
        """Lead to where merchants sign in."""
        return Redirect(f"{PATH}/")


class OperatorStart(Controller):
    """The operators' own address, likewise."""

    include_in_schema = False

    @route("/", http_method=SHOWN, sync_to_thread=False)
    def start(self) -> Redirect:
        """Lead to where operators sign in."""
        return Redirect(f"{OPERATORS_PATH}/")


class Files(Controller):
    """What the pages are made of. Anybody may have it: it holds nothing of anybody's."""

    include_in_schema = False

    @get("/{name:str}", sync_to_thread=False)
    def file(self, request: AnyRequest, name: FromPath[str]) -> Response[bytes]:
        """Return a built file."""
        try:
            found = _files.find(name)
        except ReplacedError:
            return _unavailable(REPLACED)
        if found is None:
            return Response(b"", status_code=404, media_type=MediaType.TEXT)
        kept = "no-cache" if found.keeps_its_name else f"public, max-age={YEAR_S}, immutable"
        return _answer(request, found, {"Cache-Control": kept, "Cross-Origin-Resource-Policy": "same-origin"})


def _page(request: AnyRequest, name: str) -> Response[bytes]:
    try:
        found = _files.find(name)
    except ReplacedError:
        return _unavailable(REPLACED)
    return _unavailable(NOT_BUILT) if found is None else _answer(request, found, PAGE_HEADERS)


def _unavailable(why: str) -> Response[bytes]:
    return Response(why.encode(), status_code=503, media_type=MediaType.TEXT, headers={"Cache-Control": "no-store"})


def _answer(request: AnyRequest, file: BuiltFile, headers: dict[str, str]) -> Response[bytes]:
    headers = {**headers, "ETag": file.etag, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == file.etag:
        return Response(b"", status_code=304, headers=headers, media_type=file.media_type)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.gzipped, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.media_type)
    return Response(gzip.decompress(file.gzipped), headers=headers, media_type=file.media_type)


_assets: list[ControllerRouterHandler] = [Router(path=ASSETS_PATH, route_handlers=[Files])]
_merchants: list[ControllerRouterHandler] = [public_routes(PATH, Pages)]
_operators: list[ControllerRouterHandler] = [public_routes(OPERATORS_PATH, OperatorPages)]

controllers: Mapping[str, list[ControllerRouterHandler]] = {
    "all": [public_routes("/", Start), *_merchants, *_operators, *_assets],
    "public": [public_routes("/", Start), *_merchants, *_assets],
    "admin": [public_routes("/", OperatorStart), *_operators, *_assets],
}
"""By what an app serves: operators' pages are where their API is, and nowhere else."""
