"""Native value that moves inside transactions: from contracts, multisigs and exchanges' batch payers. Pure.

The top-level transfer of a transaction is never taken from a trace, so block and trace together are one source:
a transfer appears as ``native`` or as ``trace:<number>``, not as both. The number counts what moved for good inside
the transaction, in the order of execution. It stays the same wherever the transaction is mined, and whatever kind of
trace tells of it: nodes leave out calls of precompiled contracts and calls that failed before they began, or number
them, so the path of a call is not the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from cambist.plugin import InconsistentChainError, Transfer, Watch
from cambist_chainkit.eip55 import ADDRESS

from .decode import is_synthetic, succeeded, took_effect, transfer_in
from .quantities import quantity
from .wire import CallFrame, FlatTrace, RpcBlock, RpcReceipt, TracedTransaction

# DELEGATECALL and CALLCODE repeat a value that does not leave the account, STATICCALL has none.
_MOVING: Final = frozenset({"CALL", "CREATE", "CREATE2", "SELFDESTRUCT"})
_STILL: Final = frozenset({"DELEGATECALL", "CALLCODE", "STATICCALL"})
_FLAT_TYPES: Final = frozenset({"call", "create", "suicide", "reward"})
_CALL_TYPES: Final = frozenset({"call", "callcode", "delegatecall", "staticcall"})
_PLAIN_GAS: Final = "0x5208"
_PRECOMPILED_MAX: Final = 0x1FF
"""The last address that is kept for precompiled contracts. Some nodes leave out also what is paid to one."""


class Movement(NamedTuple):
    """Value that moved for good inside one transaction."""

    sender: str
    recipient: str
    value: int


def may_move_inside(receipts: Sequence[RpcReceipt]) -> bool:
    """Return whether any transaction ran code. Exactly the intrinsic 21 000 gas is left when none did."""
    return any(receipt.gas_used != _PLAIN_GAS for receipt in receipts)


def internal_transfers(
    block: RpcBlock, receipts: Sequence[RpcReceipt], movements: Sequence[Sequence[Movement]], watch: Watch
) -> list[tuple[int, Transfer]]:
    """Return (transaction's index, transfer) for each movement to or from a watched address that took effect."""
    found = []
    for index, (receipt, moved) in enumerate(zip(receipts, movements, strict=True)):
        for number, movement in enumerate(moved):
            pays = bytes.fromhex(movement.recipient[2:]) in watch
            if not pays and bytes.fromhex(movement.sender[2:]) not in watch:
                continue
            if took_effect(receipt) if pays else succeeded(receipt):
                ends = movement.sender[2:], movement.recipient[2:]
                transfer = transfer_in(block, receipt.transaction_hash, f"trace:{number}", *ends, movement.value)
                found.append((index, transfer))
    return found


def from_call_frames(block: RpcBlock, traced: Sequence[TracedTransaction]) -> list[list[Movement]]:
    """Return each transaction's movements from what the callTracer told of the whole block."""
    traced = [*traced, *_untraced(block, len(traced))]
    if len(traced) != len(block.transactions):
        message = f"block {block.number} has {len(block.transactions)} transactions and {len(traced)} traces"
        raise InconsistentChainError(message)
    movements = []
    for tx, trace in zip(block.transactions, traced, strict=True):
        if trace.result is None or trace.tx_hash not in (None, tx.hash):
            message = f"the trace of {tx.hash} is missing: {(trace.error or 'another came in its place')[:100]}"
            raise InconsistentChainError(message)
        movements.append(list(walk_frames(trace.result)))
    return movements


def _untraced(block: RpcBlock, count: int) -> Sequence[TracedTransaction]:
    """Return an empty trace for the synthetic last transaction where the node traces only what somebody sent."""
    listed = block.transactions
    if listed and count == len(listed) - 1 and is_synthetic(listed[-1]):
        return [TracedTransaction(tx_hash=listed[-1].hash, result=CallFrame(type="CALL"))]
    return ()


def walk_frames(top: CallFrame) -> Iterator[Movement]:
    """Yield the movements below the top frame, in the order of execution. A failed frame undoes all below it."""
    if top.error is not None:
        return
    # A stack of our own: a call tree can be 1024 deep, which is more than Python's.
    waiting = top.calls[::-1]
    while waiting:
        frame = waiting.pop()
        if frame.error is not None:
            continue
        if frame.type in _MOVING:
            movement = _movement(frame.sender, frame.to, frame.value)
            if movement is not None:
                yield movement
        elif frame.type not in _STILL:
            raise InconsistentChainError(f"a trace holds a call of no known kind: {frame.type[:80]!r}")
        waiting.extend(frame.calls[::-1])


def from_flat_traces(block: RpcBlock, traces: Sequence[FlatTrace]) -> list[list[Movement]]:
    """Return each transaction's movements from what ``trace_block`` told, which also lists block rewards."""
    by_hash: dict[str, list[FlatTrace]] = {tx.hash: [] for tx in block.transactions}
    for trace in traces:
        if trace.transaction_hash is None:
            continue
        if trace.block_hash not in (None, block.hash) or trace.transaction_hash not in by_hash:
            raise InconsistentChainError(f"traces of another block came with block {block.number}")
        by_hash[trace.transaction_hash].append(trace)
    missing = next((tx.hash for tx in block.transactions if not by_hash[tx.hash] and not is_synthetic(tx)), None)
    if missing is not None:
        raise InconsistentChainError(f"the trace of {missing} is missing")
    for tx_id, own in by_hash.items():
        _check_order(tx_id, own)
    return [list(_walk_flat(own)) for own in by_hash.values()]


def _check_order(tx_id: str, traces: Sequence[FlatTrace]) -> None:
    """Raise InconsistentChainError unless each call comes once, behind the one that made it and those before it.

    There may be gaps: nodes leave out calls of precompiled contracts, and some count them.
    """
    addresses = [trace.trace_address for trace in traces]
    known = {tuple(address) for address in addresses}
    ordered = all(before < after for before, after in pairwise(addresses))
    if addresses and not (ordered and not addresses[0] and all(tuple(one[:-1]) in known for one in addresses)):
        raise InconsistentChainError(f"the calls that were traced of {tx_id} are no tree")
    if any(index < 0 for address in addresses for index in address):
        raise InconsistentChainError(f"the calls that were traced of {tx_id} are not numbered")


def _walk_flat(traces: Sequence[FlatTrace]) -> Iterator[Movement]:
    failed: list[list[int]] = []
    for trace in traces:
        address = trace.trace_address
        if any(address[: len(above)] == above for above in failed):
            continue
        if trace.error is not None:
            failed.append(address)
            continue
        if not address:
            continue
        action = trace.action
        if trace.type not in _FLAT_TYPES or (trace.type == "call" and action.call_type not in _CALL_TYPES):
            message = f"a trace holds a call of no known kind: {trace.type[:40]!r}, {action.call_type[:40]!r}"
            raise InconsistentChainError(message)
        if trace.type == "call" and action.call_type == "call":
            movement = _movement(action.sender, action.to, action.value)
        elif trace.type == "create" and trace.result is not None:
            movement = _movement(action.sender, trace.result.address, action.value)
        elif trace.type == "suicide":
            movement = _movement(action.address, action.refund, action.balance)
        else:
            movement = None
        if movement is not None:
            yield movement


def _movement(sender: str, recipient: str | None, value: str | None) -> Movement | None:
    if value is None or recipient is None or sender == recipient:
        return None
    amount = quantity(value)
    if amount and (ADDRESS.fullmatch(sender) is None or ADDRESS.fullmatch(recipient) is None):
        raise InconsistentChainError("a trace holds an address that is none")
    if amount == 0 or 0 < int(recipient, 16) <= _PRECOMPILED_MAX:
        return None
    return Movement(sender, recipient, amount)
