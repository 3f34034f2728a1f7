"""How EVM addresses are hashed and spelled: Keccak-256 and the mixed-case checksum of EIP-55."""

from __future__ import annotations

import re
from typing import Final

from sha3 import keccak_256

ADDRESS_BYTES: Final = 20
ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)

# EIP-55 raises a letter when the matching digit of the hash is 8 or more. Upper case is bit 0x20 cleared in
# ASCII, so the whole address is spelled by one XOR of 40-byte integers instead of 40 comparisons.
_RAISES: Final = bytes(0x20 if chr(code) in "89abcdef" else 0 for code in range(256))
_LETTERS: Final = bytes(0x20 if chr(code) in "abcdef" else 0 for code in range(256))


def keccak(data: bytes) -> bytes:
    """Return Keccak-256 as Ethereum uses it, which is not SHA3-256."""
    digest: bytes = keccak_256(data).digest()
    return digest


def spell(lower: str) -> str:
    """Return the EIP-55 spelling, with ``0x``, of 40 lower-case hex digits without it."""
    digits = lower.encode("ascii")
    raises = keccak_256(digits).hexdigest()[:40].encode("ascii").translate(_RAISES)
    letters = digits.translate(_LETTERS)
    spelled = int.from_bytes(digits, "big") ^ (int.from_bytes(raises, "big") & int.from_bytes(letters, "big"))
    return "0x" + spelled.to_bytes(40, "big").decode("ascii")


def parse_address(text: str) -> str | None:
    """Return the EIP-55 spelling of an address, or None for anything that is none.

    One case throughout carries no checksum and is accepted; mixed case must carry the right one.
    """
    if ADDRESS.fullmatch(text) is None:
        return None
    digits = text[2:]
    spelled = spell(digits.lower())
    if digits in (digits.lower(), digits.upper()) or text == spelled:
        return spelled
    return None
