"""The one place where refusals become HTTP: every error has a status, a code and the same shape.

::

    {"success": false, "error": "<sentence>", "code": "<NAME>", "details": [{"field": ..., "message": ...}]}

Codes are listed in ``docs/merchants/errors.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeAlias

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.typing import FieldDefinition
from msgspec import UNSET, Struct, UnsetType

from cambist.db.engine import BusyError, had_no_room, has_committed, is_away, took_too_long
from cambist.services.audit.entries import Action
from cambist.services.errors import (
    ConflictError,
    FieldProblem,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    PaymentRequiredError,
    ServiceError,
    TooManyError,
    UnauthenticatedError,
    UnavailableError,
)
from cambist.services.payouts.batch_rows import BatchRejectedError, Rejected

from .choices import values_at
from .context import web_of
from .origin import Audit, origin_of

log = structlog.get_logger(__name__)

AnyRequest: TypeAlias = Request[Any, Any, Any]

STATUSES: Mapping[type[ServiceError], int] = {
    InvalidError: 400,
    UnauthenticatedError: 401,
    PaymentRequiredError: 402,
    ForbiddenError: 403,
    NotFoundError: 404,
    ConflictError: 409,
    TooManyError: 429,
    UnavailableError: 503,
}
"""Kinds of refusal and their HTTP status. A subclass has the status of its kind."""

HTTP_ERRORS: Mapping[int, tuple[str, str]] = {
    400: ("BAD_REQUEST", "The request cannot be understood."),
    401: ("UNAUTHENTICATED", "Credentials are missing or not valid."),
    403: ("FORBIDDEN", "This is not allowed."),
    404: ("ROUTE_NOT_FOUND", "There is nothing at this path."),
    405: ("METHOD_NOT_ALLOWED", "This path does not take this method."),
    408: ("REQUEST_TIMEOUT", "The body of the request did not arrive in time."),
    413: ("BODY_TOO_LARGE", "The body is larger than what is accepted here."),
    415: ("UNSUPPORTED_MEDIA_TYPE", "Bodies are JSON, and not compressed: send Content-Type: application/json."),
    429: ("RATE_LIMITED", "Too many requests."),
    503: ("UNAVAILABLE", "The service is not available right now."),
}
"""What the framework itself refuses, before any code of ours has seen the request."""


BUSY_RETRY_AFTER_S = 2
AWAY_RETRY_AFTER_S = 5
TOLD_EVERY_S = 10
"""How often the log is told that the database is busy or away, however many are turned away."""

_MISSING = re.compile(r"Missing required \w+ parameter '(.+?)' for path")


CHALLENGES: Mapping[str, str] = {
    "API_KEY_MISSING": "ApiKey",
    "API_KEY_INVALID": "ApiKey",
    "API_KEY_EXPIRED": "ApiKey",
    "ADMIN_KEY_INVALID": "AdminKey",
    "AUTH_TOKEN_MISSING": "AuthToken",
    "AUTH_TOKEN_INVALID": "AuthToken",
}
"""What a 401 asks for where that is no Bearer token. Only Bearer is a registered scheme: clients act on it."""


class ErrorBody(Struct, frozen=True, kw_only=True):
    """What every error answers. ``details`` is there where single fields were at fault, ``rejected`` for a batch."""

    success: bool
    error: str
    code: str
    details: tuple[FieldProblem, ...] | UnsetType = UNSET
    rejected: tuple[Rejected, ...] | UnsetType = UNSET


class UnsupportedMediaTypeError(HTTPException):
    """The body is not declared as JSON, or as compressed."""

    status_code = 415


class BodyTimeoutError(HTTPException):
    """The body did not arrive in time."""

    status_code = 408


class BodyCutError(HTTPException):
    """The body ended before its end: the client went away, or its chunks are none."""

    status_code = 400


def error_response(  # noqa: PLR0913, PLR0917  what an error can say
    status: int,
    code: str,
    message: str,
    details: tuple[FieldProblem, ...] = (),
    headers: Mapping[str, str] | None = None,
    rejected: tuple[Rejected, ...] = (),
) -> Response[ErrorBody]:
    body = ErrorBody(success=False, error=message, code=code, details=details or UNSET, rejected=rejected or UNSET)
    return Response(body, status_code=status, headers=headers or {}, media_type="application/json")


def status_of(error: ServiceError) -> int:
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


_NO_CREDENTIAL = frozenset({"API_KEY_MISSING", "SESSION_REQUIRED", "AUTH_TOKEN_MISSING"})
"""Who shows nothing is no intruder."""
_OF_SIGN_IN = frozenset({"INVALID_CREDENTIALS", "TWO_FACTOR_NOT_ENROLLED", "TWO_FACTOR_REQUIRED", "TWO_FACTOR_INVALID"})
_OF_CREDENTIALS = frozenset({"RESET_TOKEN_INVALID", "PASSWORD_INVALID", "TWO_FACTOR_INVALID", "TOO_MANY_CODES"})


def refused_action(error: ServiceError) -> Action | None:
    """Return what the audit log calls this refusal, or None where it is none that it tells of."""
    if isinstance(error, UnauthenticatedError):
        if error.code in _NO_CREDENTIAL:
            return None
        return Action.SIGN_IN_REFUSED if error.code in _OF_SIGN_IN else Action.CREDENTIAL_REFUSED
    if error.code in _OF_CREDENTIALS:
        return Action.CREDENTIAL_REFUSED
    if error.code == "STEP_UP_REQUIRED":
        # Every page asks so before it asks for the code: among what was refused, it would hide what nobody may.
        return Action.CODE_ASKED
    if isinstance(error, ForbiddenError):
        return Action.ACCESS_REFUSED
    return Action.REQUESTS_LIMITED if isinstance(error, TooManyError) else None


def on_service_error(request: AnyRequest, error: ServiceError) -> Response[ErrorBody]:
    headers = {}
    action = refused_action(error)
    if action is not None:
        email = None if action is Action.REQUESTS_LIMITED else request.state.get("claimed_email")
        people = request.state.get("claimed_kind") if action is Action.SIGN_IN_REFUSED else None
        Audit(web_of(request.app), origin_of(request)).count(action, code=error.code, email=email, people=people)
    if isinstance(error, TooManyError):
        headers["Retry-After"] = str(error.retry_after_s)
    if error.code == "TOO_MANY_UNFINISHED":
        headers["Connection"] = "close"
    if isinstance(error, UnauthenticatedError):
        headers["WWW-Authenticate"] = CHALLENGES.get(error.code, "Bearer")
    rejected = error.rejected if isinstance(error, BatchRejectedError) else ()
    return error_response(status_of(error), error.code, error.message, error.details, headers, rejected)


def on_http_error(request: AnyRequest, error: HTTPException) -> Response[ErrorBody]:
    if isinstance(error, ValidationException):
        return _on_parameters(request, error)
    if error.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR and error.status_code not in HTTP_ERRORS:
        return on_unexpected(request, error)
    status = error.status_code if error.status_code in HTTP_ERRORS else 400
    code, message = HTTP_ERRORS[status]
    headers = {name: value for name, value in (error.headers or {}).items() if name.lower() == "allow"}
    if isinstance(error, BodyTimeoutError | BodyCutError):
        # What is still to come of the body would be taken for the next request.
        headers["Connection"] = "close"
    return error_response(status, code, message, headers=headers)


def _on_parameters(request: AnyRequest, error: ValidationException) -> Response[ErrorBody]:
    """Answer bad path and query parameters, and say which."""
    problems = error.extra if isinstance(error.extra, list) else []
    known = _parameters_of(request.route_handler)

    def told(name: str, message: str) -> FieldProblem:
        found = known.get(name)
        sent = getattr(found.kwarg_definition, "name", None) if found is not None else None
        values = values_at(found.annotation, "") if found is not None else ()
        return FieldProblem(sent or camel(name), plain_problem(message, values))

    details = tuple(told(str(problem.get("key", "")), str(problem.get("message", ""))) for problem in problems)
    if any(problem.get("key") == "data" for problem in problems):
        # Bodies that are there have been decoded, or refused, before: this one is not there.
        return error_response(400, "INVALID_JSON", "A JSON body is required.")
    missing = _MISSING.match(error.detail)
    if missing is not None:
        details = (FieldProblem(missing[1], "is required"),)
    message = f"{details[0].field} {details[0].message}" if details else "A parameter is not valid."
    return error_response(400, "VALIDATION_ERROR", message, details)


def _parameters_of(handler: BaseRouteHandler) -> Mapping[str, FieldDefinition]:
    """Return what a handler takes, and what is read for it beforehand, by its name in the code."""
    found: dict[str, FieldDefinition] = {}
    for provider in handler.resolve_dependencies().values():
        found |= provider.parsed_fn_signature.parameters
    return found | handler.parsed_fn_signature.parameters


def on_busy(request: AnyRequest, _: BusyError) -> Response[ErrorBody]:
    """Answer who waited in vain for the database. Nobody's fault, so the audit log has no refusal of it."""
    _tell_now_and_then(request, "database_busy")
    if has_committed.get():
        message = (
            "The gateway became busy before this was finished. Look what is there, or repeat it with the same key."
        )
        return error_response(503, "UNAVAILABLE", message)
    message = "Too many requests wait for the database. Nothing was done; try again in seconds."
    return error_response(429, "BUSY", message, headers={"Retry-After": str(BUSY_RETRY_AFTER_S)})


def on_unexpected(request: AnyRequest, error: Exception) -> Response[ErrorBody]:
    """Answer a bug of ours: logged whole under an id, told without any detail."""
    if isinstance(error, HTTPException) and error.status_code in HTTP_ERRORS:
        return on_http_error(request, error)
    if took_too_long(error):
        return _on_too_slow(request)
    web = web_of(request.app)
    web.had_no_room = web.had_no_room or had_no_room(error)
    if is_away(error):
        return _on_away(request, error)
    request_id = web.ids.new("req")
    log.error(
        "request_failed",
        request_id=request_id,
        method=request.scope.get("method"),
        path=request.scope.get("path"),
        exc_info=error,
    )
    message = f"Something went wrong on our side. Please quote {request_id}."
    return error_response(500, "INTERNAL_ERROR", message, headers={"X-Request-Id": request_id})


def _on_too_slow(request: AnyRequest) -> Response[ErrorBody]:
    """Answer who asked for more than the database gives in one statement's time."""
    log.warning("statement_took_too_long", method=request.scope.get("method"), path=request.scope.get("path"))
    if has_committed.get():
        message = "This took too long and was given up before it was finished. Look what is there, then repeat it."
    else:
        message = "This took too long and was given up; nothing was done. Ask for less, or try again later."
    return error_response(503, "TOO_SLOW", message)


def _on_away(request: AnyRequest, error: Exception) -> Response[ErrorBody]:
    """Answer who asks while the database is away, full or read-only. It may have been lost within a commit."""
    _tell_now_and_then(request, "database_away", exc_info=error)
    message = "The gateway's database is not available right now. "
    if request.method in {"GET", "HEAD"}:
        message += "Try again in seconds."
    else:
        message += "This may have been done all the same. Look what is there, or repeat it with the same key."
    return error_response(503, "UNAVAILABLE", message, headers={"Retry-After": str(AWAY_RETRY_AFTER_S)})


def _tell_now_and_then(request: AnyRequest, event: str, **more: object) -> None:
    web = web_of(request.app)
    now = web.clock.monotonic()
    if now >= web.told_until.get(event, now):
        web.told_until[event] = now + TOLD_EVERY_S
        log.warning(event, method=request.scope.get("method"), path=request.scope.get("path"), **more)


def camel(name: str) -> str:
    """Return the name that merchants see: ``expires_in`` is ``expiresIn``."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


_PLAIN_TYPES = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


_LENGTH = re.compile(r" of length (<=|>=) ([0-9]+)")
_COUNTED = {"str": ("characters", "character"), "object": ("names", "name")}


def plain_problem(message: str, values: Sequence[str] = ()) -> str:
    """Turn the decoder's message into words that go on after a field's name, which may have these values alone."""
    head = message.split(" - at `", 1)[0]
    if head.startswith("Expected `"):
        wanted = head.removeprefix("Expected `").split("`", 1)
        if not wanted[1] or wanted[1].startswith(", got"):
            names = [_PLAIN_TYPES.get(name.strip(), name.strip()) for name in wanted[0].split("|")]
            return "must be " + " or ".join(names)
        if length := _LENGTH.fullmatch(wanted[1]):
            least_or_most, number = "most" if length[1] == "<=" else "least", int(length[2])
            many, one = _COUNTED.get(wanted[0], ("entries", "entry"))
            return f"must have at {least_or_most} {number} {one if number == 1 else many}"
        return "must be " + _PLAIN_TYPES.get(wanted[0], wanted[0]) + wanted[1].replace("`", "")
    if head.startswith("Invalid enum value"):
        return "must be one of " + ", ".join(values) if values else "has none of the values that it can have"
    return "is not valid: " + head[:1].lower() + head[1:].replace("`", "")
