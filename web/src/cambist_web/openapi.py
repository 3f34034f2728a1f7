"""The API's description at ``/api/openapi.json``, and Swagger UI at ``/api/swagger``, served from a package.

Nothing is loaded from elsewhere, and no script or style is inline, so the pages work offline and under a strict
Content-Security-Policy.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from decimal import Decimal
from importlib.resources import files
from typing import Any

import msgspec
from litestar import Controller, Litestar, MediaType, Request, Response, Router, get
from litestar.exceptions import NotFoundException
from litestar.handlers import BaseRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, License, OpenAPIType, Schema, SecurityScheme, Tag
from litestar.params import FromPath
from litestar.plugins import OpenAPISchemaPlugin
from litestar.routes import HTTPRoute
from litestar.typing import FieldDefinition

from .auth import ADMIN_SCHEME, API_KEY_SCHEME, OPERATOR_SCHEME, SESSION_SCHEME, TRACKER_SCHEME
from .csv_columns import columns_of
from .errors import camel
from .lists import items_of
from .openapi_audiences import Audience, describe_needs, of_audience
from .openapi_errors import codes_of, error_answer
from .openapi_examples import answer_example, answered_by, body_example
from .openapi_webhooks import webhooks
from .operation_ids import operation_id

API_VERSION = "1.0.0"
"""The specification's, section 9."""

DESCRIPTION = """\
Create a payment, send the customer to its checkout page, and learn by signed webhooks what became of it.

Amounts are decimal strings, times are ISO 8601 in UTC. Every error is
`{"success": false, "error": "<sentence>", "code": "<NAME>"}`, with `details` where single fields are at fault.
"""

TAGS = (
    ("Payments", "What customers pay."),
    ("Accounts", "End users with permanent addresses."),
    ("Quotes", "What a payment would cost."),
    ("Wallet", "What merchants have."),
    ("Exchanges", "Swaps and bridges of what merchants have."),
    ("Resolutions", "Money that came too late, too much or wrong."),
    ("Withdrawals", "Money that merchants take out in person."),
    ("Usage", "What using the gateway costs."),
    ("Discovery", "What can be paid with."),
    ("Sandbox", "Simulated chains, for projects that are not live."),
    ("Sessions", "Merchants in person: registering and signing in."),
    ("Team", "The people who sign in for a merchant, and what each may do."),
    ("Streams", "What changes, as it happens, for pages."),
    ("Projects", "A merchant's shops."),
    ("API keys", "What programs authenticate with."),
    ("Webhooks", "How merchants are told."),
    ("Trackers", "Addresses that merchants watch, and where they are told of what moves there."),
    ("Operator", "For whoever runs the gateway."),
    ("Operator sessions", "Operators in person: signing in, always with a second factor."),
    ("Operators", "The people who run the gateway, and what each may do."),
    ("Operation", "For load balancers and monitoring."),
)

_ERROR: dict[str, Any] = {
    "title": "Error",
    "type": "object",
    "required": ["success", "error", "code"],
    "properties": {
        "success": {"const": False},
        "error": {"type": "string", "description": "A sentence for people."},
        "code": {"type": "string", "description": "A name for programs.", "examples": ["VALIDATION_ERROR"]},
        "details": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
        "rejected": {
            "type": "array",
            "description": "The rows of a batch of which every row was refused.",
            "items": {
                "type": "object",
                "required": ["row", "toAddress", "amount", "code", "error"],
                "properties": {
                    "row": {"type": "integer"},
                    "toAddress": {"type": "string"},
                    "amount": {"type": "string"},
                    "code": {"type": "string"},
                    "error": {"type": "string"},
                },
            },
        },
    },
}

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


class DecimalNumbers(OpenAPISchemaPlugin):
    """Describes decimals as what they are in JSON here: percentages are numbers, and amounts are no Decimal."""

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        return field_definition.annotation is Decimal

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: object) -> Schema:  # noqa: ARG002  the framework's signature
        return Schema(type=OpenAPIType.NUMBER)


class Swagger(Controller):
    """The description, for programs and for people."""

    path = "/api"
    include_in_schema = False

    @get("/openapi.json", sync_to_thread=True)
    def description(self, request: Request[Any, Any, Any]) -> Response[bytes]:
        """Return the description of the API."""
        return Response(described(request.app), media_type="application/json")

    @get("/swagger", media_type=MediaType.HTML, sync_to_thread=True)
    def page(self, request: Request[Any, Any, Any]) -> Response[str]:
        """Show Swagger UI."""
        return _page("/api/openapi.json", request.app)

    @get([f"/openapi/{one.value}.json" for one in Audience])
    async def description_for_one(self, request: Request[Any, Any, Any]) -> Response[bytes]:
        """Return what one audience may call; 404 where this address serves them nothing."""
        audience = Audience(request.url.path.rpartition("/")[2].removesuffix(".json"))
        return Response(await asyncio.to_thread(_described_for, request.app, audience), media_type="application/json")

    @get([f"/swagger/{one.value}" for one in Audience], media_type=MediaType.HTML)
    async def page_for_one(self, request: Request[Any, Any, Any]) -> Response[str]:
        """Show Swagger UI with what one audience may call."""
        audience = Audience(request.url.path.rpartition("/")[2])
        await asyncio.to_thread(_described_for, request.app, audience)
        return await asyncio.to_thread(_page, f"/api/openapi/{audience.value}.json", request.app)

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


def _described_for(app: Litestar, audience: Audience) -> bytes:
    """Return the description for an audience. Raises NotFoundException where the app serves them nothing."""
    found = of_audience(msgspec.json.decode(described(app)), audience)
    if not found["paths"]:
        raise NotFoundException
    return msgspec.json.encode(found)


def _page(description: str, app: Litestar) -> Response[str]:
    whole = msgspec.json.decode(described(app))
    served = [one.value for one in Audience if of_audience(whole, one)["paths"]]
    links = " ".join(f'<a href="/api/swagger/{name}">{name}</a>' for name in served)
    page = _PAGE % {"links": links, "description": description}
    return Response(page, media_type=MediaType.HTML, headers={"Content-Security-Policy": _POLICY})


def described(app: Litestar) -> bytes:
    """Return the description as JSON, in the merchants' spelling and with the one shape of errors."""
    schema, handlers = app.openapi_schema.to_schema(), handlers_of(app)
    schema["components"]["schemas"] = _plain(schema["components"]["schemas"])
    schema["components"]["schemas"]["Error"] = _ERROR
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            _exemplify(operation, handlers[path, method])
            _describe(_camel_path(path), method, operation, handlers[path, method])
            describe_needs(operation, handlers[path, method].opt)
            _describe_repetition(operation, schema["components"]["schemas"])
    schema["paths"] = {_camel_path(path): item for path, item in schema["paths"].items()}
    if "/api/payment" in schema["paths"]:  # not at an address of operators' own
        schema["webhooks"], schemas = webhooks()
        schema["components"]["schemas"] |= schemas
    return msgspec.json.encode(schema)


def _plain(schema: Any) -> Any:  # noqa: ANN401  any part of a description
    """Return the schema without choices among one kind alone: what the framework makes of a field that may be unset.

    Of the dots in ``tuple[X, ...]`` it makes an item of any kind, which is none.
    """
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kinds = [kind for kind in schema.get("oneOf", ()) if kind]
    if len(kinds) == 1:
        schema = {name: part for name, part in schema.items() if name != "oneOf"} | kinds[0]
    return {name: _plain(part) for name, part in schema.items()}


def handlers_of(app: Litestar) -> Mapping[tuple[str, str], BaseRouteHandler]:
    """Return the handler of every operation that is described, by its path's template and its method."""
    return {
        (route.path_format, method.lower()): handler
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for method, (handler, _) in route.route_handler_map.items()
        if method not in {"HEAD", "OPTIONS"} and handler.resolve_include_in_schema()
    }


def _exemplify(operation: dict[str, Any], handler: BaseRouteHandler) -> None:
    """Add an example of the body and of the answer when all went well."""
    if (data := handler.parsed_data_field) is not None:
        operation["requestBody"]["content"]["application/json"]["example"] = body_example(data.annotation)
    answer = answer_example(answered_by(handler))
    for status, response in operation["responses"].items():
        for content in response.get("content", {}).values() if status[0] == "2" else ():
            content["example"] = answer
    if any(one["name"] == "format" for one in operation.get("parameters", ())):
        heading = ",".join(column.name for column in columns_of(items_of(answered_by(handler))[1]))
        operation["responses"]["200"]["content"]["text/csv"] = {"schema": {"type": "string"}, "example": heading}


def _describe(path: str, method: str, operation: dict[str, Any], handler: BaseRouteHandler) -> None:
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            parameter["name"] = camel(parameter["name"])
    told = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "path"}
    for name in set(re.findall(r"\{(\w+)\}", path)) - told:  # a guard alone looks at it
        one = {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        operation.setdefault("parameters", []).insert(0, one)
    if (body := operation.get("requestBody")) is not None:
        variants = body["content"]["application/json"]["schema"].get("oneOf", ())
        body["required"] = {"type": "null"} not in variants
    operation["responses"].pop("400", None)
    for status, codes in sorted(codes_of(path, method, operation, handler.opt).items()):
        operation["responses"][str(status)] = error_answer(status, codes)
    operation["responses"]["default"] = {
        "description": "What else went wrong.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }


def _describe_repetition(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Add the answer to a repetition, which is the first one's but for its status and `idempotent`."""
    made = operation["responses"].get("201")
    content = {} if made is None else made.get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    if "idempotent" in schemas.get(name, {}).get("properties", {}):
        again = {**content, "example": content["example"] | {"idempotent": True}}
        operation["responses"]["200"] = {
            **made,
            "description": "It was made before: nothing happened now.",
            "content": {"application/json": again},
        }


def _camel_path(path: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: "{" + camel(found[1]) + "}", path)


async def _not_there(_: Response[Any]) -> Response[Any]:
    raise NotFoundException


def openapi_config() -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Cambist",
        version=API_VERSION,
        description=DESCRIPTION,
        license=License(name="MIT", identifier="MIT"),
        use_handler_docstrings=True,
        operation_id_creator=operation_id,
        tags=[Tag(name=name, description=description) for name, description in TAGS],
        # The framework's own pages, of which we need none, answer as if they were not there.
        openapi_router=Router(
            path="/api/openapi", route_handlers=[], include_in_schema=False, after_request=_not_there
        ),
        render_plugins=[JsonRenderPlugin()],
        components=Components(
            security_schemes={
                API_KEY_SCHEME: SecurityScheme(
                    type="apiKey", name="X-Api-Key", security_scheme_in="header", description="A project's API key."
                ),
                SESSION_SCHEME: SecurityScheme(
                    type="http", scheme="Bearer", bearer_format="JWT", description="A merchant's access token."
                ),
                ADMIN_SCHEME: SecurityScheme(
                    type="apiKey", name="X-Admin-Key", security_scheme_in="header", description="The operator's key."
                ),
                OPERATOR_SCHEME: SecurityScheme(
                    type="http", scheme="Bearer", bearer_format="JWT", description="An operator's access token."
                ),
                TRACKER_SCHEME: SecurityScheme(
                    type="apiKey", name="X-Auth-Token", security_scheme_in="header", description="A tracker's token."
                ),
            }
        ),
    )
