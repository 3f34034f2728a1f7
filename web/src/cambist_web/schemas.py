"""What every answer and every body has in common."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Answer(Struct, frozen=True, kw_only=True, rename="camel"):
    """The beginning of every successful answer."""

    success: bool = True


class Body(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of a request: what is not known is refused, since it was meant to do something."""


Name = Annotated[str, Meta(min_length=1, max_length=100)]
