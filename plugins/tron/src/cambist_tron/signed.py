"""What a transaction says in the bytes that were signed, beside which a node's JSON is only a translation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from cambist.plugin import InconsistentChainError, UnreadablePayloadError

from .protobuf import Kind, bytes_in, decode, fields_of, number_in
from .wire import TronTx, TxContract

NATIVE: Final = "TransferContract"
CALL: Final = "TriggerSmartContract"

_NAME: Final = f"protocol.{NATIVE}".encode()
_GOES_ALONG: Final = re.compile(rb"\x12\x15\x41.{20}\x18", re.DOTALL)
"""The contract that a call is for, and behind it the field of the coin that goes along, which most calls leave out."""

_NATIVE_TYPE: Final = 1
_CALL_TYPE: Final = 31
_CONTRACT, _TYPE, _PARAMETER, _VALUE = 11, 1, 2, 2
_OWNER, _TO, _AMOUNT = 1, 2, 3
_NATIVE_FIELDS: Final[Mapping[int, Kind]] = {_OWNER: "bytes", _TO: "bytes", _AMOUNT: "number"}
_CALL_FIELDS: Final[Mapping[int, Kind]] = {**_NATIVE_FIELDS, 4: "bytes", 5: "number", 6: "number"}
_NAME_SHOWN: Final = 64


class Payment(NamedTuple):
    """Native coin as it was signed: addresses of 21 bytes in hex, and an amount in sun.

    Of a transfer, or of a call that takes coin along to its contract.
    """

    owner_address: str
    to_address: str
    amount: int


def check_signed(tx: TronTx) -> None:
    """Raise InconsistentChainError unless the id is the hash of what was signed, and the JSON says the same.

    As far as it moves native coin: what a contract did stands in its result, which nobody signs.
    """
    try:
        raw = bytes.fromhex(tx.raw_data_hex)
    except ValueError as error:
        raise InconsistentChainError(f"transaction {tx.id[:_NAME_SHOWN]} came with bytes that are none") from error
    if hashlib.sha256(raw).hexdigest() != tx.id:
        raise InconsistentChainError(f"transaction {tx.id[:_NAME_SHOWN]} is not what its id says")
    if len(tx.raw_data.contract) != 1:
        raise InconsistentChainError(f"transaction {tx.id[:_NAME_SHOWN]} does more, or less, than one thing")
    told = payment_told(tx.raw_data.contract[0])
    if told is None and _NAME not in raw and _GOES_ALONG.search(raw) is None:
        return
    try:
        signed = payment_in(raw)
    except (ValueError, UnreadablePayloadError):
        # Nodes take more spellings than one, and whoever sends another must not be able to stop the chain.
        return
    if signed != told:
        raise InconsistentChainError(f"transaction {tx.id[:_NAME_SHOWN]} says something else than was signed")


def payment_in(raw: bytes) -> Payment | None:
    """Return the native coin that was signed away, None where it is something else.

    Raises ValueError or UnreadablePayloadError for one that is not spelled as everybody spells it.
    """
    contract = _last(raw, _CONTRACT)
    parameter = _last(contract, _PARAMETER)
    kind = _last(contract, _TYPE)
    if kind not in {_NATIVE_TYPE, _CALL_TYPE}:
        return None
    value = decode(_bytes(_last(parameter, _VALUE)), _NATIVE_FIELDS if kind == _NATIVE_TYPE else _CALL_FIELDS)
    amount = number_in(value, _AMOUNT)
    if kind == _CALL_TYPE and not amount:
        return None
    return Payment(bytes_in(value, _OWNER).hex(), bytes_in(value, _TO).hex(), amount)


def payment_told(contract: TxContract) -> Payment | None:
    """Return the native coin that a contract sends as the node says, None where it sends none."""
    value = contract.parameter.value
    if contract.type == NATIVE:
        return Payment(value.owner_address, value.to_address, value.amount)
    if contract.type == CALL and value.call_value:
        return Payment(value.owner_address, value.contract_address, value.call_value)
    return None


def _last(message: int | bytes | None, field: int) -> int | bytes | None:
    """Return a field of a message; where it stands several times, the last counts. Raises ValueError."""
    found: int | bytes | None = None
    for number, value in fields_of(_bytes(message)):
        if number == field:
            found = value
    return found


def _bytes(value: int | bytes | None) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("no message where one should be")  # noqa: TRY004  of the data, not of the program
    return value
