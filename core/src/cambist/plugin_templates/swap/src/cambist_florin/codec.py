"""The one function that is called. Pure.

``swap(address sells, address buys, uint256 units, uint256 unitsMin, address recipient)``: takes the units from who calls,
and gives the recipient at least so much, or nothing happens.
"""

from __future__ import annotations

from msgspec import Struct

from cambist.plugin import UnreadablePayloadError

from .words import address_of, address_word, contract_of, number_word, read_address, read_number, words_of

SELECTOR = bytes.fromhex("d5bcb9b5")
"""The first bytes of Keccak-256 of ``swap(address,address,uint256,uint256,address)``."""


class Swap(Struct, frozen=True, kw_only=True):
    """What a call says, in the order in which it says it. A contract that is None is native coin."""

    sells: str | None
    buys: str | None
    units: int
    units_min: int
    recipient: str


def write(swap: Swap) -> bytes:
    """Return the bytes of the call."""
    return SELECTOR + b"".join(
        (
            address_word(address_of(swap.sells)),
            address_word(address_of(swap.buys)),
            number_word(swap.units),
            number_word(swap.units_min),
            address_word(swap.recipient),
        )
    )


def read(data: bytes) -> Swap:
    """Return what a call says. Raises UnreadablePayloadError for all that ``write`` does not write."""
    if not data.startswith(SELECTOR):
        raise UnreadablePayloadError("this is no call of swap()")
    sells, buys, units, units_min, recipient = words_of(data.removeprefix(SELECTOR), 5)
    swap = Swap(
        sells=contract_of(read_address(sells)),
        buys=contract_of(read_address(buys)),
        units=read_number(units),
        units_min=read_number(units_min),
        recipient=read_address(recipient),
    )
    if write(swap) != data:
        raise UnreadablePayloadError("the call is not written in the one way")
    return swap
