"""How addresses of EVM chains are spelled: in the mixed case of EIP-55, or as 32-byte words in Across's logs."""

from __future__ import annotations

from typing import Final

from cambist_chainkit import eip55
from cambist_chainkit.eip55 import ADDRESS, parse_address

__all__ = ["ADDRESS", "ZERO", "from_word", "parse_address", "same", "spell"]

ZERO: Final = "0x" + "0" * 40

_PADDING: Final = bytes(12)


def spell(address: str) -> str:
    """Return the EIP-55 spelling of an address in any letter case."""
    return eip55.spell(address[2:].lower())


def from_word(word: bytes) -> str | None:
    """Return the address that a 32-byte word holds, or None where it holds another kind of chain's."""
    return None if word[:12] != _PADDING else spell("0x" + word[12:].hex())


def same(one: str | None, other: str | None) -> bool:
    """Whether two addresses are one, however they are spelled. None is like nothing but None."""
    return one is other if one is None or other is None else one.lower() == other.lower()
