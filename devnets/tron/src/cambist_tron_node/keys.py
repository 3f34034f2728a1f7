"""Keys of the local network: made from names, so that every run has the same ones; and who signed what.

Addresses are 21 bytes here, with TRON's prefix, as they stand in transactions.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from base58 import b58decode_check, b58encode_check
from coincurve import PrivateKey, PublicKey
from sha3 import keccak_256

PREFIX: Final = b"\x41"
ADDRESS_BYTES: Final = 21
BASE58_CHARACTERS: Final = 34
"""Characters of its text."""

SIGNATURE_BYTES: Final = 65


class SignatureMalformedError(ValueError):
    """These bytes are no signature."""


def named_key(name: str) -> bytes:
    return hashlib.sha256(f"cambist local tron: {name}".encode()).digest()


def address_of(key: bytes) -> bytes:
    """Return a private key's address."""
    return _of_point(_opened(key).public_key)


def sign(key: bytes, digest: bytes) -> bytes:
    """Return a signature, with the recovery id as last byte."""
    return _opened(key).sign_recoverable(digest, hasher=None)


@lru_cache(maxsize=1_000)
def _opened(key: bytes) -> PrivateKey:
    """Return a key with its point, which takes twice as long to work out as a signature: blocks are signed by few."""
    return PrivateKey(key)


def signer(signature: bytes, digest: bytes) -> bytes:
    """Return who signed. The last byte may be 0 to 3 or 27 to 34, and what follows byte 65 does not count."""
    recovery = signature[64] - 27 if signature[64] >= 27 else signature[64]
    if recovery > 7:
        raise SignatureMalformedError("Header byte out of range: " + str(signature[64]))
    try:
        point = PublicKey.from_signature_and_message(signature[:64] + bytes([recovery & 3]), digest, hasher=None)
    except Exception as error:  # coincurve raises bare Exception and ValueError
        raise SignatureMalformedError("Could not recover public key from signature") from error
    return _of_point(point)


def is_address(raw: bytes) -> bool:
    """Tell whether these are the bytes of an address."""
    return len(raw) == ADDRESS_BYTES and raw[:1] == PREFIX


def base58(address: bytes) -> str:
    return b58encode_check(address).decode()


def address_bytes(text: str) -> bytes:
    """Return the 21 bytes of an address in base58. Raises ValueError."""
    address = b58decode_check(text) if len(text) == BASE58_CHARACTERS else b""
    if not is_address(address):
        raise ValueError(f"{text[:64]!r} is not a TRON address")
    return address


def _of_point(point: PublicKey) -> bytes:
    digest: bytes = keccak_256(point.format(compressed=False)[1:]).digest()
    return PREFIX + digest[-20:]
