"""The refusals that the signer tells of: one for what waits, however often it is asked for meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import structs

from .reports import Refused

KEPT = 1_000
"""So many are told of: more than a report has questions that wait for a person."""
WAITING = frozenset({"APPROVAL_NEEDED", "TARGET_TOO_FRESH", "HOURLY_CAP", "HOURLY_FEES"})
"""Codes of what only waits, for time or for a person. It makes room first: it is asked for and refused again."""
MEASURED = frozenset({"FEE_ABOVE_CAP", "AWAY_TOO_LONG"})
"""Codes whose reason names nothing but a measure, which is another one at each try."""


class _Key(NamedTuple):
    code: str
    chain: str
    purpose: str
    reference: str
    reason: str


class RefusalsKept:
    """The latest refusals, each transaction once for each reason it was refused for.

    A reason names recipient and amount, which are the signer's own reading: the same reference may come with others.
    Where there are too many, one is dropped of the code that has most of them, so that many hide none of another kind.
    """

    def __init__(self) -> None:
        self._kept: dict[_Key, Refused] = {}
        self._of_code: Counter[str] = Counter()

    def note(self, refused: Refused) -> None:
        reason = "" if refused.code in MEASURED else refused.reason
        key = _Key(refused.code, refused.chain, refused.purpose, refused.reference, reason)
        before = self._kept.pop(key, None)
        if before is None:
            self._make_room()
            self._of_code[key.code] += 1
        else:
            first_at = before.first_at or before.at
            refused = structs.replace(refused, times=before.times + 1, first_at=first_at)
        self._kept[key] = refused

    def newest_first(self) -> Sequence[Refused]:
        return [*reversed(self._kept.values())]

    def _make_room(self) -> None:
        if len(self._kept) < KEPT:
            return
        waiting = [code for code in WAITING if self._of_code[code]]
        most = max(waiting or self._of_code, key=lambda code: self._of_code[code])
        del self._kept[next(key for key in self._kept if key.code == most)]
        self._of_code[most] -= 1
