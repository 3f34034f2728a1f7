"""Where the energy of a transfer comes from: it is burned for, or lent, whichever is cheaper.

A contract's work is paid in energy. What the sender has of it, from a stake of its own or a loan, is used up first;
what is missing, the network burns TRX for.
"""

from __future__ import annotations

from typing import Final

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
    """A transfer for which ``lacking`` energy must come from somewhere, and ``extra`` TRX whatever it is.

    ``spare`` is energy beyond that which nothing is lent for, and TRX are burned for only if it comes to that.
    """

    sender: Spendable
    lacking: int
    extra: int
    prices: Prices
    spare: int = 0

    def top_up_cost(self, burned: int) -> int:
        """Return what it costs to bring the sender what it may burn, beside that; 0 where it holds it already."""
        if self.sender.active and self.sender.balance >= burned + self.extra:
            return 0
        return TRANSFER_BYTES * self.prices.bandwidth if self.sender.active else self.prices.activation


class Offer(Struct, frozen=True, kw_only=True):
    """One way to get the energy. ``cost`` is what is lost by it altogether, ``sponsoring`` the sponsor's part."""

    loan: Units = Units(0)
    cost: int
    sponsoring: Units


def burning(need: Need) -> Offer:
    """Offer that the sender burns TRX, which the sponsor brings."""
    price = need.lacking * need.prices.energy
    brought = need.top_up_cost(price + need.spare * need.prices.energy)
    return Offer(cost=price + brought, sponsoring=Units(brought))


def lending(need: Need, lender: Lender) -> Offer | None:
    """Offer that the sponsor lends the use of a stake, and takes it back; None where it cannot.

    It costs the two transactions, and the activation of a sender that is not activated. What the stake gives returns
    within a day.
    """
    loan = lender.stake_for(need.lacking)
    if loan is None or loan > lender.left:
        return None
    cost = LENDING_BYTES * need.prices.bandwidth + need.top_up_cost(0)
    return Offer(loan=Units(loan), cost=cost, sponsoring=Units(cost))


def cheapest(mode: EnergyMode, lender: Lender | None, need: Need) -> Offer:
    """Return the cheapest offer; with ``delegate``, a loan wherever there can be one. The lender has that much less."""
    best = burning(need)
    if lender is None or mode == "burn":
        return best
    loan = lending(need, lender)
    if loan is not None and (mode == "delegate" or loan.cost < best.cost):
        best = loan
        lender.left -= best.loan
    return best
