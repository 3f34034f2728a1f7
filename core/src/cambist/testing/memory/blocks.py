"""What a chain in memory is made of: movements of value, transactions, and blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from cambist.plugin import Block, Fee


class Output(Struct, frozen=True, kw_only=True):
    """One movement of value within a transaction."""

    contract: str | None
    recipient: str
    amount: int


class Transaction(Struct, frozen=True, kw_only=True):
    """What somebody asked the chain to do, mined or not.

    Made by a test's hand it has no ``fee`` and costs nothing; ``sequence`` is then the one that it insists on, or
    None for whichever is next. One that was signed and broadcast has both.
    """

    id: str
    sender: str
    outputs: tuple[Output, ...]
    reverts: bool = False
    sequence: int | None = None
    fee: Fee | None = None

    @property
    def native_needed(self) -> int:
        """What the sender must hold of the native coin."""
        return self.sum_of(None) + (0 if self.fee is None else self.fee.cost_max)

    def sum_of(self, contract: str | None) -> int:
        """Return how much of one token it sends."""
        return sum(output.amount for output in self.outputs if output.contract == contract)


class MinedBlock(Struct, frozen=True, kw_only=True):
    """A block with its transactions, which of them failed, and what they cost."""

    header: Block
    transactions: tuple[Transaction, ...]
    reverted: frozenset[str]
    fees: Mapping[str, int]

    def movements(self) -> Iterator[tuple[Transaction, str, Output]]:
        """Yield what moved, in chain order, with the position within its transaction."""
        for transaction in self.transactions:
            if transaction.id in self.reverted:
                continue
            logs = natives = 0
            for output in transaction.outputs:
                if output.contract is None:
                    yield transaction, f"trace:{natives}" if natives else "native", output
                    natives += 1
                else:
                    yield transaction, f"log:{logs}", output
                    logs += 1
