"""What answers, bodies and parameters of several endpoints have in common."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, TypeVar

from litestar import Response
from litestar.params import HeaderParameter, QueryParameter
from msgspec import UNSET, Struct, UnsetType, structs, to_builtins

from cambist.services.paging import LIMIT_MAX, PAGE_MAX


class Answer(Struct, frozen=True, kw_only=True, rename="camel"):
    """The beginning of every successful answer."""

    success: bool = True


class MadeAnswer(Answer, frozen=True, kw_only=True):
    """The answer to a request that is carried out once per idempotency key."""

    idempotent: bool | UnsetType = UNSET


class PageAnswer(Answer, frozen=True, kw_only=True):
    """One page of a list, newest first. `total` counts all pages."""

    page: int
    limit: int
    total: int


class Body(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of a request: what is not known is refused, since it was meant to do something."""


Page = Annotated[int, QueryParameter(ge=1, le=PAGE_MAX)]
Limit = Annotated[int, QueryParameter(ge=1, le=LIMIT_MAX)]
Filter = Annotated[str | None, QueryParameter(max_length=64)]
NonEmptyFilter = Annotated[str | None, QueryParameter(min_length=1, max_length=64)]

MadeAnswerT = TypeVar("MadeAnswerT", bound=MadeAnswer)


def made_response(answer: MadeAnswerT, *, replayed: bool) -> Response[MadeAnswerT]:
    """Answer 201, or for a repetition 200 with `idempotent`."""
    if replayed:
        return Response(structs.replace(answer, idempotent=True), status_code=200)
    return Response(answer, status_code=201)


def sent(body: Struct) -> dict[str, object]:
    """Return what a request sent, by its names in JSON, for the audit log. Not for bodies that hold secrets."""
    found: dict[str, object] = {}
    for attribute, name in zip(body.__struct_fields__, body.__struct_encode_fields__, strict=True):
        value = getattr(body, attribute)
        if isinstance(value, Decimal):
            found[name] = str(value)
        elif value is not UNSET:
            found[name] = to_builtins(value)
    return found


def idempotency_header(description: str) -> HeaderParameter:
    return HeaderParameter(name="Idempotency-Key", description=description)
