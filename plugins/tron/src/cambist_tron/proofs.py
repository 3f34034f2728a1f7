"""Proves that a block's list of transactions is whole: its header holds the root of a tree of their hashes.

Nodes give transactions as JSON, and the tree is over their bytes, so these are put together again: the signed part as
it came in hex, the signatures, and the result that the block's maker wrote behind them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from cambist.plugin import Block, InconsistentChainError

from .decode import SUCCESS
from .endpoint import Endpoint
from .headers import NOTHING, check_header
from .protobuf import encode
from .wire import BlockList, TronHeader

_RAW, _SIGNATURE, _RESULT, _CONTRACT_RESULT = 1, 2, 5, 3
_RESULTS: Final[Mapping[str, int]] = {
    name: number
    for number, name in enumerate(
        (
            "DEFAULT",
            "SUCCESS",
            "REVERT",
            "BAD_JUMP_DESTINATION",
            "OUT_OF_MEMORY",
            "PRECOMPILED_CONTRACT",
            "STACK_TOO_SMALL",
            "STACK_TOO_LARGE",
            "ILLEGAL_OPERATION",
            "STACK_OVERFLOW",
            "OUT_OF_ENERGY",
            "OUT_OF_TIME",
            "JVM_STACK_OVER_FLOW",
            "UNKNOWN",
            "TRANSFER_FAILED",
            "INVALID_CODE",
        )
    )
}

PAIR_BYTES: Final = 64
"""Of two hashes, which are hashed as a transaction is: a node could show them as one, and hide the two that have them.

With its signature, no transaction is so short.
"""


class WholeTx(msgspec.Struct, gc=False):
    """A transaction with all that its bytes are made of."""

    id: str = msgspec.field(name="txID")
    raw_data_hex: str = ""
    signature: list[str] = []
    ret: list[dict[str, Any]] = []


class WholeBlock(TronHeader):
    """A block with such transactions."""

    transactions: list[WholeTx] = msgspec.field(default_factory=list)


class Contents(msgspec.Struct, frozen=True):
    """A block, the ids of its transactions, and of those that it says succeeded.

    ``proven`` says that the header proves that these are all, and that this came of them.
    """

    block: Block
    tx_ids: frozenset[str]
    succeeded: frozenset[str]
    proven: bool


async def read_contents(endpoint: Endpoint, first: int, count: int) -> list[Contents]:
    """Return what stands in blocks in a row. Raises InconsistentChainError."""
    found = await endpoint.listed(first, count, BlockList[WholeBlock])
    return [await _contents(endpoint, block, height) for height, block in enumerate(found, first)]


async def _contents(endpoint: Endpoint, found: WholeBlock, height: int) -> Contents:
    block = check_header(found, height)
    tx_ids = frozenset(tx.id for tx in found.transactions)
    root = root_of([leaf_of(tx) for tx in found.transactions]).hex()
    proven = root == (found.raw.tx_trie_root or NOTHING)
    if not proven:
        # Bytes can hold what JSON does not show, and anybody can send such a transaction. There is one more list.
        results = await endpoint.infos(height)
        if len(results) != len(found.transactions) or {result.id for result in results} != tx_ids or not tx_ids:
            raise InconsistentChainError(f"{endpoint.name} gave block {height} without some of its transactions")
    succeeded = frozenset(tx.id for tx in found.transactions if [one.get("contractRet") for one in tx.ret] == [SUCCESS])
    return Contents(block, tx_ids, succeeded, proven)


def leaf_of(tx: WholeTx) -> bytes:
    """Return a transaction's hash in the tree. Raises InconsistentChainError where its id is not its own."""
    try:
        raw = bytes.fromhex(tx.raw_data_hex)
        signatures = [encode({_SIGNATURE: bytes.fromhex(one)}) for one in tx.signature]
    except ValueError as error:
        raise InconsistentChainError(f"transaction {tx.id[:80]} came with bytes that are none") from error
    if hashlib.sha256(raw).hexdigest() != tx.id:
        raise InconsistentChainError(f"transaction {tx.id[:80]} came with bytes of another")
    results = [_field(encode({_CONTRACT_RESULT: _RESULTS.get(one.get("contractRet", ""), 0)})) for one in tx.ret]
    whole = encode({_RAW: raw}) + b"".join(signatures) + b"".join(results)
    if len(whole) == PAIR_BYTES:
        raise InconsistentChainError(f"transaction {tx.id[:80]} is no longer than two hashes, which stand in its place")
    return hashlib.sha256(whole).digest()


def _field(result: bytes) -> bytes:
    """Return a result as a field, which is written even where nothing stands in it."""
    return encode({_RESULT: result}) or bytes([_RESULT << 3 | 2, 0])


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root of the tree: pairs are hashed together, and one that has no other is passed on as it is."""
    level = list(leaves) or [bytes(32)]
    while len(level) > 1:
        level = [
            hashlib.sha256(b"".join(pair)).digest() if len(pair) > 1 else pair[0]
            for pair in (level[at : at + 2] for at in range(0, len(level), 2))
        ]
    return level[0]
