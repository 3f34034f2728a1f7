"""The address family: keys, spelling and payloads, without a node."""

from __future__ import annotations

from typing import ClassVar

from cambist.plugin import (
    AddressFamily,
    ChainInfo,
    Effects,
    InvalidAddressError,
    Movement,
    SignedTx,
    Token,
    Units,
    UnreadablePayloadError,
    UnsignedTx,
)
from cambist_chainkit.bip32 import branch
from cambist_chainkit.signatures import checked

from .addresses import address_of, key_of, parse_address
from .config import NETWORK
from .payload import digest_of, read, tx_id_of


class FlorinFamily(AddressFamily):
    """Derives by BIP-32 and reads what it is to sign. The coin type is the number that SLIP-44 has for test coins."""

    name: ClassVar[str] = "florin"
    coin_type: ClassVar[int] = 1

    def derive_address(self, account_xpub: str, change: int, index: int) -> str:
        """Derive the address at ``account/change/index``."""
        return address_of(branch(account_xpub, change).child_point(index))

    def normalize_address(self, text: str) -> str:
        """Check the one spelling that an address has."""
        address = parse_address(text)
        if address is None:
            raise InvalidAddressError(f"{text[:64]!r} is no address of this chain, or was mistyped")
        return address

    def address_key(self, address: str) -> bytes:
        """Return the 20 bytes of the address."""
        return key_of(address)

    def payment_uri(self, chain: ChainInfo, address: str, token: Token, amount: Units) -> str:
        """Return a link that names recipient, token and amount."""
        return f"{chain.id}:{address}?amount={amount}" + ("" if token.contract is None else f"&token={token.contract}")

    def effects(self, chain: ChainInfo, payload: bytes) -> Effects:
        """Read the one movement that a payload commands."""
        said = read(payload)
        if not said.network == NETWORK == chain.id:
            raise UnreadablePayloadError(f"the payload is for {said.network!r}, not for {chain.id}")
        if all(token.contract != said.contract for token in chain.tokens):
            raise UnreadablePayloadError(f"the payload moves {said.contract!r}, which is no token of {chain.id}")
        if parse_address(said.recipient) is None:
            raise UnreadablePayloadError(f"the payload pays {said.recipient!r}, which is no address")
        return Effects(
            movements=(Movement(contract=said.contract, recipient=said.recipient, amount=Units(said.amount)),),
            fee_max=Units(said.limit * said.price),
            sequence=said.sequence,
        )

    def digest(self, payload: bytes) -> bytes:
        """Return the payload's SHA-256."""
        return digest_of(payload)

    def seal(self, tx: UnsignedTx, signature: bytes) -> SignedTx:
        """Append the signature to the payload."""
        checked(signature, digest_of(tx.payload), tx.sender, address_of)
        raw = tx.payload + signature
        return SignedTx(tx_id=tx_id_of(raw), raw=raw)
