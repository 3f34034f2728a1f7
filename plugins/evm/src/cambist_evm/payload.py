"""The kinds of transaction that are sent, as bytes: EIP-1559's, EIP-155's for chains without it, and EIP-7702's. Pure.

A *payload* is what the sender's key signs the hash of. Reading one is strict: what is not written in the one canonical
way is not read at all.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cambist.plugin import UnreadablePayloadError
from cambist_chainkit.eip55 import ADDRESS_BYTES

from .authorization import SignedAuthorization, read_signed
from .rlp import Encodable, Item, RlpError, decode, encode, number

_DYNAMIC_FEE_TYPE: Final = b"\x02"
_DYNAMIC_FEE_FIELDS: Final = 9
_SET_CODE_TYPE: Final = b"\x04"
_SET_CODE_FIELDS: Final = 10
_COUNTS: Final = {_DYNAMIC_FEE_TYPE: _DYNAMIC_FEE_FIELDS, _SET_CODE_TYPE: _SET_CODE_FIELDS}
_LEGACY_FIELDS: Final = 9
_LIST: Final = 0xC0
_COUNTER_BITS: Final = 64
_V_OFFSET: Final = 35


class TxFields(Struct, frozen=True, kw_only=True):
    """What a transaction says. ``tip`` is None in the legacy kind, whose ``price`` is paid in full.

    With ``authorizations`` it is EIP-7702's kind, which has a tip.
    """

    chain_id: int
    sequence: int
    gas: int
    price: int
    tip: int | None
    to: bytes
    value: int
    data: bytes
    authorizations: tuple[SignedAuthorization, ...] = ()


def write_payload(fields: TxFields) -> bytes:
    """Return the bytes that are signed."""
    if fields.tip is None:
        return encode([*_legacy_body(fields), fields.chain_id, 0, 0])
    return _type(fields) + encode(_dynamic_fee_body(fields))


def read_payload(payload: bytes) -> TxFields:
    """Return what a payload says. Raises UnreadablePayloadError for all that ``write_payload`` does not write."""
    try:
        fields = _read_typed(payload) if payload[:1] in _COUNTS else _read_legacy(payload)
    except RlpError as error:
        raise UnreadablePayloadError(f"the payload is no transaction: {error}") from error
    if len(fields.to) != ADDRESS_BYTES:
        raise UnreadablePayloadError("the payload creates a contract")
    if write_payload(fields) != payload:
        raise UnreadablePayloadError("the payload is not written in the canonical way")
    return fields


def write_signed(payload: bytes, signature: tuple[int, int, int]) -> bytes:
    """Return what is broadcast: the payload with r, s and the parity of the signature's point put into it."""
    fields = read_payload(payload)
    r, s, parity = signature
    if fields.tip is None:
        return encode([*_legacy_body(fields), 2 * fields.chain_id + _V_OFFSET + parity, r, s])
    return _type(fields) + encode([*_dynamic_fee_body(fields), parity, r, s])


def _type(fields: TxFields) -> bytes:
    return _SET_CODE_TYPE if fields.authorizations else _DYNAMIC_FEE_TYPE


def _legacy_body(fields: TxFields) -> list[Encodable]:
    return [fields.sequence, fields.price, fields.gas, fields.to, fields.value, fields.data]


def _dynamic_fee_body(fields: TxFields) -> list[Encodable]:
    no_access_list: list[Encodable] = []
    authorizations: list[Encodable] = [[one.body for one in fields.authorizations]] if fields.authorizations else []
    return [
        fields.chain_id,
        fields.sequence,
        fields.tip or 0,
        fields.price,
        fields.gas,
        fields.to,
        fields.value,
        fields.data,
        no_access_list,
        *authorizations,
    ]


def _read_typed(payload: bytes) -> TxFields:
    items = _fields(decode(payload[1:]), _COUNTS[payload[:1]])
    chain_id, sequence, tip, price, gas, to, value, data, access_list, *authorizations = items
    if access_list != []:
        raise UnreadablePayloadError("the payload has an access list")
    fields = TxFields(
        chain_id=number(chain_id),
        sequence=number(sequence, _COUNTER_BITS),
        tip=number(tip),
        price=number(price),
        gas=number(gas, _COUNTER_BITS),
        to=_bytes(to),
        value=number(value),
        data=_bytes(data),
        authorizations=tuple(read_signed(one) for listed in authorizations for one in _listed(listed)),
    )
    if authorizations and not fields.authorizations:
        raise UnreadablePayloadError("the payload's list of authorizations is empty")
    if (fields.tip or 0) > fields.price:
        raise UnreadablePayloadError("the payload's tip is above its price")
    return fields


def _read_legacy(payload: bytes) -> TxFields:
    if not payload or payload[0] < _LIST:
        raise UnreadablePayloadError("the payload is of a kind of transaction that is not sent")
    sequence, price, gas, to, value, data, chain_id, zero, zero_too = _fields(decode(payload), _LEGACY_FIELDS)
    if (zero, zero_too) != (b"", b""):
        raise UnreadablePayloadError("the payload is signed already")
    return TxFields(
        chain_id=number(chain_id),
        sequence=number(sequence, _COUNTER_BITS),
        tip=None,
        price=number(price),
        gas=number(gas, _COUNTER_BITS),
        to=_bytes(to),
        value=number(value),
        data=_bytes(data),
    )


def _fields(item: Item, count: int) -> list[Item]:
    if not isinstance(item, list) or len(item) != count:
        raise UnreadablePayloadError(f"the payload is no list of {count} fields")
    return item


def _listed(item: Item) -> list[Item]:
    if not isinstance(item, list):
        raise UnreadablePayloadError("the payload has bytes where a list belongs")
    return item


def _bytes(item: Item) -> bytes:
    if not isinstance(item, bytes):
        raise UnreadablePayloadError("the payload has a list where bytes belong")
    return item
