"""Pending transactions in the order they came, and their effects.

Like a real node, this one executes a transaction when it accepts it, on top of the head and of what is pending already,
and again from the start when a block is made. So the balances on its full-node side include pending transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from .blocks import Blocks, slot_after
from .execution import Concluded, carry_out, check_form
from .machine import Machine, Moment
from .params import BLOCK_MS
from .refusals import RefusedError, invalid
from .state import State
from .transactions import CREATE_CONTRACT, TRIGGER, NoContractError, Transaction

REFERENCE_BYTES: Final = 2
RECENT_BLOCKS: Final = 65_536
"""How far back a transaction's reference block may be."""


class Pool:
    """Pending transactions, and their effects as the ledger's open layer."""

    def __init__(self, state: State, blocks: Blocks, machine: Machine) -> None:
        self._state = state
        self._blocks = blocks
        self._machine = machine
        self._waiting: dict[bytes, Transaction] = {}
        self._shown: dict[bytes, Transaction] = {}
        self._touched = False
        self._open = False

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Transaction]:
        return iter(list(self._waiting.values()))

    def shown(self, tx_id: bytes) -> Transaction | None:
        """Return a pending transaction with the result that it would have, as nodes show it."""
        return self._shown.get(tx_id)

    def clear(self) -> None:
        """Forget all pending transactions. Their effects must have been undone."""
        self._waiting.clear()

    def add(self, transaction: Transaction) -> None:
        """Add a transaction that ``put_back`` will execute."""
        self._waiting.setdefault(transaction.id, transaction)

    def drop(self, tx_id: bytes) -> None:
        """Forget a pending transaction. Its effects must have been undone."""
        self._waiting.pop(tx_id, None)

    async def broadcast(self, transaction: Transaction, now_ms: int) -> None:
        """Take a transaction. Raises RefusedError, with everything as before."""
        if len(self._waiting) >= self._state.parameters.pending_max:
            raise RefusedError("SERVER_BUSY")
        if not transaction.proto.raw_data.contract:
            raise invalid("No contract!")
        if transaction.proto.raw_data.expiration < self._blocks.head.timestamp_ms + BLOCK_MS:
            raise RefusedError("TRANSACTION_EXPIRATION_ERROR", "before the next block")
        transaction.received_ms = now_ms
        await self.take(transaction, now_ms)

    async def take(self, transaction: Transaction, now_ms: int) -> None:
        """Execute a transaction on top of the pending ones. Raises RefusedError."""
        if not self._open:
            self._state.ledger.begin()
            self._open = True
        if transaction.id in self._waiting:
            raise RefusedError("DUP_TRANSACTION_ERROR")
        head = self._blocks.head
        moment = Moment(
            head.number + 1, slot_after(head.timestamp_ms, now_ms), head.header.raw_data.witness_address[1:]
        )
        concluded = await self.attempt(transaction, moment)
        self._waiting[transaction.id] = transaction
        self._shown[transaction.id] = transaction.concluded(concluded.result)

    async def attempt(self, transaction: Transaction, moment: Moment, *, internals: bool = True) -> Concluded:
        """Execute a transaction in a layer of its own, which is kept only if it was not refused."""
        ledger = self._state.ledger
        try:
            runs = transaction.kind in {CREATE_CONTRACT, TRIGGER} and transaction.held is not None
        except NoContractError as error:
            raise invalid("No contract!") from error
        ledger.begin()
        try:
            self._check(transaction)
            self._touched |= runs
            concluded = await carry_out(self._state, self._machine, transaction, moment, internals=internals)
        except BaseException:
            ledger.rollback()
            raise
        ledger.merge()
        return concluded

    async def take_back(self) -> None:
        """Undo the effects of pending transactions, so that a block can be made or undone. They stay pending."""
        if not self._open:
            return
        self._state.ledger.rollback()
        self._open = False
        self._shown.clear()
        if self._touched:
            await self._machine.rewind(self._blocks.head.mark)
            self._touched = False

    async def mark_after(self, mark: int) -> int:
        """Return the mark of the machine's state after a block, given the parent's: the same if no contract ran."""
        if not self._touched:
            return mark
        self._touched = False
        return await self._machine.mark()

    async def put_back(self, now_ms: int) -> None:
        """Execute the pending transactions again; forget those that fail now or have been pending too long."""
        waiting = list(self._waiting.values())
        self._waiting.clear()
        for transaction in waiting:
            if now_ms - transaction.received_ms >= self._state.parameters.pending_ms_max:
                continue
            with suppress(RefusedError):
                await self.take(transaction, now_ms)

    def _check(self, transaction: Transaction) -> None:
        self._check_reference(transaction)
        check_form(self._state, transaction)
        if self._state.block_number(transaction.id) is not None:
            raise RefusedError("DUP_TRANSACTION_ERROR")

    def _check_reference(self, transaction: Transaction) -> None:
        """Refuse a transaction that refers to a block of another branch, or one that is long gone."""
        raw = transaction.proto.raw_data
        head = self._blocks.head.number
        low = int.from_bytes(raw.ref_block_bytes, "big") if len(raw.ref_block_bytes) == REFERENCE_BYTES else -1
        number = head - (head - low) % RECENT_BLOCKS
        block = self._blocks.at(number) if low >= 0 else None
        if block is None:
            raise RefusedError("TAPOS_ERROR", "Tapos failed, block not found")
        if block.id[8:16] != raw.ref_block_hash:
            raise RefusedError("TAPOS_ERROR", "Tapos failed, different block hash")
