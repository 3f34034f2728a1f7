"""The chain in memory: blocks that hash-link, transactions that wait, are mined, reorganised away and come back."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar

from cambist.plugin import (
    AddressFamily,
    Block,
    Chain,
    ChainInfo,
    ChainUnavailableError,
    ChainView,
    EndpointHealth,
    Token,
    TxStatus,
    Units,
)

from .blocks import MinedBlock, Output, Transaction
from .family import MemoryFamily, named_address
from .faults import Call, MemoryFaults
from .view import MemoryView

GENESIS_TIME = 1_750_000_000
FEE = Units(21)


class MemoryChain(Chain):
    """A network of one endpoint. The same calls on the same seed give the same hashes and ids.

    ``transfer`` and ``submit`` make transactions that wait, ``mine`` takes them, ``reorg`` replaces blocks. The
    faucet, who sends unless another sender is named, never runs dry; anybody else's transaction reverts where
    the money is missing. ``finality_lag_blocks`` is how far the finalized height is behind, None for a chain
    without one. ``block_time_s`` lies between two blocks unless ``mine`` is told the time. With another family
    than MemoryFamily, name a ``faucet`` address of that family.
    """

    view_type: ClassVar[type[MemoryView]] = MemoryView

    def __init__(  # noqa: PLR0913 - every one has a default, and tests name what they mean
        self,
        info: ChainInfo,
        *,
        family: AddressFamily | None = None,
        faucet: str | None = None,
        seed: int = 0,
        finality_lag_blocks: int | None = None,
        genesis_time: int = GENESIS_TIME,
        block_time_s: int = 2,
    ) -> None:
        """Start with block 0 alone."""
        self.info = info
        self.family = family or MemoryFamily()
        self.faucet = self.family.normalize_address(faucet or named_address("faucet"))
        self.faults = MemoryFaults()
        self._finality_lag_blocks = finality_lag_blocks
        self._block_time_s = block_time_s
        self._serial = seed << 64
        self._calls = 0
        self._failures = 0
        self._waiting: list[Transaction] = []
        genesis = Block(height=0, hash=self._digest("block"), parent_hash="0" * 64, time=genesis_time)
        self._blocks = [MinedBlock(header=genesis, transactions=(), reverted=frozenset())]

    # What tests do to it.

    @property
    def height(self) -> int:
        """The height of the newest block."""
        return len(self._blocks) - 1

    def transfer(self, token: Token, recipient: str, amount: int, *, sender: str | None = None) -> str:
        """Make a transaction that sends one amount, and return its id; it waits to be mined."""
        return self.submit([Output(contract=token.contract, recipient=recipient, amount=amount)], sender=sender)

    def submit(self, outputs: Sequence[Output], *, sender: str | None = None, reverts: bool = False) -> str:
        """Make a transaction that waits to be mined; its outputs may name contracts that nobody registered."""
        for output in outputs:
            if output.amount < 0:
                msg = f"an amount is not negative, and {output.amount} is"
                raise ValueError(msg)
            if self.family.normalize_address(output.recipient) != output.recipient:
                msg = f"{output.recipient} is not a normalized address"
                raise ValueError(msg)
        transaction = Transaction(
            id=self._digest("transaction"), sender=sender or self.faucet, outputs=tuple(outputs), reverts=reverts
        )
        self._waiting.append(transaction)
        return transaction.id

    def mine(self, blocks: int = 1, *, time: int | None = None) -> None:
        """Mine blocks; the first takes every waiting transaction. ``time`` is the first one's."""
        for number in range(blocks):
            transactions, self._waiting = tuple(self._waiting), []
            self._append(transactions, time if number == 0 else None)

    def reorg(self, depth: int, *, mine_again: Sequence[str] = (), new_blocks: int | None = None) -> None:
        """Replace the newest blocks by as many others, or by ``new_blocks``.

        Their transactions are dropped, but for those to mine again: these come into the last new block, behind
        another transaction. Genesis stays.
        """
        if not 0 < depth <= self.height:
            msg = f"a reorg of {depth} needs as many blocks above genesis, and there are {self.height}"
            raise ValueError(msg)
        dropped = {tx.id: tx for block in self._blocks[-depth:] for tx in block.transactions}
        kept = [dropped[tx_id] for tx_id in mine_again]
        del self._blocks[-depth:]
        length = depth if new_blocks is None else new_blocks
        for number in range(length):
            filler = self._filler() if kept and number == length - 1 else ()
            self._append((*filler, *kept) if number == length - 1 else (), None)

    # What the gateway asks.

    @asynccontextmanager
    async def view(self) -> AsyncIterator[ChainView]:
        """Pin the one endpoint; an error that leaves the context is counted against it."""
        try:
            await self.met("view")
            yield self.view_type(self)
        except Exception:
            self._failures += 1
            raise

    async def balance(self, address: str, token: Token, at: int | None = None) -> Units:
        """Sum up what came in and went out up to the height."""
        await self.met("balance")
        last = self.height if at is None else at
        if not 0 <= last <= self.height:
            msg = f"{self.info.id} has no block {last} yet"
            raise ChainUnavailableError(msg)
        return Units(self._balance(address, token.contract, last))

    async def transaction(self, tx_id: str) -> TxStatus:
        """Look for the transaction among the waiting and the mined."""
        await self.met("transaction")
        if any(tx.id == tx_id for tx in self._waiting):
            return TxStatus(state="pending")
        for block in reversed(self._blocks):
            if any(tx.id == tx_id for tx in block.transactions):
                if tx_id in block.reverted:
                    return TxStatus(state="reverted", block=block.header, fee=FEE)
                return TxStatus(state="succeeded", block=block.header, fee=FEE)
        return TxStatus(state="unknown")

    def endpoints(self) -> Sequence[EndpointHealth]:
        """Report the one endpoint."""
        healthy = not self.faults.unavailable
        health = EndpointHealth(
            name="memory", healthy=healthy, head=self.height, calls=self._calls, failures=self._failures
        )
        return (health,)

    # What the view asks.

    async def met(self, call: Call, *, span_length: int = 0) -> None:
        """Count a call and let the faults have their say."""
        self._calls += 1
        await self.faults.meet(call, span_length=span_length)

    def seen(self) -> Sequence[MinedBlock]:
        """Return the blocks that the endpoint knows of."""
        return self._blocks[: max(1, len(self._blocks) - self.faults.lag_blocks)]

    def finalized_height(self, height: int) -> int | None:
        """Return what is final when the head is at this height."""
        lag = self._finality_lag_blocks
        return None if lag is None else max(0, height - lag)

    def is_registered(self, contract: str | None) -> bool:
        """Whether transfers of this contract may be credited."""
        return any(token.contract == contract for token in self.info.tokens)

    # Its insides.

    def _append(self, transactions: tuple[Transaction, ...], time: int | None) -> None:
        parent = self._blocks[-1].header
        header = Block(
            height=parent.height + 1,
            hash=self._digest(f"block:{parent.hash}"),
            parent_hash=parent.hash,
            time=max(parent.time, parent.time + self._block_time_s if time is None else time),
        )
        reverted: set[str] = set()
        for number, transaction in enumerate(transactions):
            before = MinedBlock(header=header, transactions=transactions[:number], reverted=frozenset(reverted))
            if transaction.reverts or not self._affords(transaction, before):
                reverted.add(transaction.id)
        self._blocks.append(MinedBlock(header=header, transactions=transactions, reverted=frozenset(reverted)))

    def _affords(self, transaction: Transaction, earlier: MinedBlock) -> bool:
        if transaction.sender == self.faucet:
            return True
        spent: dict[str | None, int] = {}
        for output in transaction.outputs:
            spent[output.contract] = spent.get(output.contract, 0) + output.amount
        return all(
            amount <= self._balance(transaction.sender, contract, self.height, earlier)
            for contract, amount in spent.items()
        )

    def _balance(self, address: str, contract: str | None, last: int, *more: MinedBlock) -> int:
        total = 0
        for block in (*self._blocks[: last + 1], *more):
            for transaction, _, output in block.movements():
                if output.contract == contract:
                    total += output.amount * ((output.recipient == address) - (transaction.sender == address))
        return total

    def _filler(self) -> tuple[Transaction, ...]:
        outputs = tuple(Output(contract=token.contract, recipient=self.faucet, amount=1) for token in self.info.tokens)
        return (Transaction(id=self._digest("filler"), sender=self.faucet, outputs=outputs, reverts=False),)

    def _digest(self, purpose: str) -> str:
        self._serial += 1
        return hashlib.sha256(f"{self.info.id}:{self._serial}:{purpose}".encode()).hexdigest()
