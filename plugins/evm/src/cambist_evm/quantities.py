"""Numbers and words as nodes write them: one way of reading, and none of what a lenient parser would take besides."""

from __future__ import annotations

import re
from typing import Final

from cambist.plugin import InconsistentChainError
from cambist_chainkit import contracts

HEIGHT_MAX: Final = 2**63 - 1

_QUANTITY: Final = re.compile(r"0x[0-9a-fA-F]{1,64}", re.ASCII)
_WORD: Final = re.compile(r"0x[0-9a-fA-F]{64}", re.ASCII)
_SHOWN_MAX: Final = 80


def quantity(text: str) -> int:
    """Return the number that ``0x`` and one to 64 hex digits stand for. Raises InconsistentChainError."""
    if _QUANTITY.fullmatch(text) is None:
        raise InconsistentChainError(f"{text[:_SHOWN_MAX]!r} is no number of a node")
    return int(text, 16)


def block_number(text: str) -> int:
    """Return the number of a block. Raises InconsistentChainError."""
    number = quantity(text)
    if number > HEIGHT_MAX:
        raise InconsistentChainError(f"{text[:_SHOWN_MAX]!r} is no number of a block")
    return number


def is_word(text: str) -> bool:
    """Return whether this is ``0x`` and 32 bytes in hex."""
    return _WORD.fullmatch(text) is not None


def first_word(data: str) -> int | None:
    """Return the first of some words as a number, None where there is none. Raises InconsistentChainError."""
    try:
        return contracts.first_word(data[2:].lower() if data.startswith("0x") else "no words")
    except ValueError as error:
        raise InconsistentChainError(f"{data[:_SHOWN_MAX]!r} are no words") from error
