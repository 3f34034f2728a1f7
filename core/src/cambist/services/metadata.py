"""Metadata: JSON objects that merchants hang on what they make, kept as they were written."""

from __future__ import annotations

from typing import Any

import msgspec

from .errors import InvalidError, check_text

METADATA_BYTES_MAX = 16 * 1024
METADATA_DEPTH_MAX = 8


def metadata_text(value: dict[str, Any], field: str = "metadata", *, bytes_max: int = METADATA_BYTES_MAX) -> str:
    """Return the object as JSON text. Raises InvalidError about the field for what is too large or nested too deep."""
    text = msgspec.json.encode(value)
    if len(text) > bytes_max:
        raise InvalidError.field(field, f"is larger than {bytes_max} bytes of JSON")
    if _depth(value) > METADATA_DEPTH_MAX:
        raise InvalidError.field(field, f"is nested more than {METADATA_DEPTH_MAX} levels deep")
    return text.decode()


def check_shown(value: object, field: str = "metadata") -> None:
    """Refuse text that nobody sees in metadata that is not nested too deep. Raises InvalidError."""
    if isinstance(value, str):
        check_text(value, field, lines=True)
    elif isinstance(value, dict):
        for name, item in value.items():
            check_text(name, field)
            check_shown(item, f"{field}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            check_shown(item, f"{field}[{index}]")


def _depth(value: object) -> int:
    """Count levels breadth first: input that is nested too deep for recursion is still only a number here."""
    level, depth = [value], 0
    while nested := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [child for item in nested for child in (item.values() if isinstance(item, dict) else item)]
    return depth
