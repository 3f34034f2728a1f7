"""What is left of an address' deposits, judged by what the chain says it holds. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class ConfirmedDeposit(Struct, frozen=True):
    """A confirmed deposit; those of one address are told in chain order."""

    pk: int
    units: int


class Remains(Struct, frozen=True, kw_only=True):
    """``collected`` deposits are gone from the address, ``left`` are there, and ``surplus`` nobody deposited.

    Of the native coin ``surplus`` may be below zero: a fee was paid out of what is left.
    """

    collected: Sequence[ConfirmedDeposit]
    left: Sequence[ConfirmedDeposit]
    surplus: int


def remains_of(deposits: Sequence[ConfirmedDeposit], held: int, *, pays_fees: bool) -> Remains:
    """Tell the deposits that are still on their address from those that were collected.

    A collection takes all there are, so what is left are the newest ones: as many as what is held can be. Where
    fees are paid with it, what is held is a little more or less than that, and the nearest sum is the right one.
    """
    first, units = len(deposits), 0
    for number in range(len(deposits) - 1, -1, -1):
        total = units + deposits[number].units
        fits = abs(total - held) <= abs(units - held) if pays_fees else total <= held
        if not fits:
            break
        first, units = number, total
    return Remains(collected=deposits[:first], left=deposits[first:], surplus=held - units)
