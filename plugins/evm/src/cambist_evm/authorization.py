"""EIP-7702: an address lets a contract's code run for it. Its authorization as bytes, unsigned and signed. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cambist.plugin import UnreadablePayloadError
from cambist_chainkit.eip55 import ADDRESS_BYTES

from .rlp import Encodable, Item, RlpError, decode, encode, number

AUTHORIZATION_TYPE: Final = b"\x05"
DESIGNATOR: Final = "0xef0100"
"""What the code of an address that delegates begins with; the contract's address follows."""

_COUNTER_BITS: Final = 64
_SIGNED_FIELDS: Final = 6
_FIELDS: Final = 3


class Authorization(Struct, frozen=True, kw_only=True):
    """What an address agrees to: that ``contract`` acts for it on one chain, from its next ``sequence`` on."""

    chain_id: int
    contract: bytes
    sequence: int


class SignedAuthorization(Struct, frozen=True, kw_only=True):
    """The same with the parity, r and s of its signature. Whose it is, only recovering the key tells."""

    authorization: Authorization
    signature: tuple[int, int, int]

    @property
    def body(self) -> list[Encodable]:
        return [*_body(self.authorization), *self.signature]


def write_authorization(authorization: Authorization) -> bytes:
    """Return the bytes that are signed."""
    return AUTHORIZATION_TYPE + encode(_body(authorization))


def read_authorization(payload: bytes) -> Authorization:
    """Return what is agreed to. Raises UnreadablePayloadError for all that ``write_authorization`` does not write.

    Chain id 0 stands for every chain there is, so it is refused.
    """
    try:
        found = _read(_items(decode(payload[1:]), _FIELDS))
    except RlpError as error:
        raise UnreadablePayloadError(f"the payload is no authorization: {error}") from error
    if write_authorization(found) != payload:
        raise UnreadablePayloadError("the payload is not written in the canonical way")
    return found


def read_signed(item: Item) -> SignedAuthorization:
    """Return one of a transaction's list. Raises UnreadablePayloadError, RlpError."""
    items = _items(item, _SIGNED_FIELDS)
    parity, r, s = (number(value) for value in items[_FIELDS:])
    return SignedAuthorization(authorization=_read(items[:_FIELDS]), signature=(parity, r, s))


def _body(authorization: Authorization) -> list[Encodable]:
    return [authorization.chain_id, authorization.contract, authorization.sequence]


def _read(items: list[Item]) -> Authorization:
    chain_id, contract, sequence = items
    if not isinstance(contract, bytes) or len(contract) != ADDRESS_BYTES:
        raise UnreadablePayloadError("the payload authorizes no contract")
    found = Authorization(chain_id=number(chain_id), contract=contract, sequence=number(sequence, _COUNTER_BITS))
    if found.chain_id == 0:
        raise UnreadablePayloadError("the payload authorizes a contract on every chain at once")
    return found


def _items(item: Item, count: int) -> list[Item]:
    if not isinstance(item, list) or len(item) != count:
        raise UnreadablePayloadError(f"an authorization is no list of {count} fields")
    return item
