"""How addresses of EVM chains are spelled: in the mixed case of EIP-55, or as 32-byte words in Across's logs."""

from __future__ import annotations

import re
from typing import Final

from sha3 import keccak_256

ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
ZERO: Final = "0x" + "0" * 40

_PADDING: Final = bytes(12)


def spell(address: str) -> str:
    """Return the EIP-55 spelling of an address in any letter case."""
    digits = address[2:].lower()
    raises: str = keccak_256(digits.encode("ascii")).hexdigest()
    return "0x" + "".join(
        digit.upper() if raised >= "8" else digit for digit, raised in zip(digits, raises, strict=False)
    )


def parse_address(text: str) -> str | None:
    """Return the EIP-55 spelling of an address, or None for a text that is none or has a wrong checksum."""
    if ADDRESS.fullmatch(text) is None:
        return None
    spelled = spell(text)
    return spelled if text == spelled or text[2:] in (text[2:].lower(), text[2:].upper()) else None


def from_word(word: bytes) -> str | None:
    """Return the address that a 32-byte word holds, or None where it holds another kind of chain's."""
    return None if word[:12] != _PADDING else spell("0x" + word[12:].hex())


def same(one: str | None, other: str | None) -> bool:
    """Whether two addresses are one, however they are spelled. None is like nothing but None."""
    return one is other if one is None or other is None else one.lower() == other.lower()
