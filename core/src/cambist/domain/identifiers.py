"""Identifiers that are derived from what they name: whoever comes to the same thing finds the same one."""

from __future__ import annotations

from binascii import hexlify
from datetime import datetime
from functools import lru_cache
from hashlib import sha256

_TIME_CHARS, _HASH_BYTES = 8, 12


@lru_cache(maxsize=256)
def _begin(prefix: str, at: datetime) -> bytes:
    return f"{prefix}_{int(at.timestamp()):0{_TIME_CHARS}x}".encode()


class DatedIds:
    """The identifiers of what has its second in common, and all parts of its name but the first.

    No part has a line break. An identifier sorts by its second: it has 32 bits of that, and 96 bits of a hash of the
    name.
    """

    def __init__(self, prefix: str, at: datetime, *rest: str) -> None:
        self._begin = _begin(prefix, at)
        self._rest = "\n".join(("", *rest)).encode()

    def of(self, first: bytes) -> bytes:
        """Return the identifier of what is called this by the first part of its name, both in UTF-8."""
        return self._begin + hexlify(sha256(first + self._rest).digest()[:_HASH_BYTES])
