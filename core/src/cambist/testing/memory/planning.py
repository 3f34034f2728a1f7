"""What sending takes on a chain in memory whose transactions expire: cover, loans, activation, and their price."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from cambist.plugin import Fee, Intent, Plan, Staking, Units

from .accounts import Accounts
from .fees import NATIVE_WORK, STAKING_WORK, MemoryFees
from .rules import RESERVE, MemoryRules

LENDING_WORK = 2 * STAKING_WORK
"""A loan, and its return."""


class Planner:
    """Plans intents that are asked for at once, in their order: what one of them uses, the next has not.

    A loan is planned where the sponsor has the stake for it: in work it costs less than any transfer does.
    """

    def __init__(
        self, rules: MemoryRules, fees: MemoryFees, accounts: Accounts, *, time: int, sponsor: str | None
    ) -> None:
        """Start from the chain as it is in a block of this time."""
        self._rules = rules
        self._fees = fees
        self._accounts = accounts
        self._time = time
        self._sponsor = sponsor
        self._covered: dict[str, int] = {}
        self._lendable = 0 if sponsor is None else accounts.stakes.stake(sponsor, time).lendable

    def count_on(self, promised: Mapping[str, int]) -> None:
        """Leave out what these senders' transactions under way use of what they have covered."""
        for sender, work in promised.items():
            self._covered[sender] = max(0, self._accounts.stakes.covered(sender, self._time) - work)

    def plan(self, intent: Intent) -> Plan:
        return self._transfer(intent) if intent.action in {"transfer", "nothing"} else self._staking(intent)

    def _transfer(self, intent: Intent) -> Plan:
        activates = intent.token.is_native and not self._accounts.is_active(intent.to_address)
        extra = self._rules.activation_price if activates else 0
        fee = self._fee(intent.source, self._fees.limit(intent.token), extra)
        loan = self._loan(intent.source, fee)
        if loan:
            fee = replace(fee, covered=fee.limit)
        sponsoring = LENDING_WORK * fee.price if loan else 0
        if fee.cost_max + fee.reserve:
            sponsoring += NATIVE_WORK * fee.price + (self._rules.activation_price if fee.reserve else 0)
        return Plan(step=intent.step(fee), loan=Units(loan), sponsoring=Units(sponsoring))

    def _staking(self, intent: Intent) -> Plan:
        borrower = intent.to_address if intent.action in {"lend", "reclaim"} else None
        staking = Staking(action=intent.action, amount=intent.amount, borrower=borrower)
        if borrower is not None and not self._accounts.is_active(borrower):
            return Plan(refused=f"{borrower} is not activated")
        refusal = self._accounts.stakes.refusal(intent.source, staking, self._time)
        if refusal is None and intent.action == "lend" and intent.source == self._sponsor:
            refusal = "all of the stake is lent" if intent.amount > self._lendable else None
            self._lendable -= 0 if refusal else intent.amount
        if refusal is not None:
            return Plan(refused=refusal)
        return Plan(step=intent.step(self._fee(intent.source, STAKING_WORK, 0)))

    def _fee(self, sender: str, limit: int, extra: int) -> Fee:
        left = self._covered.setdefault(sender, self._accounts.stakes.covered(sender, self._time))
        covered = min(limit, left)
        self._covered[sender] -= covered
        reserve = 0 if self._accounts.is_active(sender) else RESERVE
        return replace(self._fees.flat(limit), covered=covered, extra=Units(extra), reserve=Units(reserve))

    def _loan(self, sender: str, fee: Fee) -> int:
        """Return the stake that covers the rest, where the sponsor can lend as much."""
        stake = (fee.limit - fee.covered) * self._accounts.stakes.per_work
        if sender == self._sponsor or not 0 < stake <= self._lendable:
            return 0
        self._lendable -= stake
        return stake
