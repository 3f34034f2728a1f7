"""What a payload does, and how a signature completes it: the sending half of the address family. Pure."""

from __future__ import annotations

from cambist.plugin import (
    ChainInfo,
    Effects,
    Movement,
    SignedTx,
    Units,
    UnreadablePayloadError,
    UnsignedTx,
)
from cambist_chainkit import signatures

from .addresses import keccak, spell
from .authorization import AUTHORIZATION_TYPE, Authorization, read_authorization
from .payload import TxFields, read_payload, read_transfer, write_signed
from .sweeper import read_collect


def effects_of(chain: ChainInfo, payload: bytes) -> Effects:
    """Return all that the payload does. Raises UnreadablePayloadError."""
    if payload[:1] == AUTHORIZATION_TYPE:
        return _delegation(chain, read_authorization(payload))
    fields = read_payload(payload)
    _check_chain(chain, fields.chain_id)
    to = spell(fields.to.hex())
    for one in fields.authorizations:
        # Each is signed by whom it binds, and was judged then; another contract's has no business here all the same.
        if _delegation(chain, one.authorization).delegate != to or to != chain.sweeper:
            raise UnreadablePayloadError("the payload carries an authorization for something other than the sweeper")
    swept = to == chain.sweeper and bool(fields.data)
    return Effects(
        movements=_swept(chain, fields) if swept else (_movement(chain, fields),),
        fee_max=Units(fields.gas * fields.price),
        sequence=fields.sequence,
    )


def _check_chain(chain: ChainInfo, chain_id: int) -> None:
    if chain.chain_id_num is None or chain_id != chain.chain_id_num:
        message = f"the payload is for chain id {chain_id}, and {chain.id} is {chain.chain_id_num}"
        raise UnreadablePayloadError(message)


def _delegation(chain: ChainInfo, authorization: Authorization) -> Effects:
    _check_chain(chain, authorization.chain_id)
    delegate = spell(authorization.contract.hex())
    return Effects(movements=(), fee_max=Units(0), sequence=authorization.sequence, delegate=delegate)


def _swept(chain: ChainInfo, fields: TxFields) -> tuple[Movement, ...]:
    items = read_collect(fields.data)
    if items is None:
        raise UnreadablePayloadError("the payload calls something other than the sweeper's collect")
    if fields.value:
        raise UnreadablePayloadError("the payload sends native coin along with a call")
    known = {token.contract for token in chain.tokens}
    if any(item.contract not in known for item in items):
        raise UnreadablePayloadError(f"the payload sweeps what is no registered token of {chain.id}")
    return tuple(
        Movement(contract=item.contract, recipient=item.to_address, amount=item.amount, source=item.source)
        for item in items
    )


def _movement(chain: ChainInfo, fields: TxFields) -> Movement:
    to = spell(fields.to.hex())
    if not fields.data:
        return Movement(contract=None, recipient=to, amount=Units(fields.value))
    transfer = read_transfer(fields.data)
    if transfer is None:
        raise UnreadablePayloadError("the payload calls something other than transfer(address,uint256)")
    if fields.value:
        raise UnreadablePayloadError("the payload sends native coin along with a call")
    if all(token.contract != to for token in chain.tokens):
        # What code that nobody registered does under this name cannot be told.
        raise UnreadablePayloadError(f"the payload calls {to}, which is no registered token of {chain.id}")
    recipient, amount = transfer
    return Movement(contract=to, recipient=spell(recipient.hex()), amount=Units(amount))


def sealed(tx: UnsignedTx, signature: bytes) -> SignedTx:
    """Put payload and signature together.

    Raises SignatureError where the signature is not the sender's: what it would send, another account would pay.
    """
    r, s, parity = checked(tx.payload, tx.sender, signature)
    raw = write_signed(tx.payload, (r, s, parity))
    return SignedTx(tx_id="0x" + keccak(raw).hex(), raw=raw)


def checked(payload: bytes, address: str, signature: bytes) -> tuple[int, int, int]:
    """Return r, s and parity of a signature of the address. Raises SignatureError."""
    return signatures.checked(signature, keccak(payload), address, _address)


def _address(point: bytes) -> str:
    return spell(keccak(point)[12:].hex())
