"""One row that must be there, and lists that are read page by page, newest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct
from sqlalchemy import func
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import InstrumentedAttribute

from cambist.db.models import Base
from cambist.db.structs import AnyRow, AnySelect

from .errors import NotFoundError

LIMIT = 25
LIMIT_MAX = 100
PAGE_MAX = 1_000_000
"""Keeps the offset within what PostgreSQL's bigint holds."""

Item = TypeVar("Item")


class Page(Struct, Generic[Item], frozen=True, kw_only=True):
    """One page of a list. ``total`` is how many items there are on all pages."""

    items: Sequence[Item]
    total: int


async def read_one(conn: AsyncConnection, statement: AnySelect, missing: NotFoundError) -> AnyRow:
    """Return the row that ``statement`` selects. Raises ``missing`` where there is none."""
    row = (await conn.execute(statement)).one_or_none()
    if row is None:
        raise missing
    return row


async def read_page(  # noqa: PLR0913  a list, and which part of it
    conn: AsyncConnection,
    statement: AnySelect,
    show: Callable[[AnyRow], Item],
    *,
    newest: InstrumentedAttribute[int],
    filters: Mapping[InstrumentedAttribute[Any], object | None],
    page: int,
    limit: int,
) -> Page[Item]:
    """Return one page of what ``statement`` selects. ``newest`` grows with time; a filter for None is no filter."""
    # What never reads a list need not import it: it takes half a second and 13 MB.
    from advanced_alchemy.filters import ComparisonFilter, LimitOffset, OrderBy  # noqa: PLC0415

    for column, wanted in filters.items():
        if wanted is not None:
            statement = ComparisonFilter(column, "eq", wanted).append_to_statement(statement, Base)
    total = await conn.execute(statement.with_only_columns(func.count(), maintain_column_froms=True))
    shown = OrderBy(newest, "desc").append_to_statement(statement, Base)
    shown = LimitOffset(limit, (page - 1) * limit).append_to_statement(shown, Base)
    return Page(items=[show(row) for row in await conn.execute(shown)], total=total.scalar_one())
