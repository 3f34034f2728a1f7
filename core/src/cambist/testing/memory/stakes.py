"""Who staked and lent what on a chain in memory, and how much work it still covers: now, and before every reorg."""

from __future__ import annotations

from datetime import UTC, datetime

from cambist.plugin import Stake, Staking, Units

from .rules import MemoryRules
from .sums import Sums


class Stakes:
    """The stakes of one chain. Times are those of blocks.

    What an address has staked, less what it lent, and what it was lent, cover so much work. Work that was done for
    nothing counts against this, and recovers evenly within ``recovery_s``. A loan that is given back takes its share of
    the borrower's used work with it.
    """

    def __init__(self, rules: MemoryRules) -> None:
        self._rules = rules
        self._staked: Sums[str] = Sums()
        self._lent: Sums[str] = Sums()
        self._borrowed: Sums[str] = Sums()
        self._loans: Sums[tuple[str, str]] = Sums()
        self._leaving: Sums[tuple[str, int]] = Sums()
        self._leaving_times: dict[str, set[int]] = {}
        self._used: Sums[str] = Sums()
        self._used_at: Sums[str] = Sums()

    def stake(self, address: str, time: int) -> Stake:
        leaving = {free_at: self._leaving.at((address, free_at)) for free_at in self._leaving_times.get(address, ())}
        staked, lent = self._staked.at(address), self._lent.at(address)
        waits = {free_at: amount for free_at, amount in leaving.items() if amount and free_at > time}
        return Stake(
            staked=Units(staked),
            lent=Units(lent),
            lendable=Units(max(0, staked - lent - self._used_now(address, time) * self.per_work)),
            leaving=Units(sum(waits.values())),
            withdrawable=Units(sum(amount for free_at, amount in leaving.items() if free_at <= time)),
            free_at=datetime.fromtimestamp(max(waits), UTC) if waits else None,
        )

    @property
    def per_work(self) -> int:
        """The stake behind one unit of work."""
        return self._rules.stake_per_work or 0

    def covered(self, address: str, time: int) -> int:
        """Return the work that the address need not pay for now."""
        return max(0, self._capacity(address) - self._used_now(address, time))

    def loan(self, lender: str, borrower: str) -> int:
        return self._loans.at((lender, borrower))

    def use(self, address: str, work: int, height: int, time: int) -> None:
        """Count work that was done for nothing."""
        self._set_used(address, self._used_now(address, time) + work, height, time)

    def refusal(self, owner: str, staking: Staking, time: int) -> str | None:
        """Say why this cannot be done now, money aside."""
        held = self.stake(owner, time)
        lent_to = self.loan(owner, staking.borrower or owner)
        most = {
            "lend": held.lendable,
            "reclaim": lent_to,
            "unstake": held.staked - held.lent,
            "withdraw": held.withdrawable,
        }
        if not self.per_work:
            return "nothing can be staked here"
        if staking.action in {"lend", "reclaim"} and staking.borrower in {None, owner}:
            return "nobody lends to themselves"
        if staking.action in most and staking.amount > most[staking.action]:
            return f"no more than {most[staking.action]} is there to {staking.action}"
        return None

    def carry_out(self, owner: str, staking: Staking, height: int, time: int) -> int:
        """Do what ``refusal`` has nothing against; return by how much the owner's balance grows."""
        amount, borrower = staking.amount, staking.borrower or owner
        match staking.action:
            case "stake":
                self._staked.add(owner, height, amount)
                return -amount
            case "lend" | "reclaim":
                sign = 1 if staking.action == "lend" else -1
                if sign < 0:
                    self._take_back_use(owner, borrower, amount, height, time)
                self._lent.add(owner, height, sign * amount)
                self._borrowed.add(borrower, height, sign * amount)
                self._loans.add((owner, borrower), height, sign * amount)
            case "unstake":
                free_at = time + self._rules.unstaking_s
                self._leaving_times.setdefault(owner, set()).add(free_at)
                self._staked.add(owner, height, -amount)
                self._leaving.add((owner, free_at), height, amount)
            case "withdraw":
                left = int(amount)
                for free_at in sorted(one for one in self._leaving_times.get(owner, ()) if one <= time):
                    taken = min(left, self._leaving.at((owner, free_at)))
                    self._leaving.add((owner, free_at), height, -taken)
                    left -= taken
                return amount
        return 0

    def rewind(self, height: int) -> None:
        for sums in (self._staked, self._lent, self._borrowed, self._loans, self._leaving, self._used, self._used_at):
            sums.rewind(height)

    def _capacity(self, address: str) -> int:
        behind = self._staked.at(address) - self._lent.at(address) + self._borrowed.at(address)
        return behind // self.per_work if self.per_work else 0

    def _used_now(self, address: str, time: int) -> int:
        passed = max(0, time - self._used_at.at(address))
        left = max(0, self._rules.recovery_s - passed)
        return -(-self._used.at(address) * left // self._rules.recovery_s)

    def _set_used(self, address: str, work: int, height: int, time: int) -> None:
        self._used.set(address, height, work)
        self._used_at.set(address, height, time)

    def _take_back_use(self, owner: str, borrower: str, amount: int, height: int, time: int) -> None:
        used, capacity = self._used_now(borrower, time), self._capacity(borrower)
        taken = min(used, used * amount // max(1, capacity * self.per_work), amount // self.per_work)
        self._set_used(borrower, used - taken, height, time)
        self.use(owner, taken, height, time)
