"""What answers, bodies and parameters of several endpoints have in common."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args

from litestar import Response
from litestar.params import HeaderParameter, QueryParameter
from litestar.serialization import default_serializer
from litestar.types import Serializer
from msgspec import UNSET, Struct, UnsetType, structs, to_builtins

from cambist.domain.moments import moment
from cambist.services.paging import LIMIT_MAX, PAGE_MAX


class Answer(Struct, frozen=True, kw_only=True, rename="camel"):
    """The beginning of every successful answer."""

    success: Literal[True] = True


class MadeAnswer(Answer, frozen=True, kw_only=True):
    """The answer to a request that is carried out once per idempotency key."""

    idempotent: bool | UnsetType = UNSET


class CursorPageAnswer(Answer, frozen=True, kw_only=True):
    """One page of a list; `nextCursor` is null on the last one. `total` counts all pages, up to 10,000.

    `totalIsExact` is false where there may be more than `total`. A page may then have fewer items than `limit`, or
    none, and others behind it all the same.
    """

    page: int
    limit: int
    total: int
    total_is_exact: bool = True
    next_cursor: str | None


class Body(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of a request: what is not known is refused, since it was meant to do something."""


Page = Annotated[int, QueryParameter(ge=1, le=PAGE_MAX)]
Limit = Annotated[int, QueryParameter(ge=1, le=LIMIT_MAX)]
Cursor = Annotated[
    str | None,
    QueryParameter(
        description="The `nextCursor` of the page before; pages are counted from there.", min_length=1, max_length=2_000
    ),
]
Filter = Annotated[str | None, QueryParameter(max_length=64)]
NonEmptyFilter = Annotated[str | None, QueryParameter(min_length=1, max_length=64)]

Since = Annotated[
    str | None, QueryParameter(name="from", description="A date or time; included.", min_length=1, max_length=40)
]
Until = Annotated[
    str | None, QueryParameter(name="to", description="A date or time; not included.", min_length=1, max_length=40)
]

Content = TypeVar("Content")
MadeAnswerT = TypeVar("MadeAnswerT", bound=MadeAnswer)


class JsonAnswer(Response[Content]):
    """An answer whose times are all in UTC with milliseconds: JSON's encoder writes as many digits as there are."""

    def render(self, content: Any, media_type: str, enc_hook: Serializer = default_serializer) -> bytes:  # noqa: ANN401  the framework's signature
        return super().render(with_moments(content), media_type, enc_hook)


_PLAIN = frozenset({str, int, bool, float, Decimal, NoneType, UnsetType})


@cache
def _walked(kind: type[Struct]) -> tuple[str, ...]:
    """Return the fields that can hold times, or others that do."""
    return tuple(
        field.name
        for field in structs.fields(kind)
        if field.type not in _PLAIN and not (args := get_args(field.type), _PLAIN.issuperset(args) and args)[1]
    )


def with_moments(value: Any) -> Any:  # noqa: ANN401  any part of an answer
    """Return an answer with its times as texts. What merchants sent is left as it is."""
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, Struct):
        changed = {}
        for name in _walked(type(value)):
            before = getattr(value, name)
            if (after := with_moments(before)) is not before:
                changed[name] = after
        return structs.replace(value, **changed) if changed else value
    if isinstance(value, (list, tuple)):
        return [with_moments(item) for item in value]
    return value


def made_response(answer: MadeAnswerT, *, replayed: bool) -> Response[MadeAnswerT]:
    """Answer 201, or for a repetition 200 with `idempotent`."""
    if replayed:
        return JsonAnswer(structs.replace(answer, idempotent=True), status_code=200)
    return JsonAnswer(answer, status_code=201)


def sent(body: Struct) -> dict[str, object]:
    """Return what a request sent, by its names in JSON, for the audit log. Not for bodies that hold secrets.

    Left out is the ``version``: it says what was read, and not what was decided.
    """
    found: dict[str, object] = {}
    for attribute, name in zip(body.__struct_fields__, body.__struct_encode_fields__, strict=True):
        value = getattr(body, attribute)
        if isinstance(value, Decimal):
            found[name] = str(value)
        elif value is not UNSET and attribute != "version":
            found[name] = to_builtins(value)
    return found


def idempotency_header(description: str) -> HeaderParameter:
    return HeaderParameter(name="Idempotency-Key", description=description)
