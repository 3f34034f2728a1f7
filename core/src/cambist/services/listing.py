"""Lists that grow without end, all read in one way: filtered, in an order that an index serves, part by part.

::

    _LIST = ListOf(Payment.id, Payment.created_at, indexed=[Payment.status])

    found = await read_list(conn, _SELECT, show, _LIST, part, own={Payment.project_pk: 7}, filters={...})

No part of a list reads more than a bounded number of rows, whatever it is asked for: a page by its number stands within
the first ``TOTAL_MAX`` items, items are counted up to there, and filters that no index has in the list's order look
through ``WINDOW`` rows at once. Counting for a file is the exception: see ``Part``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from msgspec import Struct
from sqlalchemy import ARRAY, ColumnElement, DateTime, bindparam, func, literal, literal_column, select, true, tuple_
from sqlalchemy import column as sql_column
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import InstrumentedAttribute

from cambist.db.models import Base
from cambist.db.structs import AnyRow, AnySelect, Column, one_of

from .errors import InvalidError
from .paging import LIMIT, TOTAL_MAX, Filters, Item, Place, check_period

if TYPE_CHECKING:
    from advanced_alchemy.filters import StatementFilter

WINDOW = 3_000
"""Rows that are looked through at once where filters have no index."""

Shown = TypeVar("Shown")
Owner: TypeAlias = Mapping[InstrumentedAttribute[Any], object]
_NOBODY: Owner = MappingProxyType({})
_NO_FILTERS: Filters = MappingProxyType({})

Condition: TypeAlias = "ColumnElement[bool] | StatementFilter"


class Sort(StrEnum):
    """The orders of a list that grows: by when its items were made, the newest or the oldest first."""

    NEWEST = "-createdAt"
    OLDEST = "createdAt"


class ListOf:
    """What a list is of: the table's primary key, and what its indexes serve.

    ``created_at`` is None where items are in the order of their keys, and cannot be asked for by time. ``indexed`` are
    the columns that an index has between the list's owner and its order; the first of them that is asked for counts.
    ``orders`` are further ones, by the names that they are asked for by, without a sign. ``window`` is how many rows
    are looked through at once where filters have no index.
    """

    def __init__(
        self,
        pk: InstrumentedAttribute[int],
        created_at: InstrumentedAttribute[datetime] | None = None,
        *,
        indexed: Sequence[InstrumentedAttribute[Any]] = (),
        orders: Mapping[str, InstrumentedAttribute[str] | InstrumentedAttribute[datetime]] = MappingProxyType({}),
        window: int = WINDOW,
    ) -> None:
        self.window = window
        self.pk, self.created_at, self.indexed = pk, created_at, indexed
        self._orders: dict[str, Column] = {"createdAt": pk if created_at is None else created_at, **orders}

    def by(self, sort: str) -> Column:
        """Return the column that a sort goes by. Raises KeyError for one that there is not."""
        return self._orders[sort.removeprefix("-")]


class Period(Struct, frozen=True):
    """When what is wanted was made: ``since`` is included, ``until`` is not."""

    since: datetime | None = None
    until: datetime | None = None


ALWAYS = Period()


class Part(Struct, frozen=True, kw_only=True):
    """The part of a list that is asked for: pages are counted from ``after``, else from its beginning.

    Items are counted up to ``count_max``, and with 0 not at all. Beyond ``TOTAL_MAX``, as for a file, those are counted
    that no window holds, too: all of the list may be looked through, and who asks for that bounds its time.
    """

    page: int = 1
    limit: int = LIMIT
    sort: str = Sort.NEWEST
    after: Place | None = None
    count_max: int = TOTAL_MAX


class Listed(Struct, Generic[Item], frozen=True, kw_only=True):
    """One part of a list. ``total`` is how many items there are in all; where it is not ``exact``, at least so many.

    ``last`` is where the list goes on, and None where it ends. There may be fewer items than were asked for, and
    others behind them nevertheless.
    """

    items: Sequence[Item]
    total: int
    exact: bool
    last: Place | None = None

    def shown_as(self, show: Callable[[Item], Shown]) -> Listed[Shown]:
        return Listed(items=[show(one) for one in self.items], total=self.total, exact=self.exact, last=self.last)


async def read_list(  # noqa: PLR0913  a list, and which part of it
    conn: AsyncConnection,
    statement: AnySelect,
    show: Callable[[AnyRow], Item],
    spec: ListOf,
    part: Part,
    *,
    own: Owner = _NOBODY,
    where: Sequence[ColumnElement[bool]] = (),
    filters: Filters = _NO_FILTERS,
    also: Sequence[ColumnElement[bool]] = (),
    period: Period = ALWAYS,
) -> Listed[Item]:
    """Return one part of what ``statement`` selects.

    ``own`` is whose list it is: the columns that an index begins with, in its order, and their values. ``where`` is
    what a partial index holds, or leaves a few rows. ``filters`` and ``also`` are what else is wanted, and ``period``
    when it was made. A filter is a value, or a tuple of some that will all do. Raises InvalidError for a page that is
    too deep, and for a time that ends before it begins.
    """
    check_depth(part)
    check_period(period.since, period.until)
    given = {column: value for column, value in filters.items() if value is not None}
    served = next((column for column in spec.indexed if column in given), None)
    values = given.pop(served) if served is not None else None
    order = _Order(spec, part.sort, own, served)
    rest = [*(_equal(column, value) for column, value in given.items()), *also, *_dated(spec, order, period)]
    rows = _Rows(statement, order, values, where, period)
    # What is counted is the same on every page: what the first window has.
    edge = await _edge(conn, rows, spec.window) if rest else None
    counted = rows.with_(rest, up_to=edge if part.count_max <= TOTAL_MAX else None)
    total, exact = await _total(conn, counted, edge, part.count_max)
    if edge is not None and part.after is not None:
        edge = await _edge(conn, rows.with_(behind=part.after), spec.window)
    most = 2 * spec.window if rest else None  # of the window, and of what came into it since its end was found
    shown = _shown(statement, rows.with_(rest, behind=part.after, up_to=edge), part, most)
    found = (await conn.execute(shown)).all()
    more, found = len(found) > part.limit, found[: part.limit]
    last = rows.order.place_of(found[-1]) if more else edge
    return Listed(items=[show(row) for row in found], total=total, exact=exact, last=last)


def check_depth(part: Part) -> None:
    """Refuse a page before which too much stands that would have to be read. Raises InvalidError."""
    if part.page * part.limit > TOTAL_MAX:
        raise InvalidError.field("page", "is too deep; go on from page to page by nextCursor")


def _dated(spec: ListOf, order: _Order, period: Period) -> Sequence[StatementFilter]:
    """Return the conditions on when rows were made, where these are not in that order."""
    column = spec.created_at
    if column is None or order.by is column:
        return []
    return [_compared(column, how, at) for how, at in (("ge", period.since), ("lt", period.until)) if at is not None]


def _equal(column: InstrumentedAttribute[Any], value: object) -> Condition:
    return one_of(column, value) if isinstance(value, tuple) else _compared(column, "eq", value)


def _compared(column: InstrumentedAttribute[Any], how: str, value: object) -> StatementFilter:
    # What never reads a list need not import it: it takes half a second and 13 MB.
    from advanced_alchemy.filters import ComparisonFilter  # noqa: PLC0415

    return ComparisonFilter(column, how, value)


_Compared: TypeAlias = Callable[[Any, Any], ColumnElement[bool]]
_LOOSELY: Mapping[object, _Compared] = {operator.lt: operator.le, operator.gt: operator.ge}


class _Order:
    """The order in which a list is read: by one column, and by the primary key where that is equal.

    Whose list it is comes before these, compared as one of an array, which PostgreSQL does not take for "always the
    same". Otherwise it would read another index that has the same order and everybody's rows, wherever it guesses that
    the owner has many of them: and an owner who has few would wait for all.
    """

    def __init__(self, spec: ListOf, sort: str, own: Owner, served: Column | None) -> None:
        self.by, self.pk, self._descending = spec.by(sort), spec.pk, sort.startswith("-")
        self._is_dated = self.by is spec.created_at
        self._is_moment = isinstance(self.by.type, DateTime)
        self._own, self.served = own, served
        self._last: list[Column] = [self.by] if self.by is self.pk else [self.by, self.pk]
        self.keys = [*own, *([] if served is None else [served]), *self._last]

    def within(self, value: object, period: Period) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions that leave one owner's rows of a time, with this value of the served filter."""
        for column, wanted in self._own.items():
            yield one_of(column, [wanted])
        if self.served is not None:
            is_column = isinstance(value, ColumnElement)
            yield self.served == func.any(postgresql.array([value])) if is_column else one_of(self.served, [value])
        if self._is_dated and period.since is not None:
            yield self.by >= period.since
        if self._is_dated and period.until is not None:
            yield self.by < period.until

    def between(self, behind: Place | None, up_to: Place | None) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions that rows stand behind one place, and up to another, where there is one.

        Of two places it is said of the first column alone, too: PostgreSQL can tell how many rows stand between two
        values of a column. Of those between two rows it guesses a quarter of all, and would read all that so many join.
        Of one place it knows, and takes what is said twice for two reasons to expect few: it would sort what there is.
        """
        after: _Compared = operator.lt if self._descending else operator.gt
        until: _Compared = operator.ge if self._descending else operator.le
        places = [(how, place) for how, place in ((after, behind), (until, up_to)) if place is not None]
        for how, place in places:
            values = [_moment(place.value) if self._is_moment else place.value, place.pk][-len(self._last) :]
            at = [literal(one, key.type) for one, key in zip(values, self._last, strict=True)]
            yield how(tuple_(*self._last), tuple_(*at))
            if len(places) > 1:
                yield _LOOSELY.get(how, how)(self._last[0], at[0])

    def sorted(self, statement: AnySelect, keys: Sequence[Column]) -> AnySelect:
        return statement.order_by(*(key.desc() if self._descending else key for key in keys))

    def place_of(self, row: AnyRow) -> Place:
        return Place(micros(row.list_value) if self._is_moment else row.list_value, row.list_pk)


class _Rows:
    """The rows of a list. What its statement joins from outside is not read where rows are only found or counted.

    Of several values of a filter, an index gives those of each in the list's order.
    """

    def __init__(  # noqa: PLR0913, PLR0917  what is found where
        self,
        statement: AnySelect,
        order: _Order,
        values: object,
        where: Sequence[Condition],
        period: Period,
        behind: Place | None = None,
        up_to: Place | None = None,
    ) -> None:
        self.order, self._statement, self._values = order, statement, values
        self._where, self._period, self._behind, self._up_to = where, period, behind, up_to

    def with_(
        self, more: Sequence[Condition] = (), *, behind: Place | None = None, up_to: Place | None = None
    ) -> _Rows:
        """Return those of the rows that this leaves."""
        where = [*self._where, *more]
        return _Rows(self._statement, self.order, self._values, where, self._period, behind, up_to)

    def first(self, count: int) -> AnySelect:
        """Return the statement of the first so many: ``list_value`` and ``list_pk``, which tell the place of each."""
        if not isinstance(self._values, tuple):
            return self._of(self._values).limit(_written(count))
        kind = cast("Column", self.order.served).type
        array = bindparam(None, list(self._values), type_=ARRAY(kind))
        values = func.unnest(array).table_valued(sql_column("value", kind), name="wanted").render_derived()
        each = self._of(values.c.value).limit(_written(count)).lateral("each")
        merged = select(each.c.list_value, each.c.list_pk).select_from(values.join(each, true()))
        return self.order.sorted(merged, [each.c.list_value, each.c.list_pk]).limit(_written(count))

    def _of(self, value: object) -> AnySelect:
        order = self.order
        rows = self._statement.with_only_columns(order.by.label("list_value"), order.pk.label("list_pk"))
        for one in (*order.within(value, self._period), *self._where):
            rows = rows.where(one) if isinstance(one, ColumnElement) else _apply(one, rows)
        return order.sorted(rows.where(*order.between(self._behind, self._up_to)), order.keys)


async def _edge(conn: AsyncConnection, rows: _Rows, window: int) -> Place | None:
    """Return the last row of the window that these begin with, None where it holds all of them."""
    found = (await conn.execute(_part(rows.first(window + 1), 2, window - 1))).all()
    return rows.order.place_of(found[0]) if len(found) > 1 else None


async def _total(conn: AsyncConnection, rows: _Rows, edge: Place | None, most: int) -> tuple[int, bool]:
    """Return how many rows there are, and whether these are all."""
    if most == 0:
        return 0, False
    counted = select(func.count()).select_from(rows.first(most + 1).subquery())
    total = (await conn.execute(counted)).scalar_one()
    return min(total, most), total <= most and (edge is None or most > TOTAL_MAX)


def _shown(statement: AnySelect, rows: _Rows, part: Part, most: int | None) -> AnySelect:
    """Return the statement of a page, and of one row more. What costs time to show is looked up for no others.

    ``most`` is how many rows there can be: told that it wants more, PostgreSQL would read all of what they join.
    """
    size, offset = part.limit + 1, (part.page - 1) * part.limit
    first = size + offset if most is None else min(size + offset, most)
    picked = _part(rows.first(first), size, offset).subquery("picked")
    keys = [picked.c.list_value, picked.c.list_pk]
    return rows.order.sorted(statement.add_columns(*keys).join(picked, picked.c.list_pk == rows.order.pk), keys)


def _apply(one: StatementFilter, rows: AnySelect) -> AnySelect:
    return one.append_to_statement(rows, Base)


def _part(rows: AnySelect, size: int, offset: int) -> AnySelect:
    from advanced_alchemy.filters import LimitOffset  # noqa: PLC0415  as above

    return LimitOffset(cast("int", _written(size)), cast("int", _written(offset))).append_to_statement(rows, Base)


def _written(number: int) -> ColumnElement[int]:
    # Part of the text: for a number that it cannot see, PostgreSQL might plan to sort everything.
    return literal_column(str(int(number)))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment: datetime) -> int:
    """Return a moment as the database keeps it: whole microseconds."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _moment(micros: object) -> datetime:
    return _EPOCH + timedelta(microseconds=cast("int", micros))
