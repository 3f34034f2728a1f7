"""What every answer and every body has in common."""

from __future__ import annotations

from typing import Annotated, TypeVar

from litestar import Response
from msgspec import UNSET, Meta, Struct, UnsetType, structs


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


Name = Annotated[str, Meta(min_length=1, max_length=100)]

MadeAnswerT = TypeVar("MadeAnswerT", bound=MadeAnswer)


def made_response(answer: MadeAnswerT, *, replayed: bool) -> Response[MadeAnswerT]:
    """Answer 201, or for a repetition 200 with `idempotent`."""
    if replayed:
        return Response(structs.replace(answer, idempotent=True), status_code=200)
    return Response(answer, status_code=201)
