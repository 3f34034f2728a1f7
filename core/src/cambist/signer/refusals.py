"""The refusals that the signer tells of: one for what waits, however often it is asked for meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from .reports import Refused

KEPT = 100
"""So many are told of."""


class RefusalsKept:
    """The latest refusals, each transaction once for each code it was refused with."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str, str], Refused] = {}

    def note(self, refused: Refused) -> None:
        key = (refused.code, refused.chain, refused.purpose, refused.reference)
        before = self._kept.pop(key, None)
        if before is not None:
            first_at = before.first_at or before.at
            refused = structs.replace(refused, times=before.times + 1, first_at=first_at)
        self._kept[key] = refused
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]

    def newest_first(self) -> Sequence[Refused]:
        return [*reversed(self._kept.values())]
