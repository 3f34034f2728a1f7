"""One row that must be there, and lists that are read page by page, newest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import InstrumentedAttribute

from cambist.db.models import Base
from cambist.db.structs import AnyRow, AnySelect

from .errors import InvalidError, NotFoundError

LIMIT = 25
LIMIT_MAX = 100
TOTAL_MAX = 10_000
"""Up to here a list's items are counted; that there are more is not worth the time that counting them takes."""
PAGE_MAX = 1_000_000
"""Keeps the offset within what PostgreSQL's bigint holds."""

Item = TypeVar("Item")


class Page(Struct, Generic[Item], frozen=True, kw_only=True):
    """One page of a list. ``total`` is how many items there are on all pages; ``TOTAL_MAX`` is that many or more."""

    items: Sequence[Item]
    total: int


FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MOMENT = datetime(9000, 1, 1, tzinfo=UTC)
"""Nothing is dated outside of these, and there is room around them to calculate with."""


def parse_moment(field: str, text: str | None) -> datetime | None:
    """Read a date or a time in ISO 8601, UTC where nothing else is said. Raises InvalidError."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidError.field(field, "must be a date or a time in ISO 8601, such as 2026-01-31") from None
    return min(max(moment, FIRST_MOMENT), LAST_MOMENT)


def check_period(since: datetime | None, until: datetime | None) -> None:
    """Refuse a time that ends before it begins. Raises InvalidError."""
    if since is not None and until is not None and since >= until:
        raise InvalidError.field("to", "must be later than from")


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
    counted = statement.with_only_columns(newest, maintain_column_froms=True).limit(TOTAL_MAX).subquery()
    total = await conn.execute(select(func.count()).select_from(counted))
    shown = OrderBy(newest, "desc").append_to_statement(statement, Base)
    shown = LimitOffset(limit, (page - 1) * limit).append_to_statement(shown, Base)
    return Page(items=[show(row) for row in await conn.execute(shown)], total=total.scalar_one())
