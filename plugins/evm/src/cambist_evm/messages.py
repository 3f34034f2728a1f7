"""What a transaction says, to whom, and which native coin goes along: the same when it is tried and signed. Pure."""

from __future__ import annotations

from typing import NamedTuple

from cambist.plugin import Call, Intent, Step, Token, Units
from cambist_chainkit.contracts import approve_data, transfer_data

from .market import TX_BYTES_MAX

_FRAME_BYTES = 150
"""What a transaction has beside its data, at most."""


class Message(NamedTuple):
    """To whom, how much native coin, and the data; no data with a plain transfer."""

    to: str
    value: int
    data: bytes


def message_of(one: Intent | Step, amount: int | None = None) -> Message:
    """Return what carries out an intent or a step, for another amount of the token where one is named."""
    units = one.amount if amount is None else amount
    if one.action == "call":
        if one.call is None:
            raise ValueError("a call says what is called")
        return Message(one.call.to_address, one.call.value, one.call.data)
    if one.action == "approve":
        call = approval(one.token, one.to_address, Units(units))
        return Message(call.to_address, call.value, call.data)
    if one.token.contract is None:
        return Message(one.to_address, units, b"")
    return Message(one.token.contract, 0, transfer_data(_raw(one.to_address), units))


def approval(token: Token, spender: str, amount: Units) -> Call:
    """Return the call that allows the spender so much of the token."""
    if token.contract is None:
        raise ValueError(f"nobody can be allowed to take {token.symbol}, which is no contract's")
    return Call(to_address=token.contract, data=approve_data(_raw(spender), amount))


def parts_of(one: Intent | Step) -> int:
    """Return for how many transfers a rollup charges for the data of this one transaction."""
    size = len(message_of(one).data) + _FRAME_BYTES
    return -(-size // TX_BYTES_MAX)


def _raw(address: str) -> bytes:
    return bytes.fromhex(address[2:])
