"""The address family ``evm``: one tree of keys, one spelling of addresses, and what a payload does. Pure."""

from __future__ import annotations

from typing import ClassVar, Final

from cambist.plugin import (
    AddressFamily,
    Allowance,
    Call,
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
from cambist_chainkit import signatures
from cambist_chainkit.bip32 import branch
from cambist_chainkit.contracts import read_approve, read_transfer
from cambist_chainkit.eip55 import keccak, parse_address, spell

from .authorization import AUTHORIZATION_TYPE, Authorization, read_authorization
from .payload import TxFields, read_payload, write_signed
from .sweeper import agent_of, read_collect

_SHOWN_MAX: Final = 64


class EvmFamily(AddressFamily):
    """Derives by BIP-32, spells by EIP-55, writes payment links by EIP-681, and reads what it is to sign."""

    name: ClassVar[str] = "evm"
    coin_type: ClassVar[int] = 60

    def derive_address(self, account_xpub: str, change: int, index: int) -> str:
        """Derive the address at ``account/change/index``. Raises ExtendedKeyError, which never shows the key."""
        return _address(branch(account_xpub, change).child_point(index))

    def normalize_address(self, text: str) -> str:
        """Return the EIP-55 spelling."""
        address = parse_address(text)
        if address is None:
            raise InvalidAddressError(
                f"{text[:_SHOWN_MAX]!r} is no EVM address: 0x and 40 hex digits, in one case or with a right checksum"
            )
        return address

    def address_key(self, address: str) -> bytes:
        return bytes.fromhex(address[2:])

    def payment_uri(self, chain: ChainInfo, address: str, token: Token, amount: Units) -> str:
        """Return an EIP-681 link. Its scheme is ``ethereum:`` on every EVM chain; the chain id tells them apart."""
        if token.contract is None:
            return f"ethereum:{address}@{chain.chain_id_num}?value={amount}"
        return f"ethereum:{token.contract}@{chain.chain_id_num}/transfer?address={address}&uint256={amount}"

    def address_uri(self, chain: ChainInfo, address: str) -> str:
        """Return an EIP-681 link without an amount. It says which chain is meant, for the address is that of all."""
        return f"ethereum:{address}@{chain.chain_id_num}"

    def effects(self, chain: ChainInfo, payload: bytes) -> Effects:
        """Read out of a payload all that it does.

        ``fee_max`` is gas times price. What a rollup charges beside it for its data stands in no payload.
        """
        if payload[:1] == AUTHORIZATION_TYPE:
            return _delegation(chain, read_authorization(payload))
        fields = read_payload(payload)
        _check_chain(chain, fields.chain_id)
        to = spell(fields.to.hex())
        for one in fields.authorizations:
            # Each is signed by whom it binds, and was judged then; another contract's has no business here anyway.
            if to != chain.sweeper or _delegation(chain, one.authorization).delegate != agent_of(to):
                raise UnreadablePayloadError(
                    "the payload carries an authorization for something other than the sweeper"
                )
        done = _Done(chain, fields, to)
        return Effects(
            movements=done.movements,
            fee_max=Units(fields.gas * fields.price),
            sequence=fields.sequence,
            allowance=done.allowance,
            call=done.call,
        )

    def digest(self, payload: bytes) -> bytes:
        return keccak(payload)

    def seal(self, tx: UnsignedTx, signature: bytes) -> SignedTx:
        """Put payload and signature together.

        Raises SignatureError where the signature is not the sender's: what it would send, another account would pay.
        """
        raw = write_signed(tx.payload, checked(tx.payload, tx.sender, signature))
        return SignedTx(tx_id="0x" + keccak(raw).hex(), raw=raw)


def checked(payload: bytes, address: str, signature: bytes) -> tuple[int, int, int]:
    """Return r, s and parity of a signature of the address. Raises SignatureError."""
    return signatures.checked(signature, keccak(payload), address, _address)


def _address(point: bytes) -> str:
    return spell(keccak(point)[12:].hex())


def _check_chain(chain: ChainInfo, chain_id: int) -> None:
    if chain.chain_id_num is None or chain_id != chain.chain_id_num:
        raise UnreadablePayloadError(f"the payload is for chain id {chain_id}, and {chain.id} is {chain.chain_id_num}")


def _delegation(chain: ChainInfo, authorization: Authorization) -> Effects:
    _check_chain(chain, authorization.chain_id)
    delegate = spell(authorization.contract.hex())
    return Effects(movements=(), fee_max=Units(0), sequence=authorization.sequence, delegate=delegate)


class _Done:
    """What a transaction does: it moves coin or tokens, allows somebody to take tokens, or calls what nobody knows."""

    def __init__(self, chain: ChainInfo, fields: TxFields, to: str) -> None:
        """Read it. Raises UnreadablePayloadError."""
        self.movements: tuple[Movement, ...] = ()
        self.allowance: Allowance | None = None
        self.call: Call | None = None
        if not fields.data:
            self.movements = (Movement(contract=None, recipient=to, amount=Units(fields.value)),)
        elif to == chain.sweeper:
            self.movements = _swept(chain, fields)
        elif all(token.contract != to for token in chain.tokens):
            self.call = Call(to_address=to, data=fields.data, value=Units(fields.value))
        else:
            self._read_token(fields, to)

    def _read_token(self, fields: TxFields, to: str) -> None:
        """Read a call of a registered token: all that its other functions can do cannot be told."""
        if fields.value:
            raise UnreadablePayloadError("the payload sends native coin along with a token's call")
        if (transfer := read_transfer(fields.data)) is not None:
            recipient, amount = transfer
            self.movements = (Movement(contract=to, recipient=spell(recipient.hex()), amount=Units(amount)),)
        elif (approval := read_approve(fields.data)) is not None:
            spender, amount = approval
            self.allowance = Allowance(contract=to, spender=spell(spender.hex()), amount=Units(amount))
        else:
            raise UnreadablePayloadError("the payload calls something other than a token's transfer or approve")


def _swept(chain: ChainInfo, fields: TxFields) -> tuple[Movement, ...]:
    items = read_collect(fields.data)
    if items is None:
        raise UnreadablePayloadError("the payload calls something other than the sweeper's collect")
    if fields.value:
        raise UnreadablePayloadError("the payload sends native coin along with a call")
    known = {token.contract for token in chain.tokens}
    if any(item.contract not in known for item in items):
        raise UnreadablePayloadError(f"the payload sweeps what is no registered token of {chain.id}")
    return items
