"""The address family ``tron``: one tree of keys, and what a signer must know of TRON's transactions."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, Final

from cambist.plugin import AddressFamily, ChainInfo, Effects, SignedTx, Token, Units, UnsignedTx
from cambist_chainkit.bip32 import ExtendedKeyError, PublicNode, parse_xpub

from .addresses import of_point, raw_of
from .payload import digest
from .signing import effects_of, sealed

BRANCHES_CACHED_MAX: Final = 20_000
"""About 10 MB: two branches for each of 10 000 merchants that were active lately."""


@lru_cache(maxsize=BRANCHES_CACHED_MAX)
def _branch(account_xpub: str, change: int) -> PublicNode:
    return parse_xpub(account_xpub).child(change)


class TronFamily(AddressFamily):
    """Derives by BIP-32 under coin type 195, spells in base58check, and reads what it is to sign."""

    name: ClassVar[str] = "tron"
    coin_type: ClassVar[int] = 195

    def derive_address(self, account_xpub: str, change: int, index: int) -> str:
        """Derive the address at ``account/change/index``. Raises ExtendedKeyError, which never shows the key."""
        return of_point(_branch(account_xpub, change).child_point(index))

    def normalize_address(self, text: str) -> str:
        """Return the text itself: base58check has one spelling. Hex forms are not taken, nobody pays to those."""
        raw_of(text)
        return text

    def address_key(self, address: str) -> bytes:
        """Return the 20 bytes of the address."""
        return raw_of(address)

    def payment_uri(self, chain: ChainInfo, address: str, token: Token, amount: Units) -> str:
        """Return the plain address: the one text that every wallet's scanner reads.

        Links of the form ``tron:ADDRESS?amount=N`` have been proposed, but TronLink, the network's own wallet, calls
        them no address at all, others ignore the amount, and none of them can name a token. The page that shows the
        code says token and amount beside it.
        """
        _ = chain, token, amount
        return address

    def effects(self, chain: ChainInfo, payload: bytes) -> Effects:
        """Read out of a payload the one thing that it does."""
        return effects_of(chain, payload)

    def digest(self, payload: bytes) -> bytes:
        """Return the payload's SHA-256, which is the transaction's id, too."""
        return digest(payload)

    def seal(self, tx: UnsignedTx, signature: bytes) -> SignedTx:
        """Put payload and signature together. Raises SignatureError where the signature is not the sender's."""
        return sealed(tx, signature)


__all__ = ["ExtendedKeyError", "TronFamily"]
