"""What every list does with its query: opens the cursor, answers one part as JSON, or all of it as a file.

::

    @get("/", summary="List refunds", opt=needs("read"))
    async def list(
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        *,
        status: ... = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[RefundList]:
        query = asked.of(web, "refunds", actor.project_pk, sort=sort, filters=(status,))
        return await query.answer(RefundList, lambda conn, part: list_refunds(conn, ..., part))

``asked`` brings ``page``, ``limit``, ``cursor`` and ``format`` into the handler and into its description; ``period``
likewise ``from`` and ``to``.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast, get_args, get_origin

import msgspec
from litestar import Response
from litestar.params import QueryParameter
from litestar.response import Stream
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.bounded import bounded
from cambist.services.csv_lines import csv_lines
from cambist.services.errors import InvalidError, UnavailableError
from cambist.services.listing import Listed, Part, Period, Sort
from cambist.services.paging import LIMIT, Cursors, check_period, parse_moment

from .context import Web
from .csv_columns import columns_of
from .errors import AnyRequest
from .origin import origin_of
from .schemas import Cursor, CursorPageAnswer, JsonAnswer, Limit, Page, Since, Until

EXPORT_MAX = 200_000
"""Items of a file."""
BATCH = 500
"""Items that are read at once for a file."""

Format = Annotated[
    Literal["json", "csv"],
    QueryParameter(
        description="`csv` answers the whole list as a file, with its filters and its order, whatever the page."
    ),
]
TimeSort = Annotated[Sort, QueryParameter(description="By when they were made; `-` is the newest first.")]

AnswerT = TypeVar("AnswerT", bound=CursorPageAnswer)
Reads: TypeAlias = Callable[[AsyncConnection, Part], Awaitable[Listed[Any]]]


async def provide_period(since: Since = None, until: Until = None) -> Period:
    """Read ``from`` and ``to``. Raises InvalidError."""
    period = Period(parse_moment("from", since), parse_moment("to", until))
    check_period(period.since, period.until)
    return period


class Asked(Struct, frozen=True):
    """Which part of a list was asked for, and as what. ``who`` is whom files are counted for."""

    page: int
    limit: int
    cursor: str | None
    format: str
    who: str = ""

    def of(self, web: Web, name: str, *owner: object, sort: str = Sort.NEWEST, filters: object = ()) -> Query:
        """Return what answers. A cursor is good for this list of this owner, in this order and with these filters."""
        return Query(web, self, name, sort, web.cursors(name, *owner, sort, digest_of(filters)))


def digest_of(filters: object) -> str:
    """Return what a cursor is bound to of a request's filters: it goes on under the same ones alone."""
    return hashlib.sha256(msgspec.json.encode(filters)).hexdigest()[:32]


async def provide_asked(
    request: AnyRequest,
    page: Page = 1,
    limit: Limit = LIMIT,
    cursor: Cursor = None,
    format: Format = "json",  # noqa: A002  the parameter's name
) -> Asked:
    """Read what every list takes."""
    return Asked(page, limit, cursor, format, _who(request) if format == "csv" else "")


def _who(request: AnyRequest) -> str:
    """Return whom a file is counted for: the merchant, or the operator in person."""
    origin = origin_of(request)
    return origin.merchant_id or origin.actor or origin.actor_kind


class Query:
    """One request for a list."""

    def __init__(self, web: Web, asked: Asked, name: str, sort: str, cursors: Cursors) -> None:
        self._web, self._asked, self._name, self._sort, self._cursors = web, asked, name, sort, cursors
        self._after = cursors.place(asked.cursor)

    async def answer(self, kind: type[AnswerT], read: Reads | Listed[Any], **others: object) -> Response[AnswerT]:
        """Return the part that was asked for, in the field of ``kind`` that holds items; or the list as a file.

        ``read`` returns a part whose items are as they are shown, from a connection that it gets; or it is all there
        is.
        """
        asked = self._asked
        if isinstance(read, Listed):
            read = partial(_return, read)
        if asked.format == "csv":
            return cast("Response[AnswerT]", await self._file(kind, read))
        part = Part(page=asked.page, limit=asked.limit, sort=self._sort, after=self._after)
        async with self._web.db.transaction() as conn:
            found = await read(conn, part)
        return JsonAnswer(self._page(kind, found, others))

    def _page(self, kind: type[AnswerT], found: Listed[Any], others: Mapping[str, object]) -> AnswerT:
        fields: dict[str, Any] = {items_of(kind)[0]: found.items, **others}
        return kind(
            page=self._asked.page,
            limit=self._asked.limit,
            total=found.total,
            total_is_exact=found.exact,
            next_cursor=self._cursors.seal(found.last),
            **fields,
        )

    async def _file(self, kind: type[AnswerT], read: Reads) -> Stream:
        """Return the list as comma-separated values.

        What is too long is refused before anything is sent, and what takes too long to count.
        """
        await self._web.limiter.take(self._web.limits.files, self._asked.who)
        async with self._web.files.counting(self._asked.who) as conn, bounded(conn, file_too_slow()):
            found = await read(conn, Part(limit=1, sort=self._sort, count_max=EXPORT_MAX))
        if not found.exact:
            words = f"A file holds at most {EXPORT_MAX} items; ask for less with from, to and other filters."
            raise InvalidError("EXPORT_TOO_LARGE", words)
        name = f"{self._name}-{self._web.clock.now():%Y-%m-%d}.csv"
        return Stream(
            self._lines(items_of(kind)[1], read),
            media_type="text/csv",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    async def _lines(self, item: type[Struct], read: Reads) -> AsyncIterator[bytes]:
        """Yield the file piece by piece. No connection is held while the reader is slow."""
        columns, left = columns_of(item), EXPORT_MAX
        yield csv_lines([[column.name for column in columns]])
        part = Part(limit=BATCH, sort=self._sort, count_max=0)
        while True:
            async with self._web.files.reading() as conn:
                found = await read(conn, part)
            items = found.items[:left]
            yield csv_lines([[column.text(one) for column in columns] for one in items])
            left -= len(items)
            if found.last is None or left == 0:
                return
            part = msgspec.structs.replace(part, after=found.last)


def file_too_slow() -> UnavailableError:
    """Return what says that a file is given up, since it takes too long to count what it would hold."""
    words = "There is too much to look through for this file. Ask for less with from, to and other filters."
    return UnavailableError("TOO_SLOW", words)


async def _return(found: Listed[Any], _: AsyncConnection, __: Part) -> Listed[Any]:
    return found


@cache
def items_of(kind: type[Struct]) -> tuple[str, type[Struct]]:
    """Return the field of an answer that holds the items of a list, and what they are."""
    own = {one.name for one in msgspec.structs.fields(CursorPageAnswer)}
    for one in msgspec.structs.fields(kind):
        if one.name not in own and get_origin(one.type) is Sequence:
            return one.name, get_args(one.type)[0]
    raise TypeError(f"{kind.__name__} has no list of items")
