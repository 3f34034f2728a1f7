"""Time and chance that a test decides on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from cambist.ports import Ids

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


class ManualClock:
    """A clock that stands still until it is told to advance."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._monotonic = 1000.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        """Return its own seconds, which never go back."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("time does not go back; use set() for a clock that was wrong")
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def set(self, moment: datetime) -> None:
        """Set the time of day, forwards or back, as when an operator corrects a machine's clock."""
        self._now = moment


def seeded_ids(seed: int) -> Ids:
    """Return identifiers that are the same in every run from this seed."""
    return Ids(Random(seed).randbytes)


def chance_of(ids: Ids) -> Random:
    """Return what seeded identifiers are made of."""
    found = ids.random_bytes.__self__  # type: ignore[attr-defined]
    assert isinstance(found, Random)
    return found
