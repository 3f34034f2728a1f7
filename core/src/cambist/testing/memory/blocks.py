"""What a chain in memory is made of: movements of value, transactions, and blocks."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from cambist.plugin import Block


class Output(Struct, frozen=True, kw_only=True):
    """One movement of value within a transaction."""

    contract: str | None
    recipient: str
    amount: int


class Transaction(Struct, frozen=True, kw_only=True):
    """What somebody asked the chain to do, mined or not."""

    id: str
    sender: str
    outputs: tuple[Output, ...]
    reverts: bool


class MinedBlock(Struct, frozen=True, kw_only=True):
    """A block with its transactions, and which of them failed."""

    header: Block
    transactions: tuple[Transaction, ...]
    reverted: frozenset[str]

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
