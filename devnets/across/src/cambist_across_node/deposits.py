"""A deposit as the SpokePool's log tells of it, and what fillers and bundles have to say to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final

from eth_abi.abi import encode
from msgspec import Struct

from cambist_chainkit.eip55 import keccak, spell

from .artifacts import pool

RELAY: Final = "(bytes32,bytes32,bytes32,bytes32,bytes32,uint256,uint256,uint256,uint256,uint32,uint32,bytes)"
SLOW_LEAF: Final = f"({RELAY},uint256,uint256)"
REFUND_LEAF: Final = "(uint256,uint256,uint256[],uint32,address,address[])"

DEPOSITED: Final = "FundsDeposited"
FILLED: Final = "FilledRelay"
SLOW_FILL: Final = 2
"""Of the kinds of fills, the one that the SpokePool pays itself."""
READ_MAX: Final = 10_000
"""Deposits of which is kept what takes long to work out: a relayer reads all there are with each poll."""


class FillStatus(IntEnum):
    """What the SpokePool on the other chain knows of a deposit, as it numbers it."""

    UNFILLED = 0
    SLOW_FILL_REQUESTED = 1
    FILLED = 2


class Relay(Struct, frozen=True, kw_only=True):
    """What is filled, in the order of the contract's struct. Addresses are words of 32 bytes."""

    depositor: bytes
    recipient: bytes
    exclusive_relayer: bytes
    input_token: bytes
    output_token: bytes
    input_amount: int
    output_amount: int
    origin: int
    number: int
    fill_deadline: int
    exclusivity_deadline: int
    message: bytes

    @property
    def values(self) -> tuple[Any, ...]:
        """What the contract is told."""
        return tuple(getattr(self, name) for name in self.__struct_fields__)

    def hash(self, destination: int) -> bytes:
        """Return the name under which the SpokePool of that chain knows whether it was filled."""
        return _hash(self, destination)


@lru_cache(maxsize=READ_MAX)
def _hash(relay: Relay, destination: int) -> bytes:
    return keccak(encode([RELAY, "uint256"], [relay.values, destination]))


class Deposit(Struct, frozen=True, kw_only=True):
    """A deposit that was made on one chain for another."""

    relay: Relay
    destination: int
    tx_id: str

    @property
    def hash(self) -> bytes:
        return self.relay.hash(self.destination)


def read_deposit(log: Mapping[str, Any], origin: int) -> Deposit:
    """Return the deposit that a node's log of ``FundsDeposited`` tells of."""
    return _read(tuple(log["topics"]), log["data"], log["transactionHash"], origin)


@lru_cache(maxsize=READ_MAX)
def _read(topics: tuple[str, ...], data: str, tx_id: str, origin: int) -> Deposit:
    told = pool().read_log(DEPOSITED, *_parts(topics, data))
    return Deposit(
        relay=Relay(
            depositor=told["depositor"],
            recipient=told["recipient"],
            exclusive_relayer=told["exclusiveRelayer"],
            input_token=told["inputToken"],
            output_token=told["outputToken"],
            input_amount=told["inputAmount"],
            output_amount=told["outputAmount"],
            origin=origin,
            number=told["depositId"],
            fill_deadline=told["fillDeadline"],
            exclusivity_deadline=told["exclusivityDeadline"],
            message=told["message"],
        ),
        destination=told["destinationChainId"],
        tx_id=tx_id,
    )


def fill_kind(log: Mapping[str, Any], deposit: Deposit) -> int | None:
    """Return the kind of the fill that a node's log of ``FilledRelay`` tells of, or None where it is another's."""
    told = pool().read_log(FILLED, *_parts(log["topics"], log["data"]))
    relay = deposit.relay
    same = (
        (told["depositor"], told["recipient"], told["exclusiveRelayer"], told["inputToken"], told["outputToken"]),
        (told["inputAmount"], told["outputAmount"], told["originChainId"], told["depositId"], told["fillDeadline"]),
        (told["exclusivityDeadline"], told["messageHash"]),
    ) == (
        (relay.depositor, relay.recipient, relay.exclusive_relayer, relay.input_token, relay.output_token),
        (relay.input_amount, relay.output_amount, relay.origin, relay.number, relay.fill_deadline),
        (relay.exclusivity_deadline, keccak(relay.message) if relay.message else bytes(32)),
    )
    kind: int = told["relayExecutionInfo"][-1]
    return kind if same else None


def word(address: str) -> bytes:
    """Return an address as a word."""
    return bytes(12) + bytes.fromhex(address[2:])


def number_word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def from_word(one: bytes) -> str:
    """Return the address that a word holds."""
    return spell(one[12:].hex())


def _parts(topics: Sequence[str], data: str) -> tuple[list[bytes], bytes]:
    return [bytes.fromhex(topic[2:]) for topic in topics], bytes.fromhex(data[2:])
