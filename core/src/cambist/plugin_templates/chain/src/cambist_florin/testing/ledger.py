"""The example chain's rules: who holds what, which transactions may be mined, and what they cost."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence

from msgspec import Struct

from ..addresses import spell
from ..payload import WORK
from ..wire import NodeBlock, NodeTransfer

FAUCET = spell(b"faucet".ljust(20, b"\0"))
FINALITY_BLOCKS = 4
WAITING_MAX = 10_000
PRICE = 1_000

Holding = tuple[str, str | None]


class LedgerTransfer(Struct, frozen=True, kw_only=True):
    """What somebody wants mined. The faucet's have no sequence, cost nothing, and fail where they are told to."""

    id: str
    sender: str
    contract: str | None
    recipient: str
    amount: int
    sequence: int | None = None
    limit: int = WORK
    price: int = 0
    fails: bool = False

    def native_needed(self) -> int:
        """Return what its sender must hold of the native coin."""
        return self.limit * self.price + (self.amount if self.contract is None else 0)


class _State(Struct, frozen=True):
    balances: dict[Holding, int]
    sequences: dict[str, int]


class Ledger:
    """Blocks, the state after each of them, and what waits. Nothing is mined but by ``mine``."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Start with an empty first block. ``now`` gives blocks their times, in seconds since 1970."""
        self._now = now
        self._serial = itertools.count()
        self._states = [_State({}, {})]
        self.blocks = [self._block("0" * 64, 0, ())]
        self.waiting: dict[str, LedgerTransfer] = {}
        self.frozen: set[str] = set()
        self.price = PRICE

    @property
    def height(self) -> int:
        """The newest block's height."""
        return len(self.blocks) - 1

    @property
    def final_height(self) -> int:
        """The newest height that no reorg reaches."""
        return max(0, self.height - FINALITY_BLOCKS)

    def balance(self, address: str, contract: str | None, height: int | None = None) -> int:
        """Return what was held at the end of a block, or is now."""
        return self._states[self.height if height is None else height].balances.get((address, contract), 0)

    def sequence(self, address: str) -> int:
        """Return how many transactions of the address are mined."""
        return self._states[-1].sequences.get(address, 0)

    def grant(self, contract: str | None, recipient: str, amount: int, *, fails: bool = False) -> str:
        """Have the faucet send something, of whatever contract, and return the transaction's id."""
        tx_id = hashlib.sha256(f"grant {next(self._serial)}".encode()).hexdigest()
        self.waiting[tx_id] = LedgerTransfer(
            id=tx_id, sender=FAUCET, contract=contract, recipient=recipient, amount=amount, fails=fails
        )
        return tx_id

    def find(self, tx_id: str) -> tuple[NodeBlock, NodeTransfer] | None:
        """Return a mined transaction, and its block."""
        return next(((block, one) for block in self.blocks for one in block.transfers if one.id == tx_id), None)

    def mine(self, first: Sequence[LedgerTransfer] = ()) -> None:
        """Make a block of all that waits and can be mined, ``first`` before the others."""
        state = _State(dict(self._states[-1].balances), dict(self._states[-1].sequences))
        candidates, mined = [*first, *self.waiting.values()], list[NodeTransfer]()
        while possible := next((one for one in candidates if self._can_be_mined(one, state)), None):
            candidates.remove(possible)
            mined.append(_run(possible, state, frozen=self.frozen))
        self._states.append(state)
        self.blocks.append(self._block(self.blocks[-1].hash, self.height + 1, tuple(mined)))
        for one in mined:
            self.waiting.pop(one.id, None)
        for old in [one for one in self.waiting.values() if not _may_ever_be_mined(one, state)]:
            del self.waiting[old.id]

    def reorg(self, depth: int, keep: Sequence[LedgerTransfer] = ()) -> None:
        """Replace the newest blocks by one more; what stood in them is gone, but for what the last new one keeps."""
        if not 0 < depth <= self.height - self.final_height:
            raise ValueError(f"{depth} blocks cannot be replaced: {self.final_height} is final")
        del self.blocks[-depth:], self._states[-depth:]
        for _ in range(depth):
            self.mine()
        self.mine(keep)

    def _can_be_mined(self, one: LedgerTransfer, state: _State) -> bool:
        if one.sequence is None:
            return True
        enough = one.native_needed() <= state.balances.get((one.sender, None), 0)
        return one.sequence == state.sequences.get(one.sender, 0) and one.price >= self.price and enough

    def _block(self, parent_hash: str, height: int, transfers: tuple[NodeTransfer, ...]) -> NodeBlock:
        block_hash = hashlib.sha256(f"{parent_hash} {next(self._serial)}".encode()).hexdigest()
        time = max(int(self._now()), self.blocks[-1].time if height else 0)
        return NodeBlock(height=height, hash=block_hash, parent_hash=parent_hash, time=time, transfers=transfers)


def _run(one: LedgerTransfer, state: _State, *, frozen: set[str]) -> NodeTransfer:
    """Carry it out: the fee is paid in any case."""
    balances, fee = state.balances, WORK * one.price
    if one.sequence is not None:
        state.sequences[one.sender] = one.sequence + 1
        balances[one.sender, None] -= fee
    source, recipient = (one.sender, one.contract), (one.recipient, one.contract)
    poor = one.sender != FAUCET and balances.get(source, 0) < one.amount
    ok = not (one.fails or poor or one.recipient in frozen or one.limit < WORK)
    if ok:
        balances[source] = balances.get(source, 0) - one.amount
        balances[recipient] = balances.get(recipient, 0) + one.amount
    return NodeTransfer(
        id=one.id,
        sender=one.sender,
        contract=one.contract,
        recipient=one.recipient,
        amount=one.amount,
        fee=fee,
        ok=ok,
    )


def _may_ever_be_mined(one: LedgerTransfer, state: _State) -> bool:
    return one.sequence is None or one.sequence >= state.sequences.get(one.sender, 0)


def kept(transfer: NodeTransfer) -> LedgerTransfer:
    """Return a grant as it was before it was mined, so that a reorg can mine it again."""
    if transfer.sender != FAUCET:
        raise ValueError("only the faucet's transactions are mined again")
    return LedgerTransfer(
        id=transfer.id,
        sender=FAUCET,
        contract=transfer.contract,
        recipient=transfer.recipient,
        amount=transfer.amount,
    )
