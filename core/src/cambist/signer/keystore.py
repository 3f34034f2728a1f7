"""The keystore: the mnemonic in an encrypted file, which only the signing side opens.

One mnemonic holds two seeds that have nothing in common: live addresses come from it as it is, the sandbox's from
it with the BIP-39 passphrase ``cambist sandbox``. So one sheet of paper restores both.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import msgspec
from argon2.low_level import Type, hash_secret_raw
from coincurve import PrivateKey
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from mnemonic import Mnemonic
from msgspec import Meta, Struct

from cambist.ports import RandomBytes

from .bip32 import PrivateNode, master_node
from .files import KeystoreError, sync_folder, write_new

MODES = ("live", "sandbox")
PASSPHRASE_CHARS_MIN = 12
FILE_BYTES_MAX = 2**16
CACHED_NODES_MAX = 4_096
CACHED_KEYS_MAX = 16_384
_SANDBOX_PASSPHRASE = "cambist sandbox"  # noqa: S105  tells two trees apart, protects nothing
_WORDS = Mnemonic("english")


class Kdf(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a passphrase becomes a key: Argon2id, with RFC 9106's parameters for machines with little memory."""

    name: Literal["argon2id"] = "argon2id"
    time_cost: Annotated[int, Meta(ge=1, le=20)] = 3
    memory_kib: Annotated[int, Meta(ge=8, le=2**20)] = 65_536
    parallelism: Annotated[int, Meta(ge=1, le=16)] = 4


KDF = Kdf()
"""What a new file is sealed with, unless somebody asks for another."""


class KeystoreFile(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file as it stands. Everything but the ciphertext is authenticated with it."""

    version: Literal[1] = 1
    kdf: Kdf
    cipher: Literal["aes-256-gcm"] = "aes-256-gcm"
    salt: Annotated[bytes, Meta(min_length=16, max_length=64)]
    nonce: Annotated[bytes, Meta(min_length=12, max_length=12)]
    ciphertext: bytes


class Keystore:
    """An opened keystore. Derives keys; its representation hides what it holds."""

    def __init__(self, mnemonic: str) -> None:
        """Take a valid English mnemonic of 12 to 24 words. Raises KeystoreError."""
        words = " ".join(mnemonic.split()).lower()
        if not _WORDS.check(words):
            raise KeystoreError("The mnemonic is not valid: check its words, their order and their number.")
        self.mnemonic = words
        seeds = {"live": _WORDS.to_seed(words), "sandbox": _WORDS.to_seed(words, _SANDBOX_PASSPHRASE)}
        purposes = {mode: master_node(seed).hardened(44) for mode, seed in seeds.items()}

        @lru_cache(maxsize=64)
        def coin_node(mode: str, coin_type: int) -> PrivateNode:
            return purposes[mode].hardened(coin_type)

        @lru_cache(maxsize=CACHED_NODES_MAX)
        def change_node(mode: str, coin_type: int, account: int, change: int) -> PrivateNode:
            return coin_node(mode, coin_type).hardened(account).normal(change)

        @lru_cache(maxsize=CACHED_KEYS_MAX)
        def leaf(mode: str, coin_type: int, account: int, change: int, index: int) -> PrivateKey:
            return PrivateKey(change_node(mode, coin_type, account, change).normal(index).key)

        self._coin_node = coin_node
        self._leaf = leaf

    def __repr__(self) -> str:
        return "<Keystore>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: keys have one place."""
        raise TypeError("a keystore is not copied")

    def account_xpub(self, mode: str, coin_type: int, account_index: int) -> str:
        """Return the extended public key at ``m/44'/coin_type'/account_index'`` of the mode's seed."""
        return self._coin_node(mode, coin_type).hardened(account_index).xpub()

    def private_key(self, mode: str, coin_type: int, account: int, change: int, index: int) -> PrivateKey:
        """Return the key at ``m/44'/coin_type'/account'/change/index``. For the signer, which never lets it out."""
        return self._leaf(mode, coin_type, account, change, index)


def new_keystore(random_bytes: RandomBytes) -> Keystore:
    """Return a keystore with a fresh mnemonic of 24 words."""
    return Keystore(_WORDS.to_mnemonic(random_bytes(32)))


def save_keystore(
    path: Path, keystore: Keystore, passphrase: str, random_bytes: RandomBytes, kdf: Kdf | None = None
) -> None:
    """Write the keystore to a new file that only its owner can read.

    Never replaces a file: that could be the only copy of somebody's money. Raises KeystoreError.
    """
    write_new(path, _sealed(keystore, passphrase, random_bytes, kdf))


def change_passphrase(path: Path, old: str, new: str, random_bytes: RandomBytes, kdf: Kdf | None = None) -> None:
    """Put a file that the new passphrase opens in the place of the one that the old one opens. Raises KeystoreError.

    The new file is on disk and was opened before the old one goes, and no copy of either is left.
    """
    keystore = open_keystore(path, old)
    # A link is followed, so that the file is replaced, and not what points to it.
    file = path.resolve()
    fresh = file.with_name(f"{file.name}.{random_bytes(8).hex()}.new")
    write_new(fresh, _sealed(keystore, new, random_bytes, kdf))
    try:
        owner = file.stat()
        if os.geteuid() == 0:  # who may read every file: the gateway's account must read this one
            os.chown(fresh, owner.st_uid, owner.st_gid)
        if open_keystore(fresh, new).mnemonic != keystore.mnemonic:
            raise KeystoreError("The new file does not hold what the old one holds; nothing was changed.")
        fresh.replace(file)
        sync_folder(file.parent)
    except OSError as error:
        raise KeystoreError(f"{file} cannot be replaced: {error.strerror}.") from error
    finally:
        fresh.unlink(missing_ok=True)


def _sealed(keystore: Keystore, passphrase: str, random_bytes: RandomBytes, kdf: Kdf | None) -> bytes:
    if len(passphrase) < PASSPHRASE_CHARS_MIN:
        raise KeystoreError(f"The passphrase must have at least {PASSPHRASE_CHARS_MIN} characters.")
    file = KeystoreFile(kdf=kdf or KDF, salt=random_bytes(16), nonce=random_bytes(12), ciphertext=b"")
    cipher = AESGCM(_key(file, passphrase))
    ciphertext = cipher.encrypt(file.nonce, keystore.mnemonic.encode(), _header(file))
    whole = msgspec.structs.replace(file, ciphertext=ciphertext)
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def open_keystore(path: Path, passphrase: str) -> Keystore:
    """Return the keystore in the file. Takes a noticeable part of a second, on purpose. Raises KeystoreError."""
    try:
        with path.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            content = stream.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise KeystoreError(f"The keystore {path} cannot be read: {error.strerror}.") from None
    if mode & 0o077:
        raise KeystoreError(f"The keystore {path} can be read by others: run 'chmod 600 {path}'.")
    try:
        file = msgspec.json.decode(content, type=KeystoreFile)
    except msgspec.DecodeError as error:
        raise KeystoreError(f"{path} is not a keystore of this version: {error}.") from None
    try:
        mnemonic = AESGCM(_key(file, passphrase)).decrypt(file.nonce, file.ciphertext, _header(file))
    except InvalidTag:
        raise KeystoreError(f"The passphrase does not open the keystore {path}, or the file was changed.") from None
    return Keystore(mnemonic.decode())


def _key(file: KeystoreFile, passphrase: str) -> bytes:
    kdf = file.kdf
    try:
        secret = passphrase.encode()
    except UnicodeEncodeError:  # bytes of another encoding, as a terminal or a variable can hold
        raise KeystoreError("The passphrase is not UTF-8 text.") from None
    return hash_secret_raw(secret, file.salt, kdf.time_cost, kdf.memory_kib, kdf.parallelism, hash_len=32, type=Type.ID)


def _header(file: KeystoreFile) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(file, ciphertext=b""), order="deterministic")
