"""What a chain in memory is made of: movements of value, transactions, and blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from cambist.plugin import Block, Fee, Staking


class Output(Struct, frozen=True, kw_only=True):
    """One movement of value within a transaction."""

    contract: str | None
    recipient: str
    amount: int


class Transaction(Struct, frozen=True, kw_only=True):
    """What somebody asked the chain to do, mined or not.

    Made by a test's hand it has no ``fee`` and costs nothing; ``sequence`` is then the one that it insists on, or
    None for whichever is next. One that was signed and broadcast has a fee, and either a sequence or ``valid_until``,
    the time of the last block that may hold it. ``staking`` is what it does with its sender's stake.
    """

    id: str
    sender: str
    outputs: tuple[Output, ...]
    reverts: bool = False
    sequence: int | None = None
    fee: Fee | None = None
    valid_until: int | None = None
    staking: Staking | None = None

    @property
    def native_needed(self) -> int:
        """What the sender must hold of the native coin."""
        return self.given + (0 if self.fee is None else self.fee.cost_max)

    @property
    def given(self) -> int:
        """What leaves the sender's balance of the native coin beside the fee."""
        staked = self.staking.amount if self.staking is not None and self.staking.action == "stake" else 0
        return self.sum_of(None) + staked

    def has_expired(self, time: int) -> bool:
        """Whether a block of this time may no longer hold it."""
        return self.valid_until is not None and self.valid_until < time

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
