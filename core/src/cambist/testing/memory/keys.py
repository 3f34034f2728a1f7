"""Keys of the memory family: children of extended public keys, and who signed what."""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache

from coincurve import PublicKey

from cambist.plugin import SignatureError

SIGNATURE_BYTES = 65
_HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_XPUB_BYTES = 78
_XPUB_VERSION = bytes.fromhex("0488b21e")


@lru_cache(maxsize=20_000)
def branch(account_xpub: str, change: int) -> tuple[PublicKey, bytes] | None:
    """Return point and chain code of ``account/change``; None for a text that is no real extended public key."""
    number = 0
    for character in account_xpub:
        digit = _ALPHABET.find(character)
        if digit < 0:
            return None
        number = number * 58 + digit
    if number.bit_length() > 8 * (_XPUB_BYTES + 4):
        return None
    raw = number.to_bytes(_XPUB_BYTES + 4, "big")
    body, checksum = raw[:-4], raw[-4:]
    if body[:4] != _XPUB_VERSION or hashlib.sha256(hashlib.sha256(body).digest()).digest()[:4] != checksum:
        return None
    return child((PublicKey(body[45:]), body[13:45]), change)


def child(node: tuple[PublicKey, bytes], number: int) -> tuple[PublicKey, bytes]:
    """Return the node at a number of BIP-32 that is not hardened."""
    point, chain_code = node
    digest = hmac.digest(chain_code, point.format() + number.to_bytes(4, "big"), "sha512")
    return point.add(digest[:32]), digest[32:]


def key_id(point: PublicKey) -> bytes:
    """Return the 20 bytes behind the address of who holds the key."""
    return hashlib.sha256(b"key:" + point.format()).digest()[:20]


def signer_of(digest: bytes, signature: bytes) -> bytes:
    """Return ``key_id`` of who made the signature. Raises SignatureError."""
    if len(signature) != SIGNATURE_BYTES or int.from_bytes(signature[32:64], "big") > _HALF_ORDER:
        raise SignatureError("a signature is r, s in the lower half, and the recovery id: 65 bytes")
    try:
        return key_id(PublicKey.from_signature_and_message(signature, digest, hasher=None))
    except Exception as error:  # coincurve raises bare Exception and ValueError
        raise SignatureError("the signature is by nobody") from error
