"""Identifiers that are derived from what they name: whoever comes to the same thing finds the same one."""

from __future__ import annotations

from binascii import hexlify
from datetime import datetime
from functools import lru_cache
from hashlib import sha256

_TIME_CHARS, _KEY_BYTES, _HASH_BYTES = 8, 2, 10


@lru_cache(maxsize=256)
def _begin(prefix: str, at: datetime) -> bytes:
    return f"{prefix}_{int(at.timestamp()):0{_TIME_CHARS}x}".encode()


def sort_key(group: str) -> bytes:
    """Return the 16 bits, as four hexadecimal digits, by which the identifiers of groups of one second sort."""
    return hexlify(sha256(group.encode()).digest()[:_KEY_BYTES])


class DatedIds:
    """The identifiers of what has its second and its group in common, and all parts of its name but the first.

    The group is one of the parts. No part has a line break. An identifier sorts by its second, and then by its group:
    it has 32 bits of the second, the 16 of the group's ``sort_key``, and 80 bits of a hash of the name.
    """

    def __init__(self, prefix: str, at: datetime, *rest: str, group: str) -> None:
        self._begin = _begin(prefix, at) + sort_key(group)
        self._rest = "\n".join(("", *rest)).encode()

    def of(self, first: bytes) -> bytes:
        """Return the identifier of what is called this by the first part of its name, both in UTF-8."""
        return self._begin + hexlify(sha256(first + self._rest).digest()[:_HASH_BYTES])
