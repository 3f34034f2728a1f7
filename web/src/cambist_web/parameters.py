"""Query and header parameters that several handlers take."""

from __future__ import annotations

from typing import Annotated

from litestar.params import HeaderParameter, QueryParameter

from cambist.services.paging import LIMIT_MAX, PAGE_MAX

Page = Annotated[int, QueryParameter(ge=1, le=PAGE_MAX)]
Limit = Annotated[int, QueryParameter(ge=1, le=LIMIT_MAX)]
Filter = Annotated[str | None, QueryParameter(max_length=64)]
NonEmptyFilter = Annotated[str | None, QueryParameter(min_length=1, max_length=64)]


def idempotency_header(description: str) -> HeaderParameter:
    """Return the header for something that is done once per key."""
    return HeaderParameter(name="Idempotency-Key", description=description)
