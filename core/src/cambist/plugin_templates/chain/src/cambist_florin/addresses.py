"""How addresses are spelled: a prefix, 20 bytes of a hash of the public key, and 4 bytes of checksum, in hex."""

from __future__ import annotations

import hashlib
import re

PREFIX = "florin1"

_KEY_BYTES = 20
_CHECKSUM_BYTES = 4
_SPELLING = re.compile(rf"{PREFIX}[0-9a-f]{{{2 * (_KEY_BYTES + _CHECKSUM_BYTES)}}}", re.ASCII)


def address_of(point: bytes) -> str:
    """Return the address of whoever holds the key of this uncompressed public point, 64 bytes."""
    return spell(hashlib.sha256(point).digest()[:_KEY_BYTES])


def spell(key: bytes) -> str:
    """Return the address that these 20 bytes have."""
    return PREFIX + (key + hashlib.sha256(b"florin" + key).digest()[:_CHECKSUM_BYTES]).hex()


def parse_address(text: str) -> str | None:
    """Return the one spelling of an address, None for what is no address. Here each has only one."""
    if _SPELLING.fullmatch(text) is None:
        return None
    return text if spell(key_of(text)) == text else None


def key_of(address: str) -> bytes:
    """Return the 20 bytes behind an address."""
    return bytes.fromhex(address[len(PREFIX) :])[:_KEY_BYTES]
