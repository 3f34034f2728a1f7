"""How TRON addresses are hashed and spelled: 20 bytes of Keccak-256 behind the byte 0x41, in base58 with a checksum.

tronpy spells. Reading is done here, because a worker reads every address it watches when it starts, and tronpy takes
six times as long; it also fails in many ways, and takes 21 bytes behind another byte than 0x41 for an address.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from typing import Final

from sha3 import keccak_256

from cambist.plugin import InvalidAddressError
from cambist_chainkit.imports import without_its_root

ADDRESS_BYTES: Final = 20
PREFIX: Final = b"\x41"
ZERO_ADDRESS: Final = "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb"
"""Of 20 zero bytes: nobody has its key, and native coin is burned there."""

_SHAPE: Final = re.compile(r"T[1-9A-HJ-NP-Za-km-z]{33}", re.ASCII)
_SHOWN_MAX: Final = 64
_BASE: Final = 58
_CHECKSUM_BYTES: Final = 4
_DIGITS: Final = {
    digit: value for value, digit in enumerate(b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")
}


def spell(raw: bytes) -> str:
    """Return the text of an address of 20 bytes."""
    return _tronpys()(PREFIX + raw)


@cache
def _tronpys() -> Callable[[bytes], str]:
    # With its clients of nodes, which nobody uses here, tronpy would take 28 MB: every gateway lists TRON. And to call
    # its hashes, pycryptodome takes cffi where it can, which is 5 MB more than ctypes, and no faster.
    with without_its_root("tronpy", "cffi"):
        from tronpy.keys import to_base58check_address  # noqa: PLC0415
    spelling: Callable[[bytes], str] = to_base58check_address
    return spelling


def spell_hex(digits: str) -> str | None:
    """Return the text of an address as nodes write it, 42 hex digits that start with 41; None for anything else."""
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        return None
    return spell(raw[1:]) if len(raw) == 1 + ADDRESS_BYTES and raw[:1] == PREFIX else None


def of_point(point: bytes) -> str:
    """Return the address of a public point, which is 64 bytes."""
    return spell(keccak_256(point).digest()[-ADDRESS_BYTES:])


def raw_of(address: str) -> bytes:
    """Return the 20 bytes of an address. Raises InvalidAddressError for anything but the one right spelling."""
    if _SHAPE.fullmatch(address) is not None:
        number = 0
        for digit in address.encode("ascii"):
            number = number * _BASE + _DIGITS[digit]
        # 34 digits that start with T are always less than 25 bytes can hold.
        told = number.to_bytes(len(PREFIX) + ADDRESS_BYTES + _CHECKSUM_BYTES, "big")
        raw, checksum = told[:-_CHECKSUM_BYTES], told[-_CHECKSUM_BYTES:]
        proof = hashlib.sha256(hashlib.sha256(raw).digest()).digest()
        if raw[:1] == PREFIX and proof.startswith(checksum):
            return raw[1:]
    shown = address[:_SHOWN_MAX]
    raise InvalidAddressError(f"{shown!r} is no TRON address: T and 33 characters of base58, with a right checksum")


def hex_of(address: str) -> str:
    """Return the address as nodes want it: 42 hex digits."""
    return (PREFIX + raw_of(address)).hex()
