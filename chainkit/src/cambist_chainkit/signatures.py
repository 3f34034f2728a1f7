"""Checks a recoverable signature of secp256k1 before anything is built on it: is it one, and whose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coincurve import PublicKey

from cambist.plugin import SignatureError

from .curve import ORDER

SIGNATURE_BYTES: Final = 65

_HALF_ORDER: Final = int.from_bytes(ORDER, "big") // 2
_PARITY_MAX: Final = 1


def checked(signature: bytes, digest: bytes, address: str, owner: Callable[[bytes], str]) -> tuple[int, int, int]:
    """Return r, s and parity of a signature of the address. Raises SignatureError.

    ``owner`` tells the address of a public point, which it gets uncompressed, as 64 bytes.
    """
    if len(signature) != SIGNATURE_BYTES:
        raise SignatureError(f"a signature has {SIGNATURE_BYTES} bytes, and not {len(signature)}")
    r, s, parity = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big"), signature[64]
    if parity > _PARITY_MAX:
        # Its point's x is above the curve's order: once in 2^127 signatures, and no chain takes it.
        raise SignatureError("the signature has a recovery id that a transaction cannot carry")
    if s > _HALF_ORDER:
        # Both halves prove the same, so whoever passes a transaction on could give it another id (EIP-2).
        raise SignatureError("the signature's s is in the upper half, which nodes refuse")
    if owner(_signer(signature, digest)) != address:
        raise SignatureError(f"the signature is not by {address}")
    return r, s, parity


def _signer(signature: bytes, digest: bytes) -> bytes:
    try:
        key = PublicKey.from_signature_and_message(signature, digest, hasher=None)
    except Exception as error:  # coincurve raises bare Exception and ValueError
        raise SignatureError("the signature is none") from error
    return key.format(compressed=False)[1:]
