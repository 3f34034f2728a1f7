"""The chain in memory on which native coin can be staked, and the use of it lent."""

from __future__ import annotations

from cambist.plugin import LendingChain, Stake, Staking, Units

from .chain import MemoryChain


class MemoryLendingChain(MemoryChain, LendingChain):
    """Needs ``rules`` with a ``stake_per_work``."""

    async def stake(self, address: str) -> Stake:
        """Look up what is staked now."""
        await self.met("stake")
        return self.accounts.stakes.stake(address, self.seen_time())

    def endow(self, address: str, units: int) -> None:
        """Give an address a stake out of nowhere, in a block of its own."""
        self.mine()
        staking = Staking(action="stake", amount=Units(units))
        self.accounts.stakes.carry_out(address, staking, self.height, self.seen_time())
