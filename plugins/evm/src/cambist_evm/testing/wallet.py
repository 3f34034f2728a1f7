"""A key of its own, for tests that send: signs digests as the gateway's signer does."""

from __future__ import annotations

from coincurve import PrivateKey

from cambist_chainkit.eip55 import keccak, spell


class Wallet:
    """One account whose secret is known, because it was made for a test."""

    def __init__(self, name: str) -> None:
        """Make the account that goes by this name: the same name is the same account."""
        self._key = PrivateKey(keccak(b"for tests: " + name.encode()))
        self.secret = self._key.secret
        self.address = spell(keccak(self._key.public_key.format(compressed=False)[1:])[12:].hex())

    def sign(self, digest: bytes) -> bytes:
        """Return r, s in the lower half, and the recovery id."""
        return self._key.sign_recoverable(digest, hasher=None)
