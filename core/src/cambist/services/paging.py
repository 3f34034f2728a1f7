"""One row that must be there, where a page of a list ended, and the times that lists are asked for by."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import InstrumentedAttribute

from cambist.db.structs import AnyRow, AnySelect
from cambist.secrets import SecretsBox, SecretsError

from .errors import InvalidError, NotFoundError

LIMIT = 25
LIMIT_MAX = 100
TOTAL_MAX = 10_000
"""Up to here a list's items are counted; that there are more is not worth the time that counting them takes."""
PAGE_MAX = 1_000_000
"""Keeps the offset within what PostgreSQL's bigint holds."""

Item = TypeVar("Item")


Filters = Mapping[InstrumentedAttribute[Any], object | None]
"""What columns must be equal to; None is no filter."""


class Place(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a page ended: what the list's order says of its last item, and that item's primary key."""

    value: int | str
    pk: int


class Cursors:
    """Turns the place where a page ended into a text, and back.

    The text is encrypted, so that it tells nobody how many items there are, and is good for one list of one owner, and
    for the filters and the order that ``owner`` names, too.
    """

    def __init__(self, box: SecretsBox, name: str, *owner: object) -> None:
        self._box = box
        self._bound_to = {"field": f"{name}.cursor", "row": "/".join(str(part) for part in owner)}

    def seal(self, last: Place | int | None) -> str | None:
        """Return the cursor that goes on behind an item, or None where nothing follows."""
        if last is None:
            return None
        place = last if isinstance(last, Place) else Place(last, last)
        sealed = self._box.encrypt(msgspec.json.encode(place), **self._bound_to)
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def place(self, cursor: str | None) -> Place | None:
        """Return the place that was sealed for this list; None stays None. Raises InvalidError."""
        if cursor is None:
            return None
        try:
            sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            return msgspec.json.decode(self._box.decrypt(sealed, **self._bound_to), type=Place)
        except (SecretsError, binascii.Error, ValueError):
            words = "must be a nextCursor of the same list, with the same filters and in the same order"
            raise InvalidError.field("cursor", words) from None

    def open(self, cursor: str | None) -> int | None:
        """Return the primary key of the place; None stays None. Raises InvalidError."""
        place = self.place(cursor)
        return None if place is None else place.pk


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


def check_period(since: datetime | None, until: datetime | None, fields: tuple[str, str] = ("from", "to")) -> None:
    """Refuse a time that ends before it begins, which the request says in these fields. Raises InvalidError."""
    if since is not None and until is not None and since >= until:
        raise InvalidError.field(fields[1], f"must be later than {fields[0]}")


async def read_one(
    conn: AsyncConnection, statement: AnySelect, missing: NotFoundError, given: Mapping[str, object] | None = None
) -> AnyRow:
    """Return the row that ``statement`` selects with what is given it. Raises ``missing`` where there is none."""
    row = (await conn.execute(statement, given)).one_or_none()
    if row is None:
        raise missing
    return row
