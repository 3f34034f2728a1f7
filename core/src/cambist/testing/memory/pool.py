"""What waits to be mined on a chain in memory: in the order of its arrival, one for each sender and sequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .accounts import Accounts
from .blocks import Transaction

WAITING_MAX = 100_000


class Pool:
    """The waiting transactions. It judges none of them."""

    def __init__(self) -> None:
        self._waiting: dict[str, Transaction] = {}
        self._slots: dict[tuple[str, int], str] = {}
        self._native_needed: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Transaction]:
        """Yield all that waits now, in the order of arrival, whatever is added or taken meanwhile."""
        return iter(tuple(self._waiting.values()))

    def __contains__(self, tx_id: object) -> bool:
        return tx_id in self._waiting

    def __len__(self) -> int:
        return len(self._waiting)

    def at(self, sender: str, sequence: int) -> Transaction | None:
        """Return what waits in the sender's name under a sequence."""
        tx_id = self._slots.get((sender, sequence))
        return None if tx_id is None else self._waiting[tx_id]

    def native_needed(self, sender: str) -> int:
        """Return what the sender must hold for all of its signed transactions."""
        return self._native_needed[sender]

    def add(self, transaction: Transaction) -> None:
        """Let it wait, in place of what waits under its sequence. Its id must be new here."""
        if transaction.sequence is not None:
            slot = (transaction.sender, transaction.sequence)
            if (replaced := self._slots.get(slot)) is not None:
                self.remove(replaced)
            self._slots[slot] = transaction.id
        if transaction.fee is not None:
            self._native_needed[transaction.sender] += transaction.native_needed
        self._waiting[transaction.id] = transaction

    def remove(self, tx_id: str) -> None:
        """Forget one. Raises KeyError where it does not wait."""
        gone = self._waiting.pop(tx_id)
        if gone.sequence is not None:
            del self._slots[gone.sender, gone.sequence]
        if gone.fee is not None:
            self._native_needed[gone.sender] -= gone.native_needed

    def tidy(self, accounts: Accounts, time: int) -> None:
        """Forget what no later block can hold, as nodes do: what is used, expired, or cannot be paid by its sender."""
        for waiting in self:
            used = waiting.sequence is not None and waiting.sequence < accounts.sequence(waiting.sender)
            unpaid = waiting.fee is not None and waiting.native_needed > accounts.balance(waiting.sender, None)
            if used or unpaid or waiting.has_expired(time):
                self.remove(waiting.id)
