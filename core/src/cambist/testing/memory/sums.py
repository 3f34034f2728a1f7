"""Numbers that know what they were at the end of every block."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Sums(Generic[Key]):
    """Numbers that start at zero, with their past."""

    def __init__(self) -> None:
        self._past: dict[Key, list[tuple[int, int]]] = {}
        self._changes: list[tuple[int, Key]] = []

    def at(self, key: Key, height: int | None = None) -> int:
        """Return the number as it was at the end of a block, or as it is now."""
        for changed_at, number in reversed(self._past.get(key, ())):
            if height is None or changed_at <= height:
                return number
        return 0

    def add(self, key: Key, height: int, number: int) -> None:
        """Change a number in the newest block."""
        self.set(key, height, self.at(key) + number)

    def set(self, key: Key, height: int, number: int) -> None:
        """Give a number another value in the newest block."""
        self._past.setdefault(key, []).append((height, number))
        self._changes.append((height, key))

    def rewind(self, height: int) -> None:
        """Forget what happened above the height."""
        while self._changes and self._changes[-1][0] > height:
            self._past[self._changes.pop()[1]].pop()
