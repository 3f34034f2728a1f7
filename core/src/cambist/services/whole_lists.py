"""Lists that are read whole, since they are bounded: sorted, counted and paged as those that grow without end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import TypeVar, cast

import msgspec

from .listing import Listed, Part, check_depth
from .paging import Place

Item = TypeVar("Item")


def part_of(items: Iterable[Item], key: Callable[[Item], tuple[str, ...]], part: Part) -> Listed[Item]:
    """Return one part of ``items`` in the order of ``key``, with `-` in ``part.sort`` from the last one on.

    No two items have the same key: a cursor is the key of the last item that was shown, so that it goes on there
    whatever comes or goes in between. Raises InvalidError for a page that is too deep.
    """
    check_depth(part)
    descending = part.sort.startswith("-")
    found = sorted(((key(one), one) for one in items), key=itemgetter(0), reverse=descending)
    total = len(found)
    if part.after is not None:
        after = msgspec.json.decode(cast("str", part.after.value), type=tuple[str, ...])
        found = [(at, one) for at, one in found if (at < after if descending else at > after)]
    begin = (part.page - 1) * part.limit
    shown = found[begin : begin + part.limit]
    more = len(found) > begin + part.limit
    last = Place(msgspec.json.encode(shown[-1][0]).decode(), 0) if more else None
    return Listed(
        items=[one for _, one in shown],
        total=min(total, part.count_max),
        exact=total <= part.count_max,
        last=last,
    )
