"""Reads requests: bodies straight from bytes into the handler's Struct, strictly, with nothing hidden in text.

What is wrong is said by the name of its field.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any, get_args

import msgspec
from litestar import Litestar, Request
from litestar.connection import ASGIConnection
from litestar.connection.base import AuthT, StateT, UserT
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp, Empty, Receive, Scope, Send

from cambist.domain.text import hidden_in
from cambist.services.errors import FieldProblem, InvalidError, NotFoundError, check_text
from cambist.services.metadata import Path, check_shown, exact, written

from .choices import values_at
from .errors import UnsupportedMediaTypeError, plain_problem

_AT = " - at `$"
_NAMED = re.compile(r"Object (missing required|contains unknown) field `(.*?)`", re.DOTALL)


KEPT_INSIDE = ("/api/admin", "/operator", "/metrics")
"""What operators keep from the public at a proxy, which may know these paths by their letters alone."""

LARGE_BYTES = 64 * 1024
"""From here on a body is decoded in a thread: what may hide in it takes long to look for."""

IDEMPOTENCY_KEY = "Idempotency-Key"

AS_IT_IS = "identity"
"""How a body must be encoded, where a request says so: what is compressed is read by nobody here."""

JUDGED_ELSEWHERE = ("password", "amount", "address", "threshold")
OF_ROWS = ("addresses", "destinations")
"""Rows of a bulk request: what is wrong with one of them is said of it alone, by who reads it."""


@cache
def _decoder(body_type: object) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(body_type, float_hook=exact)


_plain = msgspec.json.Decoder(float_hook=lambda _: 0.0)
"""Reads a body for its texts alone: a number may be larger than any float."""


class JsonRequest(Request[UserT, AuthT, StateT]):
    """A request whose body is JSON or nothing, decoded once, into what its handler declares as ``data``."""

    async def json(self) -> Any:  # noqa: ANN401  it is what the handler says it is
        """Return the body as the handler's type. Raises InvalidError, naming the field where there is one."""
        if self._json is Empty:
            refuse_two_keys(self)
            body = await self.body()
            if len(body) > LARGE_BYTES:
                self._json = await asyncio.to_thread(self._decode, body)
            else:
                self._json = self._decode(body)
        return self._json

    def _decode(self, body: bytes) -> object:
        field = self.route_handler.parsed_data_field
        if self.content_type[0] != "application/json" or self.headers.get("content-encoding", AS_IT_IS) != AS_IT_IS:
            raise UnsupportedMediaTypeError
        return decode_json(body, field.annotation if field is not None else object)


def refuse_two_keys(connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """Refuse a request with several idempotency keys: whatever read it before us may have judged another one."""
    if len(connection.headers.getall(IDEMPOTENCY_KEY, ())) > 1:
        raise InvalidError.field(IDEMPOTENCY_KEY, "is there more than once")


def decode_json(body: bytes, body_type: object) -> object:
    """Decode a body strictly. Raises InvalidError for what is no JSON, of another shape, says twice, or hides text."""
    try:
        return _decoded(body, body_type)
    except msgspec.ValidationError as error:
        raise _problem(str(error), body_type) from None
    # Each look at a body may be the one that finds it nested too deep.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidError("INVALID_JSON", "The body is not valid JSON.") from None


def _decoded(body: bytes, body_type: object) -> object:
    value: object = _decoder(body_type).decode(body)
    _refuse_quoted_numbers(value, body, body_type)
    plain = _plain.decode(body)
    # What is plain ASCII without an escape shows what it is. Most bodies are, and need no second look.
    if b"\\" in body or b"\x7f" in body or not body.isascii():
        refuse_hidden(plain, [])
    _refuse_twins(plain, body)
    return value


class _Object(list[tuple[str, Any]]):
    """An object's fields as they stand in a body, with all that have the same name."""


_fields_as_written = json.JSONDecoder(object_pairs_hook=_Object, parse_int=str, parse_float=str)


_ESCAPE = re.compile(rb"\\.", re.DOTALL)


def _refuse_twins(plain: object, body: bytes) -> None:
    """Refuse an object with a field twice: whatever read it before us may have judged the first, and the last counts.

    ``plain`` is the body decoded. Written again, it has fewer texts than the body where a field was dropped: that is
    seen at once, as every body comes by.
    """
    if _quotes(msgspec.json.encode(plain)) == _quotes(body):
        return
    path: Path = []
    if _has_twins(_fields_as_written.decode(body.decode()), path):
        raise InvalidError.field(written(path) or "body", "is there more than once")


def _quotes(text: bytes) -> int:
    """Count the quotes around a JSON's texts: those inside of them stand behind a backslash."""
    return (_ESCAPE.sub(b"", text) if b"\\" in text else text).count(b'"')


def _has_twins(value: object, path: Path) -> bool:
    """Say whether a field is there twice, and leave where in ``path``."""
    steps = value if isinstance(value, _Object) else enumerate(value) if isinstance(value, list) else ()
    seen = set()
    for step, item in steps:
        path.append(step)
        if step in seen or _has_twins(item, path):
            return True
        seen.add(step)
        path.pop()
    return False


@cache
def _number_fields(body_type: object) -> tuple[tuple[str, str], ...]:
    """Return the attributes that can be a Decimal, each with its name in JSON."""
    if not (isinstance(body_type, type) and issubclass(body_type, msgspec.Struct)):
        return ()
    found = msgspec.structs.fields(body_type)
    return tuple((field.name, field.encode_name) for field in found if Decimal in {field.type, *get_args(field.type)})


def _refuse_quoted_numbers(value: object, body: bytes, body_type: object) -> None:
    """Refuse a text where a number belongs: a Decimal is read from one, in any script's digits and with underscores."""
    for attribute, name in _number_fields(body_type):
        if isinstance(getattr(value, attribute), Decimal):
            written = msgspec.json.decode(body, type=dict[str, msgspec.Raw])[name]
            if bytes(written).startswith(b'"'):
                raise InvalidError.field(name, "must be a number")


def refuse_hidden(value: object, path: Path) -> None:
    """Raise InvalidError where a string anywhere in the value, or the name of a field, holds what nobody sees.

    A merchant's own metadata may have lines. Passwords are shown to nobody, amounts and addresses have readers of their
    own, which say better what is wrong, and so have rows of bulk requests, each of which is refused alone: these are
    only refused NUL. ``path`` is written out where something is refused alone, as in ``check_shown()``.
    """
    of_row = len(path) > 1 and path[0] in OF_ROWS and isinstance(path[1], int)
    if isinstance(value, str):
        name = path[-1] if path else ""
        if of_row or (isinstance(name, str) and name.lower().endswith(JUDGED_ELSEWHERE)):
            value = "\0" if "\0" in value else ""
        if hidden_in(value) is not None:
            check_text(value, written(path) or "body")
    elif isinstance(value, dict):
        for name, item in value.items():
            if (not of_row or "\0" in name) and hidden_in(name) is not None:
                check_text(name, written(path) or "body")
            path.append(name)
            if name == "metadata" and not of_row and not isinstance(item, str):
                check_shown(item, path)
            else:
                refuse_hidden(item, path)
            path.pop()
    elif isinstance(value, list):
        for index, item in enumerate(value):
            path.append(index)
            refuse_hidden(item, path)
            path.pop()


def _problem(message: str, body_type: object) -> InvalidError:
    # From its end on, and by no expression that goes back: before it may stand a stranger's name, as long as a body.
    _, at, path = message.rpartition(_AT)
    path = path.removesuffix("`").removeprefix(".") if at and message.endswith("`") else ""
    named = _NAMED.match(message)
    if named is not None:
        path = f"{path}.{named[2]}" if path else named[2]
        words = "is required" if named[1].startswith("missing") else "is not a field that is known here"
    else:
        words = plain_problem(message, values_at(body_type, path))
    if not path:
        return InvalidError("VALIDATION_ERROR", f"The body {words}.", [FieldProblem("body", words)])
    return InvalidError.field(path, words)


class RefuseUnstorable(ASGIMiddleware):
    """Refuses text in path and query that is no UTF-8, or holds what nobody sees.

    Also a query with a parameter twice: a proxy may judge the first of them, and a handler read the last. And another
    spelling of what is kept inside, such as ``/api//admin``, which the framework would find all the same.

    No guard, because it comes before those, and because Litestar copies the handler for each guard of a request.
    """

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Let the request pass, or raise InvalidError and NotFoundError."""
        path: str = scope["path"]
        if path.startswith(KEPT_INSIDE):  # all at once, as every request comes by
            kept = next(one for one in KEPT_INSIDE if path.startswith(one))
            if not scope["raw_path"].startswith(kept.encode()):
                raise NotFoundError("ROUTE_NOT_FOUND", "There is nothing at this path.")
        if not _storable(path):
            raise InvalidError.field("path", "must be UTF-8 text with nothing hidden")
        if scope["query_string"]:
            seen = set()
            for name, value in ASGIConnection[Any, Any, Any, Any](scope).query_params.multi_items():
                if not _storable(name) or not _storable(value):
                    raise InvalidError.field("query", "must be UTF-8 text with nothing hidden")
                if name in seen:
                    raise InvalidError.field(name, "is there more than once")
                seen.add(name)
        await next_app(scope, receive, send)


def _storable(text: str) -> bool:
    return hidden_in(text) is None


def query_names(app: Litestar) -> Mapping[tuple[str, str], frozenset[str]]:
    """Return the query parameters that each route of the API takes, by the route's template and method."""
    return {
        (route.path_format, method): frozenset(one.field_alias for one in model.expected_query_params)
        for route in app.routes
        if isinstance(route, HTTPRoute) and route.path.startswith("/api/") and not route.path.startswith("/api/swagger")
        for method, (_, model) in route.route_handler_map.items()
    }


async def refuse_unknown_parameters(request: Request[Any, Any, Any]) -> None:
    """Refuse query parameters that nobody reads: they were meant to do something. `RefuseUnstorable` refuses twins.

    A hook, which runs when it is known who asks. Raises InvalidError.
    """
    if not request.scope["query_string"]:
        return
    known = request.app.state.query_names.get((request.scope["path_template"], request.method))
    if known is None:
        return
    for name in request.query_params:
        if name not in known:
            raise InvalidError.field(name, "is not a query parameter that is known here")
