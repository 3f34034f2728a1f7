"""EVM addresses as 1inch writes them, in any letter case, and as the gateway spells them."""

from __future__ import annotations

from typing import Final

from cambist_chainkit import eip55
from cambist_chainkit.eip55 import parse_address

__all__ = ["ZERO", "parse_address", "spell"]

ZERO: Final = "0x" + "0" * 40


def spell(text: str) -> str:
    """Return the EIP-55 spelling of ``0x`` and 40 hex digits in any letter case."""
    return eip55.spell(text[2:].lower())
