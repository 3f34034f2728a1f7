"""What a transaction says in the bytes that were signed, beside which a node's JSON is only a translation."""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

from cambist.plugin import InconsistentChainError

from .protobuf import encode, fields_of
from .wire import TronTx

NATIVE: Final = "TransferContract"

_URL: Final = f"type.googleapis.com/protocol.{NATIVE}".encode()
_URL_HEX: Final = _URL.hex()
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
    if told is None and _URL_HEX not in tx.raw_data_hex:
        return
    if told is not None and _spelled(told) in tx.raw_data_hex:
        return
    try:
        signed = payment_in(raw)
    except ValueError:
        # Nodes take what nobody here can read, and whoever sends it must not be able to stop the chain.
        return
    if signed != told:
        raise InconsistentChainError(f"transaction {tx.id[:_NAME_SHOWN]} says something else than was signed")


def payment_in(raw: bytes) -> Payment | None:
    """Return the transfer of native coin that was signed, None where it is something else. Raises ValueError."""
    contract = _last(raw, _CONTRACT)
    if contract is None:
        raise ValueError("no contract")
    kind, parameter = _last(contract, _TYPE), _last(contract, _PARAMETER)
    if kind != _NATIVE_TYPE:
        return None
    value = _bytes(_last(_bytes(parameter), _VALUE))
    amount = _last(value, _AMOUNT)
    return Payment(
        _bytes(_last(value, _OWNER)).hex(), _bytes(_last(value, _TO)).hex(), amount if isinstance(amount, int) else 0
    )


def _told(tx: TronTx) -> Payment | None:
    contract = tx.raw_data.contract[0]
    value = contract.parameter.value
    if contract.type != NATIVE:
        return None
    return Payment(value.owner_address, value.to_address, value.amount)


def _spelled(payment: Payment) -> str:
    """Return what a transaction's bytes hold, in hex, where it is written as everybody writes it; else nothing's."""
    try:
        owner, to = bytes.fromhex(payment.owner_address), bytes.fromhex(payment.to_address)
        return encode({1: _URL, _VALUE: encode({_OWNER: owner, _TO: to, _AMOUNT: payment.amount})}).hex()
    except ValueError:
        return " "


def _last(message: int | bytes | None, field: int) -> int | bytes | None:
    """Return a field of a message; where it stands several times, the last counts."""
    found: int | bytes | None = None
    for number, value in fields_of(_bytes(message)):
        if number == field:
            found = value
    return found


def _bytes(value: int | bytes | None) -> bytes:
    if value is None:
        return b""
    if isinstance(value, int):
        raise ValueError("a number where a message should be")  # noqa: TRY004  of the data, not of the program
    return value
