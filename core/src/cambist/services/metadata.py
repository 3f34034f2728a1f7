"""Metadata: JSON objects that merchants hang on what they make, kept as they were written."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import msgspec

from cambist.domain.text import hidden_in

from .errors import InvalidError, check_text

METADATA_BYTES_MAX = 16 * 1024
METADATA_DEPTH_MAX = 8

NUMBER_MAX = Decimal("1.7976931348623157e308")
"""The largest float."""

_encoder = msgspec.json.Encoder(decimal_format="number")

Path: TypeAlias = list[str | int]
"""Names and places in lists that lead to a part of a body."""


def exact(number: str) -> Decimal:
    """Return a number of a body with all its digits, where a float keeps seventeen of them.

    Raises ValueError for one that is too large for a float, which most that read JSON make of it.
    """
    try:
        value = Decimal(number)
    except InvalidOperation:  # its exponent has twenty digits
        raise ValueError("Number out of range") from None
    if value.copy_abs() > NUMBER_MAX:
        raise ValueError("Number out of range")
    return value


def metadata_text(value: dict[str, Any], *, bytes_max: int = METADATA_BYTES_MAX) -> str:
    """Return the object as JSON text. Raises InvalidError for what is too large or nested too deep."""
    text = _encoder.encode(value)
    if len(text) > bytes_max:
        raise InvalidError.field("metadata", f"is larger than {bytes_max} bytes of JSON")
    if _depth(value) > METADATA_DEPTH_MAX:
        raise InvalidError.field("metadata", f"is nested more than {METADATA_DEPTH_MAX} levels deep")
    return text.decode()


def check_shown(value: object, path: Path | None = None) -> None:
    """Refuse text that nobody sees in metadata that is not nested too deep. Raises InvalidError.

    ``path`` is where it stands. It is written out where something is refused, and not for every value: with a name as
    long as a body may be, that would take minutes.
    """
    path = ["metadata"] if path is None else path
    if isinstance(value, str):
        if hidden_in(value, lines=True) is not None:
            check_text(value, written(path), lines=True)
    elif isinstance(value, dict):
        for name, item in value.items():
            if hidden_in(name) is not None:
                check_text(name, written(path))
            path.append(name)
            check_shown(item, path)
            path.pop()
    elif isinstance(value, list):
        for index, item in enumerate(value):
            path.append(index)
            check_shown(item, path)
            path.pop()


def written(path: Path) -> str:
    """Return where something stands in a body, such as ``metadata.tags[0]``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _depth(value: object) -> int:
    """Count levels breadth first: input that is nested too deep for recursion is still only a number here."""
    level, depth = [value], 0
    while nested := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [child for item in nested for child in (item.values() if isinstance(item, dict) else item)]
    return depth
