"""The address family ``tron``: one tree of keys, and what a signer must know of TRON's transactions. Pure."""

from __future__ import annotations

from typing import ClassVar, Final

from cambist.plugin import (
    AddressFamily,
    ChainInfo,
    Effects,
    Movement,
    SignatureError,
    SignedTx,
    Staking,
    Token,
    Units,
    UnreadablePayloadError,
    UnsignedTx,
)
from cambist_chainkit.bip32 import branch
from cambist_chainkit.signatures import checked

from .addresses import of_point, raw_of, spell
from .payload import TxFields, bandwidth_of, digest, read_payload, write_signed

BANDWIDTH_SUN: Final = 1_000
"""What the network burns for a byte that no free or staked bandwidth covers, as ever since 2021.

No payload tells it, and a signer asks no node. Should the network vote for a higher price, it is raised here; until
then ``fee_max`` is too low by cents, and what a payload lets a contract burn, which is the great part, is exact.
"""
ACTIVATION_SUN: Final = 1_100_000
"""What it costs to send TRX to an address that the network does not know yet: instead of the bandwidth, not beside."""

_SIGNATURE_V: Final = 27


class TronFamily(AddressFamily):
    """Derives by BIP-32 under coin type 195, spells in base58check, and reads what it is to sign."""

    name: ClassVar[str] = "tron"
    coin_type: ClassVar[int] = 195

    def derive_address(self, account_xpub: str, change: int, index: int) -> str:
        """Derive the address at ``account/change/index``. Raises ExtendedKeyError, which never shows the key."""
        return of_point(branch(account_xpub, change).child_point(index))

    def normalize_address(self, text: str) -> str:
        """Return the text itself: base58check has one spelling. Hex forms are not taken, nobody pays to those."""
        raw_of(text)
        return text

    def address_key(self, address: str) -> bytes:
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
        """Read out of a payload the one thing that it does.

        Payloads carry no chain's number. What keeps one from another TRON network is the block that it refers to, whose
        hash that network has not.
        """
        if chain.family != "tron":
            raise UnreadablePayloadError(f"{chain.id} is no TRON network")
        fields = read_payload(payload)
        transfers = fields.action == "transfer"
        return Effects(
            movements=(_movement(chain, fields),) if transfers else (),
            staking=None if transfers else _staking(fields),
            fee_max=fee_max(fields, payload),
            sequence=None,
            tx_id=digest(payload).hex(),
            valid_until=fields.expiration_ms // 1000,
        )

    def digest(self, payload: bytes) -> bytes:
        """Return the payload's SHA-256, which is the transaction's id, too."""
        return digest(payload)

    def seal(self, tx: UnsignedTx, signature: bytes) -> SignedTx:
        """Put payload and signature together.

        Raises SignatureError where the signature is not the sender's, or the payload spends somebody else's money:
        nodes would take neither.
        """
        owner = spell(read_payload(tx.payload).owner)
        if owner != tx.sender:
            raise SignatureError(f"the payload spends what is {owner}'s, and the sender is {tx.sender}")
        hashed = digest(tx.payload)
        _, _, parity = checked(signature, hashed, tx.sender, of_point)
        raw = write_signed(tx.payload, signature[:64] + bytes([_SIGNATURE_V + parity]))
        return SignedTx(tx_id=hashed.hex(), raw=raw)


def fee_max(fields: TxFields, payload: bytes) -> Units:
    """Return the most that the payload lets its signer pay: energy up to the limit, and bandwidth or an activation."""
    burned = bandwidth_of(payload) * BANDWIDTH_SUN
    if fields.action == "transfer" and fields.contract is None:
        burned = max(burned, ACTIVATION_SUN)
    return Units(fields.fee_limit + burned)


def _movement(chain: ChainInfo, fields: TxFields) -> Movement:
    contract = None if fields.contract is None else spell(fields.contract)
    if contract is not None and all(token.contract != contract for token in chain.tokens):
        # What code that nobody registered does under this name cannot be told.
        raise UnreadablePayloadError(f"the payload calls {contract}, which is no registered token of {chain.id}")
    return Movement(contract=contract, recipient=spell(fields.to_address or b""), amount=Units(fields.amount))


def _staking(fields: TxFields) -> Staking:
    borrower = None if fields.to_address is None else spell(fields.to_address)
    return Staking(action=fields.action, amount=Units(fields.amount), borrower=borrower)
