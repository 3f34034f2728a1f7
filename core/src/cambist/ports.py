"""What the gateway takes from outside to stay repeatable: time, chance and identifiers."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Protocol, TypeAlias

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Returns so many bytes that nobody can guess."""

ID_BYTES = 16
_ID_CHARS = 26

# Crockford's alphabet in lower case: nothing that reads like another character when it is typed from paper.
_READABLE = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789abcdefghjkmnpqrstvwxyz")


class Clock(Protocol):
    """Tells the time of day, and a time that only ever advances."""

    def now(self) -> datetime:
        """Return the time of day, aware and in UTC."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; for measuring, never for storing."""


class SystemClock:
    """The machine's own clock. Made in the composition root only."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class Ids:
    """Makes identifiers and secrets from one source of random bytes."""

    def __init__(self, random_bytes: RandomBytes) -> None:
        self.random_bytes = random_bytes

    def new(self, prefix: str) -> str:
        """Return an identifier such as ``pay_`` and 26 characters: 128 random bits."""
        return f"{prefix}_{self._readable(ID_BYTES)[:_ID_CHARS]}"

    def secret(self, prefix: str) -> str:
        """Return a bearer secret such as an API key: the prefix as it is, and 256 random bits."""
        return prefix + self._readable(32)[:52]

    def hex_secret(self) -> str:
        """Return 64 hexadecimal characters: 256 random bits, as webhook signing secrets are written."""
        return self.random_bytes(32).hex()

    def _readable(self, size: int) -> str:
        return base64.b32encode(self.random_bytes(size)).translate(_READABLE).decode("ascii").rstrip("=")


def system_ids() -> Ids:
    """Return identifiers from the operating system's randomness."""
    return Ids(os.urandom)


def system_random() -> Random:
    """Return a generator for chance that needs no secrecy, such as jitter, seeded by the operating system."""
    return Random(os.urandom(16))  # noqa: S311  never for secrets; those are made by Ids
