"""Public derivation of BIP-32: child keys from an extended public key, fast enough to run for every payment."""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import Final

from coincurve import PublicKey

from cambist.plugin import PluginError

from .curve import add_multiple

INDEX_MAX: Final = 2**31 - 1
"""Higher indexes are hardened, and those no public key can derive."""

BRANCHES_CACHED_MAX: Final = 40_000
"""About 20 MB: two branches for each of 10 000 merchants that were active lately, in two families."""

_ALPHABET: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS: Final = {char: value for value, char in enumerate(_ALPHABET)}
_PUBLIC_VERSION: Final = bytes.fromhex("0488b21e")
_KEY_BYTES: Final = 78
_TEXT_MAX: Final = 120


class ExtendedKeyError(PluginError):
    """A text is no usable extended public key. Never repeats the text, which may be a private one."""


class PublicNode:
    """One node of the tree: a point and its chain code. Immutable."""

    __slots__ = ("_chain_code", "_compressed", "_point")

    def __init__(self, point: PublicKey, chain_code: bytes) -> None:
        """Keep the compressed point, too: it is hashed for every child."""
        self._point = point
        self._chain_code = chain_code
        self._compressed = point.format(compressed=True)

    def child(self, index: int) -> PublicNode:
        """Return the child node at a non-hardened index."""
        digest = self._digest(index)
        return PublicNode(self._add(digest[:32]), digest[32:])

    def child_point(self, index: int) -> bytes:
        """Return the uncompressed point of a child, 64 bytes, without building a node for it."""
        return self._add(self._digest(index)[:32]).format(compressed=False)[1:]

    def _digest(self, index: int) -> bytes:
        if not 0 <= index <= INDEX_MAX:
            raise ExtendedKeyError(f"index {index} is not between 0 and {INDEX_MAX}")
        return hmac.digest(self._chain_code, self._compressed + index.to_bytes(4, "big"), "sha512")

    def _add(self, scalar: bytes) -> PublicKey:
        try:
            return add_multiple(self._point, scalar)
        except ValueError as error:
            # BIP-32 says to take the next index. It happens once in 2^127 keys, so nobody has seen it.
            raise ExtendedKeyError("there is no key at this index, take the next one") from error


def parse_xpub(text: str) -> PublicNode:
    """Return the node that an ``xpub...`` text stands for."""
    if len(text) > _TEXT_MAX or text.startswith("xprv"):
        raise ExtendedKeyError("an extended public key is needed, starting with xpub")
    raw = _base58check(text)
    if len(raw) != _KEY_BYTES or raw[:4] != _PUBLIC_VERSION:
        raise ExtendedKeyError("an extended public key is needed, starting with xpub")
    try:
        point = PublicKey(raw[45:])
    except ValueError as error:
        raise ExtendedKeyError("the extended public key holds no point of the curve") from error
    return PublicNode(point, raw[13:45])


@lru_cache(maxsize=BRANCHES_CACHED_MAX)
def branch(account_xpub: str, change: int) -> PublicNode:
    """Return the node at ``account/change``, which every address below it is derived from."""
    return parse_xpub(account_xpub).child(change)


def _base58check(text: str) -> bytes:
    number = 0
    for char in text:
        digit = _DIGITS.get(char)
        if digit is None:
            raise ExtendedKeyError("the extended public key holds a character that base58 has not")
        number = number * 58 + digit
    raw = number.to_bytes(_KEY_BYTES + 4, "big") if number < 1 << (8 * (_KEY_BYTES + 4)) else b""
    body, checksum = raw[:-4], raw[-4:]
    if not body or hashlib.sha256(hashlib.sha256(body).digest()).digest()[:4] != checksum:
        raise ExtendedKeyError("the extended public key's checksum is wrong: it was mistyped or cut")
    return body
