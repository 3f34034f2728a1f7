"""What a transaction says in the bytes that were signed, beside which a node's JSON is only a translation."""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

from cambist.plugin import InconsistentChainError, UnreadablePayloadError

from .protobuf import bytes_in, decode, fields_of, number_in
from .wire import TronTx

NATIVE: Final = "TransferContract"

_NAME: Final = f"protocol.{NATIVE}".encode()
_NATIVE_TYPE: Final = 1
_CONTRACT, _TYPE, _PARAMETER, _VALUE = 11, 1, 2, 2
_OWNER, _TO, _AMOUNT = 1, 2, 3
_NAME_SHOWN: Final = 64


class Payment(NamedTuple):
    """A transfer of native coin as it was signed: addresses of 21 bytes in hex, and an amount in sun."""

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
    told = _told(tx)
    if told is None and _NAME not in raw:
        return
    try:
        signed = payment_in(raw)
    except (ValueError, UnreadablePayloadError):
        # Nodes take more spellings than one, and whoever sends another must not be able to stop the chain.
        return
    if signed != told:
        raise InconsistentChainError(f"transaction {tx.id[:_NAME_SHOWN]} says something else than was signed")


def payment_in(raw: bytes) -> Payment | None:
    """Return the transfer of native coin that was signed, None where it is something else.

    Raises ValueError or UnreadablePayloadError for one that is not spelled as everybody spells it.
    """
    contract = _last(raw, _CONTRACT)
    parameter = _last(contract, _PARAMETER)
    if _last(contract, _TYPE) != _NATIVE_TYPE:
        return None
    value = decode(_bytes(_last(parameter, _VALUE)), {_OWNER: "bytes", _TO: "bytes", _AMOUNT: "number"})
    return Payment(bytes_in(value, _OWNER).hex(), bytes_in(value, _TO).hex(), number_in(value, _AMOUNT))


def _told(tx: TronTx) -> Payment | None:
    contract = tx.raw_data.contract[0]
    value = contract.parameter.value
    if contract.type != NATIVE:
        return None
    return Payment(value.owner_address, value.to_address, value.amount)


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
