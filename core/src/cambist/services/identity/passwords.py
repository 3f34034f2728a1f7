"""Passwords: hard to guess, and argon2id; a few at a time, away from the event loop.

New ones are judged with a permit of their own: whoever signs in waits for hashes, and never for what judges passwords.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from cambist.ports import RandomBytes
from cambist.services.errors import InvalidError, TooManyError

from .strength import check_strength

LENGTH_MIN = 10
LENGTH_MAX = 256
HASHED_AT_ONCE = 2
JUDGED_AT_ONCE = 1
WAITING_MAX = 32
"""Of each kind, those that run included."""

T = TypeVar("T")


class ThreadPermits:
    """Runs work in threads, so many at once. Others wait, and a crowd is turned away."""

    def __init__(self, at_once: int) -> None:
        self._permits = asyncio.Semaphore(at_once)
        self._waiting = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Return what the work returns. Raises TooManyError where ``WAITING_MAX`` are there already."""
        if self._waiting >= WAITING_MAX:
            raise TooManyError("BUSY", "Too many passwords are looked at right now.", retry_after_s=2)
        self._waiting += 1
        try:
            async with self._permits:
                return await asyncio.to_thread(work)
        finally:
            self._waiting -= 1


class Passwords:
    """Hashes and verifies. Each hash takes 64 MiB and a core for a while, so only ``HASHED_AT_ONCE`` run at once."""

    def __init__(self, random_bytes: RandomBytes, hasher: PasswordHasher | None = None) -> None:
        self._random_bytes = random_bytes
        self._hasher = hasher or PasswordHasher()
        self._hashing, self._judging = ThreadPermits(HASHED_AT_ONCE), ThreadPermits(JUDGED_AT_ONCE)
        self._nobodys: str | None = None

    async def hash_new(self, password: str, about: Sequence[str] = (), *, field: str = "password") -> str:
        """Return what may be stored of a password that somebody chose. ``about`` is what a guesser knows.

        Raises InvalidError, about this field, for a password that is too short, too long, or too easy to guess.
        """
        _check_length(password, field)
        await self._judging.run(lambda: check_strength(password, about, field))
        return await self.hash(password)

    async def hash(self, password: str) -> str:
        """Return what may be stored. Raises InvalidError for a password that is too short or too long."""
        _check_length(password, "password")
        return await self._hashing.run(lambda: self._hasher.hash(password, salt=self._random_bytes(16)))

    async def verify(self, stored: str | None, password: str) -> bool:
        """Say whether the password is right. Takes as long when nobody has it (``stored`` is None)."""
        if self._nobodys is None:
            self._nobodys = await self._hashing.run(lambda: self._hasher.hash("nobody's", salt=self._random_bytes(16)))
        against = stored or self._nobodys
        right = await self._hashing.run(lambda: self._matches(against, password[: LENGTH_MAX + 1]))
        return right and stored is not None

    def _matches(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False


def _check_length(password: str, field: str) -> None:
    if not LENGTH_MIN <= len(password) <= LENGTH_MAX:
        raise InvalidError.field(field, f"must have {LENGTH_MIN} to {LENGTH_MAX} characters")
