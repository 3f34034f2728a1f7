"""The private half of BIP-32: from a seed down to account-level extended public keys, and to the keys that sign.

The public half, from an account key to addresses, belongs to the plugins' address families.
"""

from __future__ import annotations

import hashlib
import hmac

from coincurve import PublicKey
from mnemonic.mnemonic import b58encode
from msgspec import Struct

HARDENED = 2**31
_CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_XPUB_VERSION = bytes.fromhex("0488b21e")


class InvalidKeyError(ArithmeticError):
    """One of the 2^-127 derivations that BIP-32 declares invalid: take the next index."""


class PrivateNode(Struct, frozen=True):
    """A private key and its chain code, somewhere in the tree. Its representation hides both."""

    key: bytes
    chain_code: bytes
    depth: int = 0
    parent_fingerprint: bytes = b"\0\0\0\0"
    number: int = 0

    def __repr__(self) -> str:
        return f"<PrivateNode at depth {self.depth}>"

    def hardened(self, index: int) -> PrivateNode:
        """Return the child at ``index'``. Raises InvalidKeyError."""
        if not 0 <= index < HARDENED:
            raise ValueError(f"an index is from 0 to {HARDENED - 1}")
        return self._child(b"\0" + self.key, index + HARDENED, self._public())

    def normal(self, index: int) -> PrivateNode:
        """Return the child at ``index``, whose public half an extended public key leads to. Raises InvalidKeyError.

        Never let such a child's private key out: with this node's extended public key it gives this node's own.
        """
        if not 0 <= index < HARDENED:
            raise ValueError(f"an index is from 0 to {HARDENED - 1}")
        public = self._public()
        return self._child(public, index, public)

    def _child(self, parent: bytes, number: int, public: bytes) -> PrivateNode:
        digest = _hmac_sha512(self.chain_code, parent + number.to_bytes(4, "big"))
        tweak = int.from_bytes(digest[:32], "big")
        key = (tweak + int.from_bytes(self.key, "big")) % _CURVE_ORDER
        if tweak >= _CURVE_ORDER or key == 0:
            raise InvalidKeyError(f"child number {number} has no key")
        fingerprint = hashlib.new("ripemd160", hashlib.sha256(public).digest()).digest()[:4]
        return PrivateNode(key.to_bytes(32, "big"), digest[32:], self.depth + 1, fingerprint, number)

    def xpub(self) -> str:
        """Return the extended public key, from which addresses can be derived and nothing can be signed."""
        place = self.depth.to_bytes(1, "big") + self.parent_fingerprint + self.number.to_bytes(4, "big")
        payload = _XPUB_VERSION + place + self.chain_code + self._public()
        # Base58 that leaves out leading zero bytes; the version begins with none.
        return b58encode(payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4])

    def _public(self) -> bytes:
        return PublicKey.from_valid_secret(self.key).format(compressed=True)


def master_node(seed: bytes) -> PrivateNode:
    """Return the root of a seed's tree. Raises InvalidKeyError."""
    digest = _hmac_sha512(b"Bitcoin seed", seed)
    if not 0 < int.from_bytes(digest[:32], "big") < _CURVE_ORDER:
        raise InvalidKeyError("the seed has no master key")
    return PrivateNode(digest[:32], digest[32:])


def _hmac_sha512(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha512")
