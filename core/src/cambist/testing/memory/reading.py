"""The reading half of a chain in memory: transactions that wait, are mined, reorganised away and come back."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import ClassVar

from cambist.plugin import (
    AddressFamily,
    Block,
    Chain,
    ChainInfo,
    ChainUnavailableError,
    ChainView,
    Dated,
    EndpointHealth,
    Token,
    TxStatus,
    Units,
    UnreadableTokenError,
)

from .accounts import Accounts
from .blocks import MinedBlock, Output, Transaction
from .family import MemoryFamily, named_address
from .faults import Call, MemoryFaults
from .fees import MemoryFees
from .pool import Pool
from .rules import MemoryRules
from .view import MemoryView

GENESIS_TIME = 1_750_000_000
FINALITY_LAG_BLOCKS = 5


class MemoryReading(Chain):
    """What of a MemoryChain does not send: its blocks, what tests do to them, and what is read."""

    view_type: ClassVar[type[MemoryView]] = MemoryView
    name = "memory"

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
        fees: MemoryFees | None = None,
        rules: MemoryRules | None = None,
    ) -> None:
        self.info = info
        self.family = family or MemoryFamily()
        self.faucet = self.family.normalize_address(faucet or named_address("faucet"))
        self.faults = MemoryFaults()
        self.fees = fees or MemoryFees()
        self.rules = rules
        self.accounts = Accounts(self.faucet, self.fees, self.faults, rules, info.tokens)
        self.pool = Pool()
        self.chance = Random(seed)
        default_lag = None if rules is None else FINALITY_LAG_BLOCKS
        self._finality_lag_blocks = default_lag if finality_lag_blocks is None else finality_lag_blocks
        self._block_time_s = block_time_s
        self.contracts: dict[str, Token] = {}
        self._serial = seed << 64
        self._calls = 0
        self._failures = 0
        self._mined: dict[str, int] = {}
        self._raws: dict[str, bytes] = {}
        genesis = Block(height=0, hash=self._digest("block"), parent_hash="0" * 64, time=genesis_time)
        self._blocks = [MinedBlock(header=genesis, transactions=(), reverted=frozenset(), fees={})]

    # What tests do to it.

    @property
    def height(self) -> int:
        return len(self._blocks) - 1

    def transfer(self, token: Token, recipient: str, amount: int, *, sender: str | None = None) -> str:
        """Make a transaction that sends one amount, and return its id; it waits to be mined."""
        return self.submit([Output(contract=token.contract, recipient=recipient, amount=amount)], sender=sender)

    def submit(
        self,
        outputs: Sequence[Output],
        *,
        sender: str | None = None,
        sequence: int | None = None,
        reverts: bool = False,
    ) -> str:
        """Make a transaction that waits to be mined; its outputs may name contracts that nobody registered.

        With a sequence it pushes aside what waits under it: somebody else holds the sender's key, and pays more.
        """
        for output in outputs:
            if output.amount < 0:
                raise ValueError(f"an amount is not negative, and {output.amount} is")
            if self.family.normalize_address(output.recipient) != output.recipient:
                raise ValueError(f"{output.recipient} is not a normalized address")
        transaction = Transaction(
            id=self._digest("transaction"),
            sender=sender or self.faucet,
            outputs=tuple(outputs),
            reverts=reverts,
            sequence=sequence,
        )
        self.pool.add(transaction)
        return transaction.id

    def forget(self, tx_id: str | None = None) -> None:
        """Drop one transaction that waits, or all of them, as nodes do when they restart or run full."""
        for waiting in self.pool:
            if tx_id in (None, waiting.id):
                self.pool.remove(waiting.id)

    def mine(self, blocks: int = 1, *, time: int | None = None) -> None:
        """Mine blocks; the first takes all that can be mined, in the order of arrival. ``time`` is the first one's."""
        for number in range(blocks):
            self._append([] if self.faults.mining_paused else list(self.pool), time if number == 0 else None)

    def reorg(self, depth: int, *, mine_again: Sequence[str] = (), new_blocks: int | None = None) -> None:
        """Replace the newest blocks by as many others, or by ``new_blocks``.

        Their transactions are dropped, but for those to mine again: these come into the last new block, behind
        another transaction, or wait where that cannot be. What waits goes on waiting. Genesis stays.
        """
        if not 0 < depth <= self.height:
            raise ValueError(f"a reorg of {depth} needs as many blocks above genesis, and there are {self.height}")
        dropped = {tx.id: tx for block in self._blocks[-depth:] for tx in block.transactions}
        kept = [dropped[tx_id] for tx_id in mine_again]
        del self._blocks[-depth:]
        self.accounts.rewind(self.height)
        for tx_id in dropped:
            del self._mined[tx_id]
        length = depth if new_blocks is None else new_blocks
        for number in range(length):
            filler = self._filler() if kept and number == length - 1 else ()
            self._append((*filler, *kept) if number == length - 1 else (), None)
        for transaction in kept:
            if transaction.id not in self._mined:
                self.pool.add(transaction)

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
        return (await self.balances([(address, token)], at))[0]

    async def balances(self, wanted: Sequence[tuple[str, Token]], at: int | None = None) -> Sequence[Units]:
        await self.met("balance")
        last = max(0, self.height - self.faults.balances_lag_blocks) if at is None else at
        if not 0 <= last <= self.height:
            raise ChainUnavailableError(f"{self.info.id} has no block {last} yet")
        return [Units(self.accounts.balance(address, token.contract, last)) for address, token in wanted]

    async def transaction(self, tx_id: str) -> TxStatus:
        return (await self.transactions([tx_id]))[0]

    async def transactions(self, tx_ids: Sequence[str]) -> Sequence[TxStatus]:
        await self.met("transaction")
        return [self._status(tx_id) for tx_id in tx_ids]

    async def expired(self, txs: Sequence[Dated]) -> Sequence[bool]:
        """Look for them in every block, once the newest final block is later than all that may hold them."""
        await self.met("expired")
        final = self.finalized_height(self.seen_height())
        if self.rules is None or final is None:
            return [False for _ in txs]
        time = self._blocks[final].header.time
        return [tx.valid_until < time and tx.tx_id not in self._mined for tx in txs]

    async def token_at(self, contract: str) -> Token:
        """Return a registered token, or what a test put into ``contracts``."""
        await self.met("token")
        known = {token.contract: token for token in self.info.tokens} | self.contracts
        if contract not in known:
            raise UnreadableTokenError(f"{contract} is no token contract")
        return known[contract]

    def endpoints(self) -> Sequence[EndpointHealth]:
        healthy = not self.faults.unavailable
        health = EndpointHealth(
            name=self.name,
            healthy=healthy,
            head=self.height,
            calls=self._calls,
            failures=self._failures,
            position=0,
            set_aside=None if healthy else "nobody answers",
        )
        return (health,)

    # What the view and the sending half ask.

    async def met(self, call: Call, *, span_length: int = 0) -> None:
        """Count a call and let the faults have their say."""
        self._calls += 1
        await self.faults.meet(call, span_length=span_length)

    def seen(self) -> Sequence[MinedBlock]:
        """Return the blocks that the endpoint knows of."""
        return self._blocks[: max(1, len(self._blocks) - self.faults.lag_blocks)]

    def seen_time(self) -> int:
        """Return the time of the newest block that the endpoint knows of."""
        return self.seen()[-1].header.time

    def seen_height(self) -> int:
        """Return the newest height that the endpoint knows of."""
        return len(self.seen()) - 1

    def is_mined(self, tx_id: str) -> bool:
        return tx_id in self._mined

    def finalized_height(self, height: int) -> int | None:
        """Return what is final when the head is at this height."""
        lag = self._finality_lag_blocks
        return None if lag is None else max(0, height - lag)

    def is_registered(self, contract: str | None) -> bool:
        """Whether transfers of this contract may be credited."""
        return any(token.contract == contract for token in self.info.tokens)

    # Its insides.

    def _status(self, tx_id: str) -> TxStatus:
        if tx_id in self.faults.hidden:
            return TxStatus(state="unknown")
        if tx_id in self.pool:
            return TxStatus(state="pending")
        if tx_id not in self._mined:
            return TxStatus(state="unknown")
        block = self._blocks[self._mined[tx_id]]
        return TxStatus(
            state="reverted" if tx_id in block.reverted else "succeeded",
            block=block.header,
            fee=Units(block.fees[tx_id]),
        )

    def _append(self, candidates: Sequence[Transaction], time: int | None) -> None:
        parent = self._blocks[-1].header
        header = Block(
            height=parent.height + 1,
            hash=self._digest(f"block:{parent.hash}"),
            parent_hash=parent.hash,
            time=max(parent.time, parent.time + self._block_time_s if time is None else time),
        )
        by_sequence = {(one.sender, one.sequence): one for one in candidates}
        taken: list[Transaction] = []
        reverted: set[str] = set()
        fees: dict[str, int] = {}
        for candidate in candidates:
            transaction: Transaction | None = candidate
            # What waited for this sender's sequence to come up is next.
            while transaction is not None and transaction.id not in fees:
                receipt = self.accounts.run(transaction, header.height, header.time)
                if receipt is None:
                    break
                taken.append(transaction)
                fees[transaction.id] = receipt.fee
                if receipt.reverted:
                    reverted.add(transaction.id)
                transaction = by_sequence.get((transaction.sender, self.accounts.sequence(transaction.sender)))
        self._blocks.append(
            MinedBlock(header=header, transactions=tuple(taken), reverted=frozenset(reverted), fees=fees)
        )
        for tx_id in fees:
            self._mined[tx_id] = header.height
            if tx_id in self.pool:
                self.pool.remove(tx_id)
        self.pool.tidy(self.accounts, header.time)

    def _filler(self) -> tuple[Transaction, ...]:
        outputs = tuple(Output(contract=token.contract, recipient=self.faucet, amount=1) for token in self.info.tokens)
        return (Transaction(id=self._digest("filler"), sender=self.faucet, outputs=outputs, reverts=False),)

    def _digest(self, purpose: str) -> str:
        self._serial += 1
        return hashlib.sha256(f"{self.info.id}:{self._serial}:{purpose}".encode()).hexdigest()
