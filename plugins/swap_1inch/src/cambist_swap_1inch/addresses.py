"""EVM addresses as the gateway spells them: with the mixed-case checksum of EIP-55."""

from __future__ import annotations

import re
from typing import Final

from sha3 import keccak_256

ADDRESS_BYTES: Final = 20
ZERO: Final = "0x" + "0" * 40

_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_RAISED_FROM: Final = "8"


def spell(text: str) -> str:
    """Return the EIP-55 spelling of ``0x`` and 40 hex digits in any letter case."""
    digits = text[2:].lower()
    digest = keccak_256(digits.encode("ascii")).hexdigest()
    pairs = zip(digits, digest, strict=False)
    return "0x" + "".join(digit.upper() if mark >= _RAISED_FROM else digit for digit, mark in pairs)


def parse_address(text: str) -> str | None:
    """Return the EIP-55 spelling of an address, or None for anything that is none.

    One case throughout carries no checksum and is accepted; mixed case must carry the right one.
    """
    if _ADDRESS.fullmatch(text) is None:
        return None
    digits, spelled = text[2:], spell(text)
    return spelled if digits in (digits.lower(), digits.upper()) or text == spelled else None
