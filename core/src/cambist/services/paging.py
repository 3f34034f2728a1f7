"""Lists that are read page by page, newest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

LIMIT = 25
LIMIT_MAX = 100
PAGE_MAX = 1_000_000
"""Keeps the offset within what PostgreSQL's bigint holds."""

Item = TypeVar("Item")


class Page(Struct, Generic[Item], frozen=True, kw_only=True):
    """One page of a list. ``total`` is how many items there are on all pages."""

    items: Sequence[Item]
    total: int


async def read_page(  # noqa: PLR0913  a statement in its parts
    conn: AsyncConnection,
    columns: str,
    source: str,
    filters: tuple[object, ...],
    show: Callable[[Row[Any]], Item],
    *,
    newest: str,
    page: int,
    limit: int,
) -> Page[Item]:
    """Return one page of ``SELECT columns source``. ``newest`` is the column that grows with time."""
    total = await conn.exec_driver_sql(f"SELECT count(*) {source}", filters)
    rows = await conn.exec_driver_sql(
        f"SELECT {columns} {source} ORDER BY {newest} DESC LIMIT ${len(filters) + 1} OFFSET ${len(filters) + 2}",
        (*filters, limit, (page - 1) * limit),
    )
    return Page(items=[show(row) for row in rows], total=total.scalar_one())
