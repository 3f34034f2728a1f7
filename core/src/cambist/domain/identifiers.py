"""Identifiers that are derived from what they name: whoever comes to the same thing finds the same one."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256

_TIME_CHARS, _HASH_CHARS = 8, 24


def names(*parts: str) -> str:
    """Return the parts of a name, none of which has a line break, as one: for what many identifiers have in common."""
    return "\n".join(parts)


def dated_id(prefix: str, at: datetime, *parts: str) -> str:
    """Return the identifier of what these parts name, none of which has a line break. It sorts by its second.

    It has 32 bits of that, and 96 bits of the hash of the parts.
    """
    return f"{prefix}_{int(at.timestamp()):0{_TIME_CHARS}x}{sha256(names(*parts).encode()).hexdigest()[:_HASH_CHARS]}"
