"""The API's description: what the framework tells of the routes, and what our own tables tell of them besides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec
from litestar import Litestar, Response, Router
from litestar.exceptions import NotFoundException
from litestar.handlers import BaseRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, Contact, License, OpenAPIType, Schema, SecurityScheme, Tag
from litestar.plugins import OpenAPISchemaPlugin
from litestar.response import Stream
from litestar.routes import HTTPRoute
from litestar.typing import FieldDefinition

from cambist_web.auth import ADMIN_SCHEME, API_KEY_SCHEME, OPERATOR_SCHEME, SESSION_SCHEME, TRACKER_SCHEME
from cambist_web.csv_columns import columns_of
from cambist_web.errors import camel
from cambist_web.lists import items_of
from cambist_web.operation_ids import operation_id

from .audiences import describe_needs
from .errors import codes_of, error_answer
from .examples import answer_example, answered_by, body_example
from .fields import classes_in, describe_parameter, describe_schemas, doc, renamed, with_names
from .webhooks import webhooks

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


def _text(description: str, example: str) -> dict[str, Any]:
    return {"type": "string", "description": description, "examples": [example]}


def _object(description: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "description": description, "required": [*properties], "properties": properties}


_ERROR: dict[str, Any] = {
    "title": "Error",
    "description": "What every refusal and every failure is told by.",
    "type": "object",
    "required": ["success", "error", "code"],
    "properties": {
        "success": {"type": "boolean", "const": False, "description": "False: it went wrong.", "examples": [False]},
        "error": _text("A sentence for people.", "The request cannot be understood."),
        "code": _text("A name for programs.", "VALIDATION_ERROR"),
        "details": {
            "type": "array",
            "description": "There where single fields are at fault.",
            "items": _object(
                "What is wrong with one field.",
                field=_text("The field, as it was sent.", "amount"),
                message=_text("What is wrong with it.", "must be above zero"),
            ),
        },
        "rejected": {
            "type": "array",
            "description": "The rows of a batch of which every row was refused.",
            "items": _object(
                "A row that was refused.",
                row={"type": "integer", "description": "The row's number, from 0.", "examples": [0]},
                toAddress=_text("Where it was to go.", "nowhere"),
                amount=_text("The amount, a decimal number as text.", "1"),
                code=_text("A name for programs.", "INVALID_ADDRESS"),
                error=_text("Why it was refused.", "toAddress is no address of this chain"),
            ),
        },
    },
}


class DecimalNumbers(OpenAPISchemaPlugin):
    """Describes decimals as what they are in JSON here: percentages are numbers, and amounts are no Decimal."""

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        return field_definition.annotation is Decimal

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: object) -> Schema:  # noqa: ARG002  the framework's signature
        return Schema(type=OpenAPIType.NUMBER)


def described(app: Litestar) -> bytes:
    """Return the description as JSON, in the merchants' spelling and with the one shape of errors."""
    schema, handlers = app.openapi_schema.to_schema(), handlers_of(app)
    schemas = _plain(schema["components"]["schemas"]) | {"Error": _ERROR}
    bodies = classes_in(*(one.parsed_data_field.annotation for one in handlers.values() if one.parsed_data_field))
    answers = classes_in(*(kind for one in handlers.values() if (kind := answered_by(one)) is not Stream))
    describe_schemas(schemas, bodies | answers, bodies - answers)
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            _exemplify(operation, handlers[path, method])
            _describe(_camel_path(path), method, operation, handlers[path, method])
            describe_needs(operation, handlers[path, method].opt)
            _describe_repetition(operation, schemas)
    schema["paths"] = {_camel_path(path): _ordered(item) for path, item in schema["paths"].items()}
    if "/api/payment" in schema["paths"]:  # not at an address of operators' own
        schema["webhooks"], told = webhooks()
        schemas |= told
    names = renamed(schemas)
    schema["components"]["schemas"] = {names.get(name, name): one for name, one in schemas.items()}
    return msgspec.json.encode(with_names(schema, names))


_METHODS = ("get", "head", "post", "put", "patch", "delete")


def _ordered(item: dict[str, Any]) -> dict[str, Any]:
    return {method: item[method] for method in _METHODS if method in item}


def _plain(schema: Any) -> Any:  # noqa: ANN401  any part of a description
    """Return the schema without choices among one kind alone: what the framework makes of a field that may be unset.

    Of the dots in ``tuple[X, ...]`` it makes an item of any kind, which is none.
    """
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    for choice in ("oneOf", "allOf"):
        kinds = [kind for kind in schema.get(choice, ()) if kind]
        if len(kinds) == 1:
            schema = {name: part for name, part in schema.items() if name != choice} | kinds[0]
    if isinstance(pattern := schema.get("pattern"), str):
        schema = schema | {"pattern": re.sub(r"\\Z$", "$", pattern)}  # JSON Schema's are JavaScript's, which has no \Z
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
    kind = answered_by(handler)
    answer = answer_example(kind)
    for status, response in operation["responses"].items():
        for content in response.get("content", {}).values() if status[0] == "2" else ():
            content["example"] = answer
            if isinstance(kind, type) and issubclass(kind, Stream):
                content["schema"] = {"type": "string"}
                response["description"] = "Written as it is read."
            else:
                response["description"] = doc(kind).partition("\n")[0]
        if not response.get("headers", True):
            del response["headers"]
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
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _plain(parameter["schema"])
        describe_parameter(operation["operationId"], parameter)
    if (body := operation.get("requestBody")) is not None:
        variants = body["content"]["application/json"]["schema"].get("oneOf", ())
        body["required"] = {"type": "null"} not in variants
    operation["responses"].pop("400", None)
    for status, codes in sorted(codes_of(path, method, operation, handler.opt).items()):
        operation["responses"][str(status)] = error_answer(status, codes)


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


def openapi_config(base_url: str) -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Cambist",
        version=API_VERSION,
        description=DESCRIPTION,
        contact=Contact(name="Whoever runs this gateway", url=base_url),
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
