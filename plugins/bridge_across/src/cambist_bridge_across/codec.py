"""Calls and logs of the SpokePool in plain values, by web3.py's codec.

It is imported when it is first needed: web3.py takes a second to import, and the web process does without. One of the
libraries that it brings raises the whole process's recursion limit, which is put back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from msgspec import Struct

from cambist.plugin import Log
from cambist_chainkit.imports import limit_kept

from .abi import (
    CLAIMED,
    CLAIMED_TOPIC,
    DEPOSIT,
    DEPOSIT_SELECTOR,
    DEPOSITED,
    DEPOSITED_TOPIC,
    FILLED,
    FILLED_TOPIC,
    REFUNDED,
    REFUNDED_TOPIC,
)

WORD: Final = 32


class UndecodableError(ValueError):
    """These bytes are not what the contract's interface says, or are not written as the codec writes them."""


class DepositCall(Struct, frozen=True, kw_only=True):
    """What ``depositV3`` is told. Addresses are in lower case where they were read."""

    depositor: str
    recipient: str
    input_token: str
    output_token: str
    input_amount: int
    output_amount: int
    destination_chain_id: int
    exclusive_relayer: str
    quote_timestamp: int
    fill_deadline: int
    exclusivity: int
    message: bytes = b""


class Deposited(Struct, frozen=True):
    """What ``FundsDeposited`` tells. Addresses are words, since other kinds of chains have longer ones."""

    input_token: bytes
    output_token: bytes
    input_amount: int
    output_amount: int
    destination_chain_id: int
    deposit_id: int
    quote_timestamp: int
    fill_deadline: int
    exclusivity_deadline: int
    depositor: bytes
    recipient: bytes
    exclusive_relayer: bytes
    message: bytes


class Filled(Struct, frozen=True):
    """What ``FilledRelay`` tells: the deposit as the filler knows it, and what was done.

    That is what is ``updated``: a depositor can have signed another recipient or another amount since the deposit.
    """

    input_token: bytes
    output_token: bytes
    input_amount: int
    output_amount: int
    repayment_chain_id: int
    origin_chain_id: int
    deposit_id: int
    fill_deadline: int
    exclusivity_deadline: int
    exclusive_relayer: bytes
    relayer: bytes
    depositor: bytes
    recipient: bytes
    message_hash: bytes
    updated_recipient: bytes
    updated_message_hash: bytes
    updated_output_amount: int
    fill_type: int


class Refunded(Struct, frozen=True):
    """What ``ExecutedRelayerRefundRoot`` tells: who was sent how much of one token, in one leaf of a bundle.

    ``deferred`` is whether the token refused any of these transfers; which one, only its own logs show.
    """

    amount_to_return: int
    chain_id: int
    amounts: Sequence[int]
    bundle_id: int
    leaf_id: int
    token: str
    addresses: Sequence[str]
    deferred: bool
    caller: str


class Claimed(Struct, frozen=True):
    """What ``ClaimedRelayerRefund`` tells: a refund that the token had refused, and who has it sent to whom by now."""

    token: bytes
    recipient: bytes
    amount: int
    caller: str


class Codec:
    """Writes and reads canonical bytes only: whatever was written otherwise is UndecodableError."""

    def __init__(self, web3: Any) -> None:  # noqa: ANN401 - the type is only there once it is imported
        self._codec = web3().codec

    def deposit_call(self, deposit: DepositCall) -> bytes:
        """Return the bytes that make this deposit."""
        values = [getattr(deposit, name) for name in DepositCall.__struct_fields__]
        encoded: bytes = self._codec.encode(_types(DEPOSIT["inputs"]), values)
        return DEPOSIT_SELECTOR + encoded

    def read_deposit_call(self, data: bytes) -> DepositCall:
        """Return the deposit that these bytes make. Raises UndecodableError."""
        if data[:4] != DEPOSIT_SELECTOR:
            raise UndecodableError("this is no call of depositV3")
        values = self._decode(_types(DEPOSIT["inputs"]), data[4:])
        return DepositCall(**dict(zip(DepositCall.__struct_fields__, values, strict=True)))

    def read_deposited(self, log: Log) -> Deposited:
        """Return what a log of a deposit tells. Raises UndecodableError."""
        return Deposited(*self._event(DEPOSITED, DEPOSITED_TOPIC, log))

    def read_filled(self, log: Log) -> Filled:
        """Return what a log of a fill tells. Raises UndecodableError."""
        values = self._event(FILLED, FILLED_TOPIC, log)
        return Filled(*values[:-1], *values[-1])

    def read_refunded(self, log: Log) -> Refunded:
        """Return what a log of refunds tells. Raises UndecodableError."""
        told = Refunded(*self._event(REFUNDED, REFUNDED_TOPIC, log))
        if len(told.amounts) != len(told.addresses):
            raise UndecodableError("there are not as many amounts as addresses")
        return told

    def read_claimed(self, log: Log) -> Claimed:
        """Return what a log of a claimed refund tells. Raises UndecodableError."""
        return Claimed(*self._event(CLAIMED, CLAIMED_TOPIC, log))

    def _event(self, event: Mapping[str, Any], topic: bytes, log: Log) -> Sequence[Any]:
        indexed = [entry for entry in event["inputs"] if entry["indexed"]]
        plain = [entry for entry in event["inputs"] if not entry["indexed"]]
        if log.topics[:1] != (topic,) or len(log.topics) != 1 + len(indexed):
            raise UndecodableError(f"this is no log of {event['name']}")
        # Each of them is one word, of a type that is not hashed.
        topics = iter(self._decode(_types(indexed), b"".join(log.topics[1:])))
        values = iter(self._decode(_types(plain), log.data))
        return [next(topics if entry["indexed"] else values) for entry in event["inputs"]]

    def _decode(self, types: Sequence[str], data: bytes) -> Sequence[Any]:
        if len(data) % WORD:
            raise UndecodableError("these are no whole words")
        try:
            values: Sequence[Any] = self._codec.decode(types, data)
            again = self._codec.encode(types, values)
        except Exception as error:  # whatever the codec finds wrong, and it has many words for it
            raise UndecodableError("these bytes are not what the contract's interface says") from error
        if again != data:
            raise UndecodableError("these bytes say what they say in another way than the codec would")
        return values


@cache
def codec() -> Codec:
    """Return the codec, and import web3.py at the first time. Raises ImportError."""
    with limit_kept():
        from web3 import Web3  # noqa: PLC0415 - see above
    return Codec(Web3)


def _types(parameters: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    return [
        f"({','.join(_types(entry['components']))})" if entry["type"] == "tuple" else entry["type"]
        for entry in parameters
    ]
