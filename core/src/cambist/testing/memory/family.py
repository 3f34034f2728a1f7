"""The address family of chains in memory: its own spelling, a real checksum, real keys, and payloads in JSON."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache

from cambist.plugin import (
    AddressFamily,
    ChainInfo,
    Effects,
    InvalidAddressError,
    Movement,
    SignatureError,
    SignedTx,
    Token,
    Units,
    UnreadablePayloadError,
    UnsignedTx,
)

from .keys import branch, child, key_id, signer_of
from .payload import Payload, dated_id, digest_of, read_payload, tx_id_of

_PREFIX = "mem1"
ADDRESSES_KEPT = 4_096
"""The same few are spelled and read all the time, and base32 is written in Python."""
_KEY_BYTES = 20
_CHECKSUM_BYTES = 5
_SPELLING = re.compile(rf"{_PREFIX}[a-z2-7]{{40}}")
_TAG = re.compile(r"[0-9]{1,10}")
_XPUB = re.compile(r"[0-9A-Za-z]{16,200}")
_INDEX_END = 2**31


class MemoryFamily(AddressFamily):
    """Addresses such as ``mem1`` and 40 characters: 20 bytes and a checksum of 5, in base 32.

    From a real extended public key it derives by BIP-32, so that the gateway's keys sign for its addresses. It also
    takes any other text of letters and digits, and derives by hashing: as distinct, and no private key behind it.
    Like bech32, an address may be written in upper case, but not in mixed case. A tag is a number.
    """

    name = "memory"
    coin_type = 1
    tags = True

    def derive_address(self, account_xpub: str, change: int, index: int) -> str:
        if not _XPUB.fullmatch(account_xpub):
            raise ValueError("an account key is 16 to 200 letters and digits")
        if change not in (0, 1, 2) or not 0 <= index < _INDEX_END:
            raise ValueError(f"no derivation at {change}/{index}")
        node = branch(account_xpub, change)
        if node is not None:
            return spell(key_id(child(node, index)[0]))
        path = f"{account_xpub}/{change}/{index}".encode()
        return spell(hashlib.sha256(b"address:" + path).digest()[:_KEY_BYTES])

    def normalize_address(self, text: str) -> str:
        """Lower the case of an all upper-case address and check its checksum."""
        lowered = text.lower() if text.isupper() else text
        if not _SPELLING.fullmatch(lowered):
            raise InvalidAddressError(f"an address is {_PREFIX!r} and 40 characters, not {text[:64]!r}")
        if spell(_decode(lowered)[:_KEY_BYTES]) != lowered:
            raise InvalidAddressError(f"the checksum of {text!r} is wrong")
        return lowered

    def normalize_tag(self, text: str) -> str:
        """Take a number of up to ten digits, zeros before it left out."""
        if not _TAG.fullmatch(text):
            raise InvalidAddressError(f"a tag is a number of up to ten digits, not {text[:64]!r}")
        return str(int(text))

    def address_key(self, address: str) -> bytes:
        return _decode(address)[:_KEY_BYTES]

    def payment_uri(self, chain: ChainInfo, address: str, token: Token, amount: Units) -> str:
        return f"memory:{address}?chain={chain.id}&token={token.contract or 'native'}&amount={amount}"

    def address_uri(self, chain: ChainInfo, address: str) -> str:
        return f"memory:{address}?chain={chain.id}"

    def effects(self, chain: ChainInfo, payload: bytes) -> Effects:
        said = read_payload(payload)
        if said.chain != chain.id:
            raise UnreadablePayloadError(f"the payload is for {said.chain!r}, not for {chain.id}")
        if all(token.contract != said.contract for token in chain.tokens):
            raise UnreadablePayloadError(f"the payload calls {said.contract!r}, which is no token of {chain.id}")
        try:
            recipient = self.normalize_address(said.recipient)
        except InvalidAddressError as error:
            raise UnreadablePayloadError(str(error)) from error
        if recipient != said.recipient:
            raise UnreadablePayloadError(f"the payload's recipient is written {said.recipient!r}")
        movement = Movement(contract=said.contract, recipient=recipient, amount=Units(said.amount), tag=said.tag)
        if isinstance(said, Payload):
            return Effects(movements=(movement,), fee_max=said.fee.cost_max, sequence=said.sequence)
        return Effects(
            movements=(movement,) if said.staking is None else (),
            fee_max=said.fee.cost_max,
            sequence=None,
            staking=said.staking,
            tx_id=dated_id(payload),
            valid_until=said.valid_until,
        )

    def digest(self, payload: bytes) -> bytes:
        return digest_of(payload)

    def seal(self, tx: UnsignedTx, signature: bytes) -> SignedTx:
        """Append the signature to the payload. Raises SignatureError where it is not the sender's."""
        if spell(signer_of(digest_of(tx.payload), signature)) != tx.sender:
            raise SignatureError(f"the signature is not by {tx.sender}")
        raw = tx.payload + signature
        return SignedTx(tx_id=tx_id_of(raw), raw=raw)


def named_address(name: str) -> str:
    """Return the address that belongs to a name, for contracts and the faucet."""
    return spell(hashlib.sha256(b"name:" + name.encode()).digest()[:_KEY_BYTES])


@lru_cache(ADDRESSES_KEPT)
def spell(key: bytes) -> str:
    """Return the address that these 20 bytes have."""
    checksum = hashlib.sha256(b"checksum:" + key).digest()[:_CHECKSUM_BYTES]
    return _PREFIX + base64.b32encode(key + checksum).decode().lower()


@lru_cache(ADDRESSES_KEPT)
def _decode(address: str) -> bytes:
    return base64.b32decode(address[len(_PREFIX) :].upper())
