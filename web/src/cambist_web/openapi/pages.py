"""The API's description at ``/api/openapi.json``, and Swagger UI at ``/api/swagger``, served from a package.

A description is made once for each app, and sent again only to whom it is new. Nothing is loaded from elsewhere, and
no script or style is inline, so the pages work offline and under a strict Content-Security-Policy.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from threading import Lock
from typing import Any

import msgspec
from litestar import Controller, Litestar, MediaType, Request, Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from .audiences import Audience, of_audience
from .description import described

_WHOLE = "whole"
_building = Lock()

_FILES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript", "favicon-32x32.png": "image/png"}

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cambist API</title>
<link rel="icon" href="/api/swagger/files/favicon-32x32.png">
<link rel="stylesheet" href="/api/swagger/files/swagger-ui.css">
</head>
<body>
<nav>%(links)s</nav>
<div id="swagger-ui" data-description="%(description)s"></div>
<script src="/api/swagger/files/swagger-ui-bundle.js"></script>
<script src="/api/swagger/start.js"></script>
</body>
</html>
"""

_START = """\
window.ui = SwaggerUIBundle({
  url: document.getElementById("swagger-ui").dataset.description,
  dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null, persistAuthorization: false
});
"""

# Swagger UI sets styles from its script, which the policy sees as inline.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


class Swagger(Controller):
    """The description, for programs and for people."""

    path = "/api"
    include_in_schema = False

    @get("/openapi.json")
    async def description(self, request: Request[Any, Any, Any]) -> Response[bytes]:
        """Return the description of the API."""
        return await _description(request, _WHOLE)

    @get("/swagger", media_type=MediaType.HTML)
    async def page(self, request: Request[Any, Any, Any]) -> Response[str]:
        """Show Swagger UI."""
        return await _page(request, "/api/openapi.json")

    @get([f"/openapi/{one.value}.json" for one in Audience])
    async def description_for_one(self, request: Request[Any, Any, Any]) -> Response[bytes]:
        """Return what one audience may call; 404 where this address serves them nothing."""
        return await _description(request, request.url.path.rpartition("/")[2].removesuffix(".json"))

    @get([f"/swagger/{one.value}" for one in Audience], media_type=MediaType.HTML)
    async def page_for_one(self, request: Request[Any, Any, Any]) -> Response[str]:
        """Show Swagger UI with what one audience may call."""
        name = request.url.path.rpartition("/")[2]
        if name not in await asyncio.to_thread(descriptions, request.app):
            raise NotFoundException
        return await _page(request, f"/api/openapi/{name}.json")

    @get("/swagger/start.js", sync_to_thread=False)
    def start(self) -> Response[str]:
        """Return the lines that start it."""
        return Response(_START, media_type="text/javascript")

    @get("/swagger/files/{name:str}", sync_to_thread=True)
    def file(self, name: FromPath[str]) -> Response[bytes]:
        """Return one of its files, from the package that carries them."""
        if name not in _FILES:
            raise NotFoundException
        content = files("swagger_ui").joinpath("static", name).read_bytes()
        return Response(content, media_type=_FILES[name], headers={"Cache-Control": "public, max-age=86400"})


def whole_description(app: Litestar) -> bytes:
    """Return the description of all that the app serves. It is made when it is first asked for, which takes seconds."""
    with _building:
        if (found := app.state.get("description")) is None:
            found = app.state.description = described(app)
        whole: bytes = found
        return whole


def descriptions(app: Litestar) -> Mapping[str, bytes]:
    """Return the whole description, and each audience's by its name; those to whom the app serves nothing have none.

    They are made when they are first asked for.
    """
    whole = whole_description(app)
    with _building:
        if (found := app.state.get("descriptions")) is None:
            decoded = msgspec.json.decode(whole)
            parts = {one.value: of_audience(decoded, one) for one in Audience}
            found = {
                _WHOLE: whole,
                **{name: msgspec.json.encode(part) for name, part in parts.items() if part["paths"]},
            }
            app.state.descriptions = found
        told: Mapping[str, bytes] = found
        return told


async def _description(request: Request[Any, Any, Any], name: str) -> Response[bytes]:
    content = (await asyncio.to_thread(descriptions, request.app)).get(name)
    if content is None:
        raise NotFoundException
    headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"', "Cache-Control": "no-cache"}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(b"", status_code=304, headers=headers)
    return Response(content, media_type="application/json", headers=headers)


async def _page(request: Request[Any, Any, Any], description: str) -> Response[str]:
    told = await asyncio.to_thread(descriptions, request.app)
    links = " ".join(f'<a href="/api/swagger/{name}">{name}</a>' for name in told if name != _WHOLE)
    page = _PAGE % {"links": links, "description": description}
    return Response(page, media_type=MediaType.HTML, headers={"Content-Security-Policy": _POLICY})
