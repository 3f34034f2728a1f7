"""Refuses lending, reclaiming, staking, unstaking and withdrawing that the network would not carry out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from cambist.plugin import Intent
from cambist_chainkit.gathering import gather_all

from .config import SUN_PER_TRX
from .endpoint import Endpoint
from .replies import Account
from .resources import FOR_ENERGY_NAME, lendable, lent_to, read_account
from .simulation import TRIES

LEAVING_MAX: Final = 32
"""So many parts of a stake may be on their way out at once."""


class Stakes:
    """Stakes while several intents about them are planned: each leaves less to the next."""

    def __init__(self) -> None:
        self._accounts: dict[str, Account] = {}
        self._lendable: defaultdict[str, int] = defaultdict(int)
        self._lent: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._staked: defaultdict[str, int] = defaultdict(int)
        self._leaving: defaultdict[str, int] = defaultdict(int)
        self._withdrawable: defaultdict[str, int] = defaultdict(int)

    @classmethod
    async def read(cls, endpoint: Endpoint, intents: Sequence[Intent]) -> Stakes:
        """Ask for what the intents depend on."""
        stakes = cls()
        if not intents:
            return stakes
        owners = list(dict.fromkeys(one.source for one in intents))
        lenders = list(dict.fromkeys(one.source for one in intents if one.action in {"lend", "unstake"}))
        pairs = list(dict.fromkeys((one.source, one.to_address) for one in intents if one.action == "reclaim"))
        everybody = list(dict.fromkeys([*owners, *(one.to_address for one in intents if one.action == "lend")]))
        head, accounts, can_lend, lent = await gather_all(
            endpoint.latest(),
            endpoint.each(lambda address: read_account(endpoint, address), everybody),
            endpoint.each(lambda lender: lendable(endpoint, lender), lenders),
            endpoint.each(lambda pair: lent_to(endpoint, *pair), pairs),
        )
        stakes._accounts = dict(zip(everybody, accounts, strict=True))
        stakes._lendable.update(zip(lenders, can_lend, strict=True))
        stakes._lent.update(zip(pairs, lent, strict=True))
        await stakes._ask_again(endpoint, [one for one in intents if one.action == "lend"])
        stakes._count(owners, head.time_ms)
        return stakes

    async def _ask_again(self, endpoint: Endpoint, loans: Sequence[Intent]) -> None:
        """Ask some more times where a loan would be refused: of the nodes behind one address, some are behind.

        Nothing is lent for a while to whom a loan was refused, and coin is burned instead.
        """
        wanted = Counter[str]()
        for one in loans:
            wanted[one.source] += one.amount
        for _ in range(TRIES):
            missing = {one.to_address for one in loans if not self._accounts[one.to_address].exists}
            short = {lender for lender, units in wanted.items() if units > self._lendable[lender]}
            if not missing and not short:
                return
            borrowers, lenders = sorted(missing), sorted(short)
            accounts, can_lend = await gather_all(
                endpoint.each(lambda address: read_account(endpoint, address), borrowers),
                endpoint.each(lambda lender: lendable(endpoint, lender), lenders),
            )
            self._accounts.update(zip(borrowers, accounts, strict=True))
            for lender, units in zip(lenders, can_lend, strict=True):
                self._lendable[lender] = max(self._lendable[lender], units)

    def _count(self, owners: Sequence[str], now_ms: int) -> None:
        for owner in owners:
            account = self._accounts[owner]
            self._staked[owner] = sum(one.amount for one in account.frozen_v2 if one.type == FOR_ENERGY_NAME)
            for part in account.unfrozen_v2:
                if part.unfreeze_expire_time <= now_ms:
                    self._withdrawable[owner] += part.unfreeze_amount
                else:
                    self._leaving[owner] += 1

    def take(self, intent: Intent) -> str | None:
        """Reserve what the intent needs; return the reason if it is refused."""
        if not self._accounts[intent.source].exists:
            return f"{intent.source} is not activated yet"
        takers = {
            "lend": self._lend,
            "reclaim": self._reclaim,
            "stake": self._stake,
            "unstake": self._unstake,
            "withdraw": self._withdraw,
        }
        return takers[intent.action](intent)

    def _lend(self, intent: Intent) -> str | None:
        borrower = self._accounts[intent.to_address]
        if intent.to_address == intent.source:
            return "nobody lends to itself"
        if not borrower.exists:
            return f"{intent.to_address} is not activated yet, and cannot borrow"
        if borrower.is_contract:
            return f"{intent.to_address} is a contract, and cannot borrow"
        if intent.amount < SUN_PER_TRX:
            return "less than 1 TRX of stake cannot be lent"
        left = self._lendable[intent.source]
        if intent.amount > left:
            return f"{max(left, 0)} sun of stake can be lent now, and {intent.amount} are asked for"
        self._lendable[intent.source] -= intent.amount
        self._staked[intent.source] -= intent.amount
        return None

    def _reclaim(self, intent: Intent) -> str | None:
        lent = self._lent[intent.source, intent.to_address]
        if intent.amount > lent:
            return f"{intent.to_address} has {lent} sun of stake on loan, and {intent.amount} are asked back"
        self._lent[intent.source, intent.to_address] -= intent.amount
        return None

    def _stake(self, intent: Intent) -> str | None:
        return "less than 1 TRX cannot be staked" if intent.amount < SUN_PER_TRX else None

    def _unstake(self, intent: Intent) -> str | None:
        staked = self._staked[intent.source]
        if intent.amount > staked:
            return f"{staked} sun are staked for energy and not lent, and {intent.amount} are to be taken out"
        if self._withdrawable[intent.source]:
            return f"{self._withdrawable[intent.source]} sun can be withdrawn, which comes first: this would do it, too"
        if self._leaving[intent.source] >= LEAVING_MAX:
            return f"{LEAVING_MAX} parts of the stake are on their way out already, the network allows no more"
        self._staked[intent.source] -= intent.amount
        self._lendable[intent.source] -= intent.amount
        self._leaving[intent.source] += 1
        return None

    def _withdraw(self, intent: Intent) -> str | None:
        if not self._withdrawable[intent.source]:
            return "nothing that was unstaked has waited long enough"
        if intent.amount != self._withdrawable[intent.source]:
            return f"the network gives back all that can be withdrawn, which is {self._withdrawable[intent.source]} sun"
        self._withdrawable[intent.source] = 0
        return None
