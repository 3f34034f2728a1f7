"""The address family of chains in memory: its own spelling, a real checksum, and derivation by hashing."""

from __future__ import annotations

import base64
import hashlib
import re

from cambist.plugin import AddressFamily, ChainInfo, InvalidAddressError, Token, Units

_PREFIX = "mem1"
_KEY_BYTES = 20
_CHECKSUM_BYTES = 5
_SPELLING = re.compile(rf"{_PREFIX}[a-z2-7]{{40}}")
_XPUB = re.compile(r"[0-9A-Za-z]{16,200}")
_INDEX_END = 2**31


class MemoryFamily(AddressFamily):
    """Addresses such as ``mem1`` and 40 characters: 20 bytes and a checksum of 5, in base 32.

    Takes any text that looks like an extended public key, a real one too. Like bech32, an address may be
    written in upper case, but not in mixed case.
    """

    name = "memory"
    coin_type = 1

    def derive_address(self, account_xpub: str, change: int, index: int) -> str:
        """Derive an address by hashing: as distinct as real derivation, and no private key behind it."""
        if not _XPUB.fullmatch(account_xpub):
            msg = "an account key is 16 to 200 letters and digits"
            raise ValueError(msg)
        if change not in (0, 1) or not 0 <= index < _INDEX_END:
            msg = f"no derivation at {change}/{index}"
            raise ValueError(msg)
        path = f"{account_xpub}/{change}/{index}".encode()
        return _spell(hashlib.sha256(b"address:" + path).digest()[:_KEY_BYTES])

    def normalize_address(self, text: str) -> str:
        """Lower the case of an all upper-case address and check its checksum."""
        lowered = text.lower() if text.isupper() else text
        if not _SPELLING.fullmatch(lowered):
            msg = f"an address is {_PREFIX!r} and 40 characters, not {text[:64]!r}"
            raise InvalidAddressError(msg)
        if _spell(_decode(lowered)[:_KEY_BYTES]) != lowered:
            msg = f"the checksum of {text!r} is wrong"
            raise InvalidAddressError(msg)
        return lowered

    def address_key(self, address: str) -> bytes:
        """Return the 20 bytes behind the address."""
        return _decode(address)[:_KEY_BYTES]

    def payment_uri(self, chain: ChainInfo, address: str, token: Token, amount: Units) -> str:
        """Return a URI of a scheme that only this family has."""
        return f"memory:{address}?chain={chain.id}&token={token.contract or 'native'}&amount={amount}"


def named_address(name: str) -> str:
    """Return the address that belongs to a name, for contracts and the faucet."""
    return _spell(hashlib.sha256(b"name:" + name.encode()).digest()[:_KEY_BYTES])


def _spell(key: bytes) -> str:
    checksum = hashlib.sha256(b"checksum:" + key).digest()[:_CHECKSUM_BYTES]
    return _PREFIX + base64.b32encode(key + checksum).decode().lower()


def _decode(address: str) -> bytes:
    return base64.b32decode(address[len(_PREFIX) :].upper())
