"""The chain of a local node: takes transactions, makes blocks of them, and replaces blocks by others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from . import keys
from .blocks import Block, Blocks, Representatives, make, slot_after
from .machine import Machine, Moment
from .params import BLOCK_MS, TRX, Parameters
from .pool import Pool
from .proto import new
from .refusals import RefusedError
from .state import Ledger, Past, State
from .transactions import CREATE_CONTRACT, TRANSFER, TRIGGER, Transaction, build, signed

_FILLER_SUN = 1_000_000_000 * TRX


class ReorgError(Exception):
    """The blocks cannot be replaced as asked. Nothing has changed."""


class View(msgspec.Struct, frozen=True):
    """The chain as it looks from some height: the head's, the solid block's, or a lagging node's.

    ``mark`` is the machine's state there, None for the present one, which includes what waits.
    """

    blocks: Blocks
    head: Block
    state: State
    mark: int | None
    pool: Pool | None
    hidden: frozenset[bytes] = frozenset()

    def at(self, number: int) -> Block | None:
        """Return a block up to this height."""
        return self.blocks.at(number) if number <= self.head.number else None

    def by_id(self, block_id: bytes) -> Block | None:
        """Return a block up to this height."""
        block = self.blocks.by_id(block_id)
        return block if block is not None and block.number <= self.head.number else None

    def find(self, tx_id: bytes) -> tuple[Block, int] | None:
        """Return in which block a transaction stands, and where."""
        number = None if tx_id in self.hidden else self.state.block_number(tx_id)
        block = None if number is None else self.at(number)
        if block is None:
            return None
        return next((block, index) for index, each in enumerate(block.transactions) if each.id == tx_id)


class Chain:
    """Blocks, state, pool and machine of one node. ``lock`` keeps what changes them, and who reads, apart."""

    def __init__(  # noqa: PLR0913 - a chain is made in one place
        self,
        machine: Machine,
        parameters: Parameters,
        *,
        chain_id: int,
        representatives: int,
        clock_ms: Callable[[], int],
        trace_internal: bool,
    ) -> None:
        self.chain_id = chain_id
        self.parameters = parameters
        self.machine = machine
        self.clock_ms = clock_ms
        self.makers = Representatives(representatives)
        self.blocks = Blocks(chain_id)
        self.state = State(Ledger(), parameters)
        self.pool = Pool(self.state, self.blocks, machine)
        self.lock = asyncio.Lock()
        self.held_back: set[bytes] = set()
        self.estimates = True
        self._skipped_ms = 0
        self._newest_ms = 0
        self._trace_internal = trace_internal
        self._branch = 0
        self._filler_key = keys.named_key("filler")
        self._fillers = 0

    async def start(self, funds: Mapping[bytes, int]) -> None:
        """Give accounts their TRX, and make the first block."""
        await self.machine.start(self)
        filler = keys.address_of(self._filler_key)
        for address, sun in {**funds, filler: _FILLER_SUN, **dict.fromkeys(self.makers.addresses, TRX)}.items():
            self.state.create(address)
            self.state.change(address, balance=sun, witness=address in self.makers.addresses)
        self.blocks.head.mark = await self.machine.mark()
        await self.mine()

    # --- The machine's view of the world ---

    def balance(self, address: bytes) -> int:
        """Return the sun of an address of 20 bytes."""
        account = self.state.account(keys.PREFIX + address)
        return account.balance if account is not None else 0

    def exists(self, address: bytes) -> bool:
        """Tell whether there is an account at an address of 20 bytes."""
        return self.state.account(keys.PREFIX + address) is not None

    # --- Reading ---

    @property
    def solid_number(self) -> int:
        """The newest block that cannot be replaced any more."""
        return max(self.blocks.head.number - self.makers.behind, 0)

    def view(self, *, solid: bool = False, lag: int = 0, hidden: frozenset[bytes] = frozenset()) -> View:
        """Return the chain as the full node, its solid side or a lagging node tells of it."""
        top = max(self.blocks.head.number - lag, 0)
        number = max(top - self.makers.behind, 0) if solid else top
        head = self.blocks.at(number)
        assert head is not None
        if number == self.blocks.head.number and not solid:
            return View(self.blocks, head, self.state, None, self.pool, hidden)
        layers = [block.undo for block in self.blocks.since(number)]
        past = Past(self.state.ledger, [*layers, *self.state.ledger.pending])
        state = State(past, self.parameters, head.timestamp_ms)
        return View(self.blocks, head, state, head.mark, None, hidden)

    # --- Transactions and blocks ---

    def now_ms(self) -> int:
        """Return the time: the clock's, ahead by what was skipped, but never before the head's."""
        return max(self.clock_ms() + self._skipped_ms, self.blocks.head.timestamp_ms)

    def skip(self, ms: int) -> None:
        """Let the next block come so much later than the head, and time go on from there."""
        self._skipped_ms = self.blocks.head.timestamp_ms + ms - self.clock_ms()

    def unique_ms(self) -> int:
        """Return a time that no transaction built here has had: it makes them distinct."""
        self._newest_ms = max(self._newest_ms + 1, self.now_ms())
        return self._newest_ms

    async def broadcast(self, transaction: Transaction) -> None:
        """Take a transaction to wait for a block. Raises RefusedError."""
        await self.pool.broadcast(transaction, self.now_ms())

    async def mine(self, blocks: int = 1) -> None:
        """Make blocks. What waits goes into the first that has room for it; those in ``held_back`` stay pending."""
        await self.pool.take_back()
        for _ in range(blocks):
            await self._make([each for each in self.pool if each.id not in self.held_back], self._next_slot())
        await self.pool.put_back(self.now_ms())

    async def grant(self, address: bytes, sun: int) -> None:
        """Make a block in which an account has so much more, out of nothing."""
        await self.pool.take_back()
        await self._make([], self._next_slot(), grant=(address, sun))
        await self.pool.put_back(self.now_ms())

    async def reorg(self, depth: int, keep: Sequence[bytes] = (), *, to_pool: bool = False) -> None:
        """Replace the newest blocks by one more than they were. Raises ReorgError.

        Transactions in ``keep`` are carried out again, a block later and behind another transaction; the others are
        forgotten, or wait again with ``to_pool``.
        """
        undone = self.blocks.since(self.blocks.head.number - depth)
        if not 0 < depth < self.blocks.head.number:
            raise ReorgError(f"there are {self.blocks.head.number - 1} blocks to replace, not {depth}")
        missing = set(keep) - {each.id for block in undone for each in block.transactions}
        if missing:
            raise ReorgError(f"{', '.join(each.hex() for each in missing)} is not in the newest {depth} blocks")
        await self.pool.take_back()
        dropped = await self._undo(depth)
        # Another branch is made at other times.
        self._branch += 1
        timestamp_ms = self.blocks.head.timestamp_ms + BLOCK_MS
        for block in [None, *undone]:
            kept = [] if block is None else [each for each in block.transactions if each.id in keep]
            timestamp_ms += BLOCK_MS
            await self._make([*([self._filler()] if kept else []), *kept], timestamp_ms)
        lost = [each for each in keep if self.state.block_number(each) is None]
        if to_pool:
            for transaction in dropped:
                if transaction.id not in keep:
                    transaction.received_ms = self.now_ms()
                    self.pool.add(transaction)
        await self.pool.put_back(self.now_ms())
        if lost:
            raise ReorgError(f"{', '.join(each.hex() for each in lost)} cannot be carried out on the other branch")

    async def forget_pool(self) -> None:
        """Forget what waits, as a node does that was started again."""
        await self.pool.take_back()
        self.pool.clear()

    async def _undo(self, depth: int) -> Sequence[Transaction]:
        """Take the newest blocks off, and return their transactions."""
        transactions: list[Transaction] = []
        for _ in range(depth):
            block = self.blocks.pop()
            self.state.ledger.undo(block.undo)
            transactions[:0] = block.transactions
        head = self.blocks.head
        self.state.now_ms = head.timestamp_ms
        if any(each.kind in {CREATE_CONTRACT, TRIGGER} for each in transactions):
            await self.machine.rewind(head.mark)
        return transactions

    async def _make(
        self, wanted: Sequence[Transaction], timestamp_ms: int, *, grant: tuple[bytes, int] | None = None
    ) -> None:
        parent, number = self.blocks.head, self.blocks.head.number + 1
        position = number + self._branch
        moment = Moment(number, timestamp_ms, self.makers.at(position)[1:])
        done: list[Transaction] = []
        infos: list[Any] = []
        size = 0
        self.state.ledger.begin()
        if grant is not None:
            if self.state.account(grant[0]) is None:
                self.state.create(grant[0])
            self.state.credit(*grant)
        for transaction in wanted:
            if size + transaction.size > self.parameters.block_bytes_max:
                continue
            self.pool.drop(transaction.id)
            try:
                concluded = await self.pool.attempt(transaction, moment, internals=self._trace_internal)
            except RefusedError:
                continue
            size += transaction.size
            done.append(transaction.concluded(concluded.result))
            infos.append(concluded.info)
            self.state.put_block_number(transaction.id, number)
        block = make(parent, done, timestamp_ms, self.makers, position)
        block.infos = infos
        block.undo = self.state.ledger.close()
        block.mark = await self.pool.mark_after(parent.mark)
        self.blocks.append(block)
        self.state.now_ms = timestamp_ms

    def _next_slot(self) -> int:
        return slot_after(self.blocks.head.timestamp_ms, self.now_ms())

    def _filler(self) -> Transaction:
        """Return a transaction that only shifts the others by one position."""
        self._fillers += 1
        head, owner = self.blocks.head, keys.address_of(self._filler_key)
        held = new(TRANSFER, owner_address=owner, to_address=self.makers.at(0), amount=1)
        plain = build(
            TRANSFER, held, ref_block_bytes=head.id[6:8], ref_block_hash=head.id[8:16],
            expiration=head.timestamp_ms + 60_000, timestamp=self._fillers,
        )  # fmt: skip
        return signed(plain, self._filler_key)
