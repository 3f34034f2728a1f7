"""The address family ``evm``: one tree of keys and one spelling of addresses for every EVM chain."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, Final

from cambist.plugin import (
    AddressFamily,
    ChainInfo,
    Effects,
    InvalidAddressError,
    SignedTx,
    Token,
    Units,
    UnsignedTx,
)
from cambist_chainkit.bip32 import PublicNode, parse_xpub

from .addresses import keccak, parse_address, spell
from .signing import effects_of, sealed

BRANCHES_CACHED_MAX: Final = 20_000
"""About 10 MB: two branches for each of 10 000 merchants that were active lately."""

_SHOWN_MAX: Final = 64


@lru_cache(maxsize=BRANCHES_CACHED_MAX)
def _branch(account_xpub: str, change: int) -> PublicNode:
    return parse_xpub(account_xpub).child(change)


class EvmFamily(AddressFamily):
    """Derives by BIP-32, spells by EIP-55, writes payment links by EIP-681, and reads what it is to sign."""

    name: ClassVar[str] = "evm"
    coin_type: ClassVar[int] = 60

    def derive_address(self, account_xpub: str, change: int, index: int) -> str:
        """Derive the address at ``account/change/index``. Raises ExtendedKeyError, which never shows the key."""
        return spell(keccak(_branch(account_xpub, change).child_point(index))[12:].hex())

    def normalize_address(self, text: str) -> str:
        """Return the EIP-55 spelling."""
        address = parse_address(text)
        if address is None:
            message = (
                f"{text[:_SHOWN_MAX]!r} is no EVM address: 0x and 40 hex digits, in one case or with a right checksum"
            )
            raise InvalidAddressError(message)
        return address

    def address_key(self, address: str) -> bytes:
        return bytes.fromhex(address[2:])

    def payment_uri(self, chain: ChainInfo, address: str, token: Token, amount: Units) -> str:
        """Return an EIP-681 link. Its scheme is ``ethereum:`` on every EVM chain; the chain id tells them apart."""
        if token.contract is None:
            return f"ethereum:{address}@{chain.chain_id_num}?value={amount}"
        return f"ethereum:{token.contract}@{chain.chain_id_num}/transfer?address={address}&uint256={amount}"

    def effects(self, chain: ChainInfo, payload: bytes) -> Effects:
        """Read out of a payload the one payment that it makes.

        ``fee_max`` is gas times price. What a rollup charges beside it for its data stands in no payload.
        """
        return effects_of(chain, payload)

    def digest(self, payload: bytes) -> bytes:
        return keccak(payload)

    def seal(self, tx: UnsignedTx, signature: bytes) -> SignedTx:
        """Put payload and signature together. Raises SignatureError where the signature is not the sender's."""
        return sealed(tx, signature)
