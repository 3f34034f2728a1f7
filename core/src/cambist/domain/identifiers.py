"""Identifiers that are derived from what they name: whoever comes to the same thing finds the same one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

DERIVED_CHARS = 32
_TIME_CHARS = 8


def names(*parts: str) -> str:
    """Return the parts of a name, none of which has a line break, as one: for what many identifiers have in common."""
    return "\n".join(parts)


def derived_id(prefix: str, *parts: str) -> str:
    """Return the identifier of what these parts name, none of which has a line break: 128 bits of their hash."""
    return f"{prefix}_{_digits(parts, DERIVED_CHARS)}"


def dated_id(prefix: str, at: datetime, *parts: str) -> str:
    """Return such an identifier that sorts by its second: 32 bits of that, and 96 bits of the hash."""
    return f"{prefix}_{int(at.timestamp()):0{_TIME_CHARS}x}{_digits(parts, DERIVED_CHARS - _TIME_CHARS)}"


def _digits(parts: Sequence[str], count: int) -> str:
    return sha256(names(*parts).encode()).hexdigest()[:count]
