"""Encrypts the fields that must be read back: AES-256-GCM with an application key that can be rotated.

Derived from the same key, a MAC (``key id | HMAC-SHA256``) proves that whoever wrote something knew it.

A ciphertext is ``version (1) | key id (4) | nonce (12) | ciphertext and tag``. Field and row are authenticated
with it, so that what was copied to another row or column does not decrypt there.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .ports import RandomBytes

VERSION = b"\x01"
KEY_BYTES = 32
KEY_ID_BYTES = 4
NONCE_BYTES = 12
PLAINTEXT_BYTES_MAX = 2**20

_HEADER_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES


class SecretsError(Exception):
    """A field cannot be decrypted: it was moved, changed, or encrypted with a key that is not configured."""


class SecretsBox:
    """Holds the application keys. The first encrypts, all decrypt."""

    def __init__(self, keys: Sequence[bytes], random_bytes: RandomBytes) -> None:
        """Take the current key and the previous ones, 32 bytes each."""
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise ValueError(f"an application key has {KEY_BYTES} bytes, and there must be one")
        self._ciphers = {_key_id(key): AESGCM(key) for key in reversed(keys)}
        self._keys = {_key_id(key): key for key in reversed(keys)}
        self._derived: dict[tuple[bytes, str], bytes] = {}
        self._current = _key_id(keys[0])
        self._random_bytes = random_bytes

    @property
    def prefix(self) -> bytes:
        """What every ciphertext begins with that the current key made."""
        return VERSION + self._current

    @property
    def mac_prefix(self) -> bytes:
        """What every MAC begins with that the current key made."""
        return self._current

    def has_key_of(self, ciphertext: bytes) -> bool:
        """Say whether a configured key made this ciphertext, of which its beginning is enough: see ``prefix``."""
        return ciphertext[:1] == VERSION and ciphertext[1 : 1 + KEY_ID_BYTES] in self._keys

    def encrypt(self, plaintext: bytes, *, field: str, row: str) -> bytes:
        """Return the ciphertext for one field (``table.column``) of one row, whose identity never changes."""
        if len(plaintext) > PLAINTEXT_BYTES_MAX:
            raise ValueError(f"a secret field holds at most {PLAINTEXT_BYTES_MAX} bytes")
        header = VERSION + self._current
        nonce = self._random_bytes(NONCE_BYTES)
        return header + nonce + self._ciphers[self._current].encrypt(nonce, plaintext, _bound_to(header, field, row))

    def decrypt(self, ciphertext: bytes, *, field: str, row: str) -> bytes:
        """Return what ``encrypt`` was given. Raises SecretsError."""
        header, nonce = ciphertext[: 1 + KEY_ID_BYTES], ciphertext[1 + KEY_ID_BYTES : _HEADER_BYTES]
        if len(ciphertext) < _HEADER_BYTES or header[:1] != VERSION:
            raise SecretsError(f"{field} of {row} is not an encrypted field")
        cipher = self._ciphers.get(header[1:])
        if cipher is None:
            raise SecretsError(f"{field} of {row} was encrypted with key {header[1:].hex()}, which is not configured")
        try:
            return cipher.decrypt(nonce, ciphertext[_HEADER_BYTES:], _bound_to(header, field, row))
        except InvalidTag:
            raise SecretsError(f"{field} of {row} was changed, or belongs to another row") from None

    def mac(self, message: bytes, *, purpose: str) -> bytes:
        """Return the id of the current key, and an HMAC-SHA256 by a key of its own for this purpose."""
        return self._current + self._mac(self._current, message, purpose)

    def is_mac(self, mac: bytes, message: bytes, *, purpose: str) -> bool:
        """Say whether ``mac`` was made of this message for this purpose, with a key that is configured."""
        key_id, digest = mac[:KEY_ID_BYTES], mac[KEY_ID_BYTES:]
        return key_id in self._keys and hmac.compare_digest(digest, self._mac(key_id, message, purpose))

    def _mac(self, key_id: bytes, message: bytes, purpose: str) -> bytes:
        # No key is used for two things: that of a purpose is derived, once.
        key = self._derived.get((key_id, purpose))
        if key is None:
            key = hmac.digest(self._keys[key_id], b"cambist mac " + purpose.encode(), "sha256")
            self._derived[key_id, purpose] = key
        return hmac.digest(key, message, "sha256")


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"cambist application key" + key).digest()[:KEY_ID_BYTES]


def _bound_to(header: bytes, field: str, row: str) -> bytes:
    # Lengths keep the parts apart: no two pairs of field and row give the same bytes.
    parts = [header, field.encode(), row.encode()]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
