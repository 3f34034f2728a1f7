"""The transactions that are sent, as bytes: what a payload says, and nothing that this does not read. Pure.

A *payload* is the protobuf ``raw_data`` of a transaction; its SHA-256 is what the sender's key signs, and the
transaction's id. One contract each, of seven kinds. What could change whom it binds or what it costs, and is never
written here, is not read either: memos, permissions, values sent along with a call, locked delegations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from cambist.plugin import Action, UnreadablePayloadError
from cambist_chainkit.contracts import read_transfer, transfer_data

from .addresses import ADDRESS_BYTES, PREFIX
from .protobuf import Kind, Message, bytes_in, decode, encode, number_in

SIGNATURE_BYTES: Final = 65
RESULT_BYTES_MAX: Final = 64
"""What nodes add to a transaction's size for the result that they will store with it."""

_ENERGY: Final = 1
_REF_BYTES: Final = 2
_REF_HASH_BYTES: Final = 8
_TYPE_URL: Final = "type.googleapis.com/protocol."

# Field numbers of Transaction.raw, of its Contract, and of Any.
_REF, _REF_HASH, _EXPIRATION, _CONTRACT, _TIMESTAMP, _FEE_LIMIT = 1, 4, 8, 11, 14, 18
_TYPE, _PARAMETER = 1, 2
_URL, _VALUE = 1, 2
_RAW_FIELDS: Final[Mapping[int, Kind]] = {
    _REF: "bytes",
    _REF_HASH: "bytes",
    _EXPIRATION: "number",
    _CONTRACT: "bytes",
    _TIMESTAMP: "number",
    _FEE_LIMIT: "number",
}
_CONTRACT_FIELDS: Final[Mapping[int, Kind]] = {_TYPE: "number", _PARAMETER: "bytes"}
_ANY_FIELDS: Final[Mapping[int, Kind]] = {_URL: "bytes", _VALUE: "bytes"}


class _Shape(Struct, frozen=True, kw_only=True):
    """How a kind of contract is written: its number and name, and the fields of what it needs beside the owner."""

    number: int
    name: str
    to_address: int | None = None
    amount: int | None = None
    resource: int | None = None
    contract: int | None = None
    data: int | None = None

    @property
    def kinds(self) -> dict[int, Kind]:
        kinds: dict[int, Kind] = {1: "bytes"}
        kinds |= {field: "bytes" for field in (self.to_address, self.contract, self.data) if field is not None}
        return kinds | {field: "number" for field in (self.amount, self.resource) if field is not None}


_CALL: Final = _Shape(number=31, name="TriggerSmartContract", contract=2, data=4)
_SHAPES: Final[Mapping[Action, _Shape]] = {
    "transfer": _Shape(number=1, name="TransferContract", to_address=2, amount=3),
    "stake": _Shape(number=54, name="FreezeBalanceV2Contract", amount=2, resource=3),
    "unstake": _Shape(number=55, name="UnfreezeBalanceV2Contract", amount=2, resource=3),
    "withdraw": _Shape(number=56, name="WithdrawExpireUnfreezeContract"),
    "lend": _Shape(number=57, name="DelegateResourceContract", resource=2, amount=3, to_address=4),
    "reclaim": _Shape(number=58, name="UnDelegateResourceContract", resource=2, amount=3, to_address=4),
}
_ACTIONS: Final[Mapping[int, Action]] = {shape.number: action for action, shape in _SHAPES.items()}


class TxFields(Struct, frozen=True, kw_only=True):
    """What a transaction says. Addresses are 20 bytes, times milliseconds since 1970 UTC.

    ``contract`` is the token's, None for TRX. ``to_address`` is None where an action concerns nobody else, ``amount`` 0
    where all there is is meant. Stakes are stakes for energy.
    """

    action: Action = "transfer"
    owner: bytes
    to_address: bytes | None
    amount: int
    contract: bytes | None = None
    ref_block_bytes: bytes
    ref_block_hash: bytes
    expiration_ms: int
    timestamp_ms: int
    fee_limit: int = 0


def write_payload(fields: TxFields) -> bytes:
    """Return the bytes whose hash is signed."""
    shape, body = _contract(fields)
    value = encode({1: PREFIX + fields.owner, **body})
    wrapped = encode({_URL: (_TYPE_URL + shape.name).encode("ascii"), _VALUE: value})
    return encode(
        {
            _REF: fields.ref_block_bytes,
            _REF_HASH: fields.ref_block_hash,
            _EXPIRATION: fields.expiration_ms,
            _CONTRACT: encode({_TYPE: shape.number, _PARAMETER: wrapped}),
            _TIMESTAMP: fields.timestamp_ms,
            _FEE_LIMIT: fields.fee_limit,
        }
    )


def _contract(fields: TxFields) -> tuple[_Shape, dict[int, int | bytes]]:
    if fields.contract is not None:
        return _CALL, {2: PREFIX + fields.contract, 4: transfer_data(fields.to_address or b"", fields.amount)}
    shape = _SHAPES[fields.action]
    body: dict[int, int | bytes] = {}
    if shape.to_address is not None:
        body[shape.to_address] = PREFIX + (fields.to_address or b"")
    if shape.amount is not None:
        body[shape.amount] = fields.amount
    if shape.resource is not None:
        body[shape.resource] = _ENERGY
    return shape, body


def read_payload(payload: bytes) -> TxFields:
    """Return what a payload says. Raises UnreadablePayloadError for all that ``write_payload`` does not write."""
    raw = decode(payload, _RAW_FIELDS)
    contract = decode(bytes_in(raw, _CONTRACT), _CONTRACT_FIELDS)
    number = number_in(contract, _TYPE)
    action = "transfer" if number == _CALL.number else _ACTIONS.get(number)
    if action is None:
        raise UnreadablePayloadError(f"the payload holds a contract of type {number}, which is not sent")
    shape = _CALL if number == _CALL.number else _SHAPES[action]
    wrapped = decode(bytes_in(contract, _PARAMETER), _ANY_FIELDS)
    body = decode(bytes_in(wrapped, _VALUE), shape.kinds)
    to_address, amount = _moved(shape, body)
    fields = TxFields(
        action=action,
        owner=_address(body, 1),
        to_address=to_address,
        amount=amount,
        contract=None if shape.contract is None else _address(body, shape.contract),
        ref_block_bytes=bytes_in(raw, _REF),
        ref_block_hash=bytes_in(raw, _REF_HASH),
        expiration_ms=number_in(raw, _EXPIRATION),
        timestamp_ms=number_in(raw, _TIMESTAMP),
        fee_limit=number_in(raw, _FEE_LIMIT),
    )
    _check(fields)
    if write_payload(fields) != payload:
        raise UnreadablePayloadError("the payload is not written in the one way in which payloads are written here")
    return fields


def _moved(shape: _Shape, body: Message) -> tuple[bytes | None, int]:
    """Return to whom, and how much."""
    if shape.data is not None:
        transfer = read_transfer(bytes_in(body, shape.data))
        if transfer is None:
            raise UnreadablePayloadError("the payload calls something other than transfer(address,uint256)")
        return transfer
    if shape.resource is not None and number_in(body, shape.resource) != _ENERGY:
        raise UnreadablePayloadError("the payload is about a stake for something other than energy")
    to_address = None if shape.to_address is None else _address(body, shape.to_address)
    return to_address, 0 if shape.amount is None else number_in(body, shape.amount)


def _address(body: Message, field: int) -> bytes:
    address = bytes_in(body, field)
    if len(address) != 1 + ADDRESS_BYTES or address[:1] != PREFIX:
        raise UnreadablePayloadError(f"the payload's field {field} holds no address")
    return address[1:]


def _check(fields: TxFields) -> None:
    if (len(fields.ref_block_bytes), len(fields.ref_block_hash)) != (_REF_BYTES, _REF_HASH_BYTES):
        raise UnreadablePayloadError("the payload refers to no block")
    if not fields.expiration_ms or fields.expiration_ms % 1000:
        raise UnreadablePayloadError("the payload does not expire at a whole second")
    if not fields.timestamp_ms:
        raise UnreadablePayloadError("the payload has no timestamp, which keeps it apart from others like it")
    if bool(fields.fee_limit) != (fields.contract is not None):
        raise UnreadablePayloadError("the payload has a limit for energy and runs no contract, or runs one without")


def digest(payload: bytes) -> bytes:
    """Return the 32 bytes that are signed. In hex they are the transaction's id."""
    return hashlib.sha256(payload).digest()


def write_signed(payload: bytes, signature: bytes) -> bytes:
    """Return what is broadcast."""
    return encode({1: payload, 2: signature})


def read_signed(raw: bytes) -> TxFields:
    """Return what a transaction says that ``write_signed`` wrote. Raises UnreadablePayloadError for any other."""
    return read_payload(bytes_in(decode(raw, {1: "bytes", 2: "bytes"}), 1))


def bandwidth_of(payload: bytes) -> int:
    """Return how many bytes of bandwidth the payload will use up once it is signed."""
    return len(write_signed(payload, b"\0" * SIGNATURE_BYTES)) + RESULT_BYTES_MAX
