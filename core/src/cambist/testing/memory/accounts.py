"""Who holds what on a chain in memory, and how many transactions everybody sent: now, and at every height."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from msgspec import Struct

from .blocks import Transaction
from .faults import MemoryFaults
from .fees import MemoryFees, work_of

Key = TypeVar("Key", bound=Hashable)


class Outcome(Struct, frozen=True):
    """What became of a transaction in its block."""

    reverted: bool
    fee: int


class Sums(Generic[Key]):
    """Numbers that start at zero, with their past."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._past: dict[Key, list[tuple[int, int]]] = {}
        self._changes: list[tuple[int, Key]] = []

    def at(self, key: Key, height: int | None = None) -> int:
        """Return the number as it was at the end of a block, or as it is now."""
        for changed_at, number in reversed(self._past.get(key, ())):
            if height is None or changed_at <= height:
                return number
        return 0

    def add(self, key: Key, height: int, number: int) -> None:
        """Change a number in the newest block."""
        self._past.setdefault(key, []).append((height, self.at(key) + number))
        self._changes.append((height, key))

    def rewind(self, height: int) -> None:
        """Forget what happened above the height."""
        while self._changes and self._changes[-1][0] > height:
            self._past[self._changes.pop()[1]].pop()


class Accounts:
    """The state of one chain. The faucet, who never runs dry, is asked nothing and counts nothing."""

    def __init__(self, faucet: str, fees: MemoryFees, faults: MemoryFaults) -> None:
        """Start with nothing but a faucet."""
        self._faucet = faucet
        self._fees = fees
        self._faults = faults
        self._held: Sums[tuple[str, str | None]] = Sums()
        self._sent: Sums[str] = Sums()

    def balance(self, address: str, contract: str | None, height: int | None = None) -> int:
        """Return what the address holds."""
        return self._held.at((address, contract), height)

    def sequence(self, address: str, height: int | None = None) -> int:
        """Return how many transactions of the address are mined."""
        return self._sent.at(address, height)

    def rewind(self, height: int) -> None:
        """Forget what happened above the height."""
        self._held.rewind(height)
        self._sent.rewind(height)

    def run(self, transaction: Transaction, height: int) -> Outcome | None:
        """Carry out a transaction in the newest block; None where no block may hold it as things stand."""
        sender, signed = transaction.sender, transaction.fee
        if transaction.sequence is not None and transaction.sequence != self.sequence(sender):
            return None
        if signed is not None and not self._pays(transaction):
            return None
        fee = 0
        if signed is not None:
            fee = min(work_of(transaction), signed.limit) * self._fees.price_paid(signed)
            self._held.add((sender, None), height, -fee)
        if sender != self._faucet:
            self._sent.add(sender, height, 1)
        fails = transaction.reverts or self._fails(transaction)
        if not fails:
            for output in transaction.outputs:
                self._held.add((sender, output.contract), height, -output.amount)
                self._held.add((output.recipient, output.contract), height, output.amount)
        return Outcome(reverted=fails, fee=fee)

    def _pays(self, transaction: Transaction) -> bool:
        fee = transaction.fee
        return (
            fee is not None
            and fee.price >= self._fees.base_price
            and transaction.native_needed <= self.balance(transaction.sender, None)
        )

    def _fails(self, transaction: Transaction) -> bool:
        if transaction.fee is not None and transaction.fee.limit < work_of(transaction):
            return True
        if any((output.contract, output.recipient) in self._faults.refusing for output in transaction.outputs):
            return True
        return transaction.sender != self._faucet and any(
            transaction.sum_of(contract) > self.balance(transaction.sender, contract)
            for contract in {output.contract for output in transaction.outputs}
        )
