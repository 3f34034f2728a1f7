"""A clock that is set. Between two settings it runs as fast as the machine's own."""

from __future__ import annotations

from datetime import datetime, timedelta

from cambist.ports import Clock


class SetClock:
    """Starts at a moment, and can be set to later ones, never to earlier ones."""

    def __init__(self, real: Clock, at: datetime) -> None:
        self._real = real
        self._offset = at - real.now()
        self._ahead_s = 0.0

    def set(self, at: datetime) -> None:
        """Go on from this moment, unless it is past already."""
        ahead = at - self.now()
        if ahead > timedelta(0):
            self._offset += ahead
            self._ahead_s += ahead.total_seconds()

    def now(self) -> datetime:
        return self._real.now() + self._offset

    def monotonic(self) -> float:
        return self._real.monotonic() + self._ahead_s
