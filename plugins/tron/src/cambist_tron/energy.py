"""Where the energy of a transfer comes from: strategies behind one interface, of which the cheapest is taken.

A contract's work is paid in energy. What the sender has of it, from a stake of its own or a loan, is used up first;
what is missing, the network burns TRX for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from cambist.plugin import Units

from .config import SUN_PER_TRX, EnergyMode
from .fees import Prices
from .resources import Spendable

TRANSFER_BYTES: Final = 280
"""An upper bound of a transfer of TRX, as it comes with a top-up."""
LENDING_BYTES: Final = 2 * 300
"""An upper bound of lending and asking back together."""

_DRIFT: Final = 100  # others stake, too, and each stake gives less then: a hundredth more is lent


class Lender:
    """What the sponsor can still lend while several transfers are planned, and what a stake gives.

    The network shares ``energy_limit`` energy among all the TRX that are staked for it, ``energy_weight``.
    """

    def __init__(self, lendable: int, energy_limit: int, energy_weight: int) -> None:
        self.left = lendable
        self._limit = energy_limit
        self._weight = energy_weight

    def stake_for(self, energy: int) -> int | None:
        """Return the stake, in sun and whole TRX, that gives so much energy; None where no stake gives any."""
        if self._limit <= 0 or self._weight <= 0:
            return None
        trx = -(-energy * self._weight * (_DRIFT + 1) // (self._limit * _DRIFT))
        return max(trx, 1) * SUN_PER_TRX


class Need(Struct, frozen=True, kw_only=True):
    """A transfer for which ``lacking`` energy must come from somewhere, and ``extra`` TRX whatever it is."""

    sender: Spendable
    lacking: int
    extra: int
    prices: Prices

    def top_up_cost(self, burned: int) -> int:
        """Return what it costs to bring the sender what it will burn, beside that; 0 where it holds it already."""
        if self.sender.active and self.sender.balance >= burned + self.extra:
            return 0
        return TRANSFER_BYTES * self.prices.bandwidth if self.sender.active else self.prices.activation


class Offer(Struct, frozen=True, kw_only=True):
    """One way to get the energy. ``cost`` is what is lost by it altogether, ``sponsoring`` the sponsor's part."""

    loan: Units = Units(0)
    cost: int
    sponsoring: Units


class Strategy(Protocol):
    """A way to get energy for one transfer."""

    def offer(self, need: Need) -> Offer | None:
        """Return what it costs, None where it is not possible now."""


class Burn:
    """The sender burns TRX, which the sponsor brings."""

    def offer(self, need: Need) -> Offer:
        """Return the price of the energy, and of bringing it."""
        burned = need.lacking * need.prices.energy
        brought = need.top_up_cost(burned)
        return Offer(cost=burned + brought, sponsoring=Units(brought))


class Delegate:
    """The sponsor lends the sender the use of a stake, and takes it back. What it gives returns within a day."""

    def __init__(self, lender: Lender) -> None:
        self._lender = lender

    def offer(self, need: Need) -> Offer | None:
        """Return the price of the two transactions, and of activating the sender where it is not activated."""
        loan = self._lender.stake_for(need.lacking)
        if loan is None or loan > self._lender.left:
            return None
        cost = LENDING_BYTES * need.prices.bandwidth + need.top_up_cost(0)
        return Offer(loan=Units(loan), cost=cost, sponsoring=Units(cost))


def strategies(mode: EnergyMode, lender: Lender | None) -> Sequence[Strategy]:
    """Return what the operator allows, the preferred first. Where nothing can be lent, burning is what is left."""
    burn, lend = Burn(), None if lender is None or mode == "burn" else Delegate(lender)
    if lend is None:
        return [burn]
    return [lend, burn] if mode == "delegate" else [burn, lend]


def cheapest(mode: EnergyMode, lender: Lender | None, need: Need) -> Offer:
    """Return the cheapest offer; with ``delegate``, a loan wherever there can be one. The lender has that much less."""
    offers = [offer for one in strategies(mode, lender) if (offer := one.offer(need)) is not None]
    best = offers[0] if mode == "delegate" else min(offers, key=lambda offer: offer.cost)
    if lender is not None:
        lender.left -= best.loan
    return best
