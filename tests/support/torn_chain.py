"""A chain in memory whose nodes do not agree, and whose branches come back: with the very blocks that they had."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

from cambist.plugin import ChainInfo, TxStatus
from cambist.testing.memory import MemoryChain
from cambist.testing.memory.blocks import MinedBlock, Transaction
from cambist.testing.memory.faults import Call

READING = frozenset({"view", "head", "block", "scan"})
"""Calls of a poll, all of which go to one node."""
STATE = ("_held", "_sent", "_paid")


class TornChain(MemoryChain):
    """Two nodes behind one address, of which one is ``behind`` by so many blocks. Whom a call meets is chance.

    A node that is behind knows of no transaction in blocks that it has not got.
    """

    def __init__(self, info: ChainInfo, chance: Random) -> None:
        super().__init__(info)
        self.behind, self._coin = 0, chance
        self._left: tuple[Sequence[MinedBlock], dict[str, Any]] | None = None

    async def met(self, call: Call, *, span_length: int = 0) -> None:
        if self.behind and call not in READING:
            self.faults.lag_blocks = self.faults.balances_lag_blocks = self._coin.choice([0, self.behind])
        await super().met(call, span_length=span_length)

    def _status(self, tx_id: str) -> TxStatus:
        status = super()._status(tx_id)
        if status.block is None or status.block.height <= self.seen_height():
            return status
        return TxStatus(state=self._coin.choice(["pending", "unknown"]))

    def moved(self, newest: int) -> list[str]:
        """Return the ids of what moved something in so many of the newest blocks."""
        return [one.id for block in self._blocks[-newest:] for one, _, output in block.movements() if output.amount]

    def leave(self, depth: int, *, waits: Sequence[str] = (), again: Sequence[str] = (), longer: int = 0) -> None:
        """Replace the newest blocks. Of their transactions some wait ``again`` to be mined, and some are at once."""
        self._left = self._branch()
        dropped = self.dropped(depth)
        self.reorg(depth, mine_again=again, new_blocks=depth + longer)
        self._let_wait([one for one in dropped if one.id in waits])

    def dropped(self, depth: int) -> list[Transaction]:
        return [transaction for block in self._blocks[-depth:] for transaction in block.transactions]

    def come_back(self, depth_max: int) -> bool:
        """Have the branch that was left last be the longest after all, unless it was left further down than this."""
        if self._left is None:
            return False
        now, (blocks, state) = self._branch(), self._left
        fork = sum(one.header == other.header for one, other in zip(self._blocks, blocks, strict=False))
        if max(len(self._blocks), len(blocks)) - fork > depth_max:
            self._left = None
            return False
        longer, lost, self._left = len(self._blocks), self.dropped(len(self._blocks) - fork), now
        self._blocks = list(blocks)
        for name, sums in copy.deepcopy(state).items():
            setattr(self.accounts, name, sums)
        self._mined = {one.id: block.header.height for block in blocks for one in block.transactions}
        self.pool.tidy(self.accounts, self.seen_time())
        for tx_id in self._mined:
            if tx_id in self.pool:
                self.pool.remove(tx_id)
        self._let_wait([one for one in lost if one.id not in self._mined])
        self.mine(max(1, longer - len(blocks) + 1))
        return True

    def _branch(self) -> tuple[Sequence[MinedBlock], dict[str, Any]]:
        return tuple(self._blocks), {name: copy.deepcopy(getattr(self.accounts, name)) for name in STATE}

    def _let_wait(self, lost: Sequence[Transaction]) -> None:
        for one in lost:
            is_next = one.sequence is None or (
                one.sequence >= self.accounts.sequence(one.sender) and self.pool.at(one.sender, one.sequence) is None
            )
            if is_next and one.id not in self.pool:
                self.pool.add(one)
