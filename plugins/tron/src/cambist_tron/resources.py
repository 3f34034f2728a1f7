"""What an address can use up without burning TRX, and what it has staked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from cambist.plugin import Stake, Units
from cambist_chainkit.gathering import gather_all

from .addresses import hex_of
from .endpoint import Endpoint
from .replies import Account, Lendable, Loans, Resources

FOR_ENERGY: Final = 1  # the resource's number, where a question wants it
FOR_ENERGY_NAME: Final = "ENERGY"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Spendable:
    """The TRX, energy and bandwidth an address can still spend while several of its transactions are planned.

    Energy and bandwidth that the network gives back meanwhile are left out: the address can only have more.
    """

    def __init__(self, account: Account, resources: Resources, free_bandwidth: int) -> None:
        """``free_bandwidth`` is what an address that is not activated yet has from its activation on."""
        self.active = account.exists
        self.balance = account.balance
        self.energy = max(resources.energy_limit - resources.energy_used, 0)
        self._staked = max(resources.net_limit - resources.net_used, 0)
        self._free = max(resources.free_net_limit - resources.free_net_used, 0) if self.active else free_bandwidth

    def set_aside(self, energy: int) -> None:
        """Set aside the energy of transactions in flight, and all bandwidth: how much of it they use is not known."""
        self.energy = max(self.energy - energy, 0)
        self._staked = self._free = 0

    def lose_free_bandwidth(self) -> None:
        """Count on no free bandwidth, although the account has some of its own left."""
        self._free = 0

    def pay(self, amount: int) -> None:
        """Subtract native coin, down to zero."""
        self.balance = max(self.balance - amount, 0)

    def take_energy(self, amount: int) -> int:
        """Use up to ``amount`` of the energy; return how much."""
        taken = min(self.energy, amount)
        self.energy -= taken
        return taken

    def take_bandwidth(self, amount: int) -> bool:
        """Use bandwidth for one transaction; return whether there was enough: all staked, or all free."""
        if self._staked >= amount:
            self._staked -= amount
        elif self._free >= amount:
            self._free -= amount
        else:
            return False
        return True

    def take_staked_bandwidth(self, amount: int) -> bool:
        """Use staked bandwidth for a transaction that activates an account: free bandwidth does not count there."""
        enough = self._staked >= amount
        self._staked -= amount if enough else 0
        return enough


async def read_account(endpoint: Endpoint, address: str) -> Account:
    """Return the account at an address, one that does not exist included."""
    return await endpoint.post("wallet/getaccount", {"address": hex_of(address)}, Account)


async def read_resources(endpoint: Endpoint, address: str) -> Resources:
    return await endpoint.post("wallet/getaccountresource", {"address": hex_of(address)}, Resources)


async def read_spendable(endpoint: Endpoint, addresses: Iterable[str], free_bandwidth: int) -> dict[str, Spendable]:
    """Return what each of the addresses can spend."""
    distinct = list(dict.fromkeys(addresses))
    accounts, resources = await gather_all(
        endpoint.each(lambda address: read_account(endpoint, address), distinct),
        endpoint.each(lambda address: read_resources(endpoint, address), distinct),
    )
    told = zip(distinct, accounts, resources, strict=True)
    return {address: Spendable(account, has, free_bandwidth) for address, account, has in told}


async def lendable(endpoint: Endpoint, address: str) -> int:
    """Return how much stake the address can lend for energy now, in sun."""
    body = {"owner_address": hex_of(address), "type": FOR_ENERGY}
    return (await endpoint.post("wallet/getcandelegatedmaxsize", body, Lendable)).max_size


async def lent_to(endpoint: Endpoint, lender: str, borrower: str) -> int:
    """Return how much stake the one lends the other for energy, in sun."""
    body = {"fromAddress": hex_of(lender), "toAddress": hex_of(borrower)}
    answer = await endpoint.post("wallet/getdelegatedresourcev2", body, Loans)
    return sum(loan.for_energy for loan in answer.loans)


async def stake(endpoint: Endpoint, address: str) -> Stake:
    """Return what the address has staked, for whatever; only what is for energy is ever lent."""
    account, can_lend, head = await gather_all(
        read_account(endpoint, address),
        lendable(endpoint, address),
        endpoint.latest(),
    )
    return stake_of(account, can_lend, head.time_ms)


def stake_of(account: Account, can_lend: int, now_ms: int) -> Stake:
    """Return what an account says of its stake."""
    lent = account.account_resource.delegated_frozen_v2 + account.bandwidth_lent
    leaving = [one for one in account.unfrozen_v2 if one.unfreeze_expire_time > now_ms]
    waits = sum(one.unfreeze_amount for one in leaving)
    free_ms = max((one.unfreeze_expire_time for one in leaving), default=None)
    return Stake(
        staked=Units(sum(one.amount for one in account.frozen_v2) + lent),
        lent=Units(lent),
        lendable=Units(can_lend),
        leaving=Units(waits),
        withdrawable=Units(sum(one.unfreeze_amount for one in account.unfrozen_v2) - waits),
        free_at=None if free_ms is None else EPOCH + timedelta(milliseconds=free_ms),
    )
