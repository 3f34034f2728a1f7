"""Chains on which fees can be paid out of a stake, and the use of a stake can be lent to other addresses.

The gateway's own address stakes native coin, once, and lends the use of it to whoever sends next, instead of native
coin that would be burned for the fee. How the gateway sends with a loan::

    plan     says of a transfer: a loan of so much stake makes its fee as small as the step says
    lend     an intent of its own: ``source`` is the sponsor, ``to_address`` the borrower, ``amount`` the stake
    plan     once that is mined, says of the same transfer that its fee is covered
    reclaim  when nothing of the borrower's is under way any more: the opposite of lend

Staked coin stays the sponsor's and cannot be sent. ``stake``, ``unstake`` and ``withdraw`` are intents from the
sponsor to itself, asked for by the operator: native coin becomes stake, leaves it, and after the chain's waiting time
is native coin again.
"""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime

from msgspec import Struct

from .chains import Chain
from .types import Units


class Stake(Struct, frozen=True, kw_only=True):
    """An address' native coin beyond its balance.

    ``staked`` is all of its stake, ``lent`` how much of it others have the use of, ``lendable`` how much more can be
    lent now: what was used for fees comes back only with time. ``leaving`` was unstaked and waits, ``withdrawable``
    has waited long enough. ``free_at`` is when the last of ``leaving`` can be withdrawn, in UTC; None where nothing
    leaves, and where the plugin does not tell.
    """

    staked: Units = Units(0)
    lent: Units = Units(0)
    lendable: Units = Units(0)
    leaving: Units = Units(0)
    withdrawable: Units = Units(0)
    free_at: datetime | None = None

    @property
    def total(self) -> Units:
        """What belongs to the address beside its balance."""
        return Units(self.staked + self.leaving + self.withdrawable)


class LendingChain(Chain):
    """A chain that can lend. ``plan`` takes intents of every action, each from the sponsor but transfers."""

    @abstractmethod
    async def stake(self, address: str) -> Stake:
        """Return what the address has staked. Raises ChainUnavailableError."""
