"""What nodes answer, as far as the gateway reads it: decoding goes straight into these.

Fields that nobody needs are skipped by the decoder, so transactions of unknown types and extra fields of any
chain pass. Nothing here can be part of a reference cycle, so the garbage collector need not look at it.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import UNSET, Struct, UnsetType, field

T = TypeVar("T")


class RpcFailure(Struct, gc=False):
    """The ``error`` of a JSON-RPC answer. Nodes are not agreed on its codes, nor on what ``data`` holds."""

    code: int | str = 0
    message: str = ""
    data: Any = None


class Answer(Struct, Generic[T], gc=False):
    """One JSON-RPC answer. ``result`` is None for a null, which is an answer, and UNSET where it is missing."""

    id: int | str | None = None
    result: T | UnsetType | None = UNSET
    error: RpcFailure | str | None = None


class RpcLog(Struct, gc=False, rename="camel"):
    """One log of a receipt. ``log_index`` counts through the block."""

    address: str
    topics: list[str]
    data: str
    transaction_hash: str
    log_index: str = ""
    removed: bool = False


class RpcReceipt(Struct, gc=False, rename="camel"):
    """What came of a transaction. ``to`` is None where it created a contract; some nodes leave both ends out."""

    transaction_hash: str
    block_hash: str
    logs: list[RpcLog]
    status: str | None = None
    gas_used: str = ""
    logs_bloom: str = ""
    sender: str | UnsetType | None = field(name="from", default=UNSET)
    to: str | UnsetType | None = UNSET


class RpcTransaction(Struct, gc=False, rename={"sender": "from"}):
    """A transaction as it was sent. ``to`` is None where it created a contract.

    ``mint`` is what a deposit into an OP chain creates for its sender, whatever becomes of the rest.
    """

    hash: str
    sender: str
    value: str
    to: str | None = None
    type: str | None = None
    mint: str | None = None


class RpcHeader(Struct, gc=False, rename="camel"):
    """A block without its transactions."""

    number: str
    hash: str
    parent_hash: str
    timestamp: str


class RpcBlock(RpcHeader, gc=False, rename="camel"):
    """A block with its transactions, and the root of the tree that they make."""

    transactions: list[RpcTransaction]
    transactions_root: str = ""


class CallFrame(Struct, gc=False, rename={"sender": "from"}):
    """One call inside a transaction, and the calls it made, as Geth's callTracer tells it."""

    type: str
    sender: str = ""
    to: str | None = None
    value: str | None = None
    error: str | None = None
    calls: list[CallFrame] = []


class TracedTransaction(Struct, gc=False, rename="camel"):
    """What ``debug_traceBlockByHash`` tells of one transaction; old nodes leave the hash out."""

    tx_hash: str | None = None
    result: CallFrame | None = None
    error: str | None = None


class FlatAction(Struct, gc=False, rename={"sender": "from", "call_type": "callType", "refund": "refundAddress"}):
    """The ``action`` of a flat trace: a call, a creation, or a self-destruction."""

    sender: str = ""
    to: str | None = None
    value: str | None = None
    call_type: str = ""
    address: str = ""
    refund: str | None = None
    balance: str | None = None


class FlatResult(Struct, gc=False):
    """The ``result`` of a flat trace, as far as it tells where the value went: a creation's contract."""

    address: str | None = None


class FlatTrace(Struct, gc=False, rename="camel"):
    """One frame as ``trace_block`` tells it: the same tree, flat, in the order of execution."""

    type: str
    action: FlatAction
    trace_address: list[int] = []
    transaction_hash: str | None = None
    block_hash: str | None = None
    error: str | None = None
    result: FlatResult | None = None


class RpcReceiptTotals(Struct, gc=False, rename="camel"):
    """What a transaction came to and cost. ``l1_fee`` is what OP chains charge beside the gas."""

    transaction_hash: str
    block_hash: str
    block_number: str
    gas_used: str
    effective_gas_price: str
    status: str | None = None
    l1_fee: str | None = None


class RpcSeen(Struct, gc=False):
    """Proof that a node has heard of a transaction."""

    hash: str


class RpcSigned(Struct, gc=False, rename="camel"):
    """What was signed, field by field. Which of them there are depends on ``type``; ``v`` may be the parity alone."""

    sender: str = field(name="from")
    nonce: str
    gas: str
    value: str
    input: str
    type: str = "0x0"
    to: str | None = None
    gas_price: str | None = None
    max_fee_per_gas: str | None = None
    max_priority_fee_per_gas: str | None = None
    chain_id: str | None = None
    access_list: list[Any] | None = None
    v: str = ""
    r: str = ""
    s: str = ""


class RpcMarketHeader(Struct, gc=False, rename="camel"):
    """What a block says of fees. ``base_fee_per_gas`` is missing on chains without EIP-1559."""

    number: str
    base_fee_per_gas: str | None = None


class RpcFeeHistory(Struct, gc=False, rename="camel"):
    """Base fees of some blocks and of the one after them, and what was paid above."""

    base_fee_per_gas: list[str] = []
    reward: list[list[str]] | None = None


class RpcFullReceipt(RpcReceiptTotals, gc=False, rename="camel", kw_only=True):
    """A receipt that was asked for alone: what the transaction came to, where it stands, and what it wrote down."""

    logs: list[RpcLog]
    transaction_index: str
    logs_bloom: str = ""


class RpcFoundLog(RpcLog, gc=False, rename="camel", kw_only=True):
    """A log that a query found, and the block it is in."""

    block_hash: str
    block_number: str


class SimulatedLog(Struct, gc=False):
    """A log of a call that was only tried: it has no transaction and no block."""

    address: str
    topics: list[str]
    data: str


class SimulatedCall(Struct, gc=False, rename="camel"):
    """What came of one call of ``eth_simulateV1``. Reverts have a ``return_data``, and some nodes say why beside it."""

    status: str
    gas_used: str
    logs: list[SimulatedLog]
    return_data: str = ""
    error: RpcFailure | None = None


class SimulatedBlock(Struct, gc=False):
    """The block that ``eth_simulateV1`` made of its calls."""

    calls: list[SimulatedCall]
