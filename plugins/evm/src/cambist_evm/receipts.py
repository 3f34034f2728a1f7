"""What transactions did and which logs a query finds, as one endpoint tells it, and only where its answers agree.

A log that a query finds is told with its place in its receipt, so the receipt is asked for anyway: what it does not
hold was never written, and what it holds beside was left out of the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cambist.plugin import (
    LOGS_MAX,
    Block,
    FoundLog,
    InconsistentChainError,
    Log,
    LogQuery,
    Receipt,
    SpanTooWideError,
)
from cambist_chainkit.answers import NoAnswerError
from cambist_chainkit.pool import undivided

from .config import ChainSetup
from .decode import took_effect
from .endpoint import Endpoint
from .logs import TOPICS_MAX, log_of, logs_of
from .lookups import block_of, blocks_of
from .quantities import block_number, quantity
from .wire import RpcFoundLog, RpcFullReceipt

_TOPIC_BYTES: Final = 32


class _Mined(Struct, frozen=True, kw_only=True):
    """A receipt that was checked: what it says, and where in the chain it stands."""

    receipt: Receipt
    index: int
    first_log_index: int


async def read_receipt(endpoint: Endpoint, setup: ChainSetup, tx_id: str) -> Receipt | None:
    """Return what a transaction did, None where the endpoint has no block with it. Raises ChainError."""
    found = await endpoint.rpc.call("eth_getTransactionReceipt", (tx_id,), RpcFullReceipt)
    if found is None:
        return None
    blocks = await blocks_of(endpoint, [found.block_hash])
    return _checked(endpoint, setup, tx_id, found, blocks).receipt


async def read_logs(endpoint: Endpoint, setup: ChainSetup, query: LogQuery) -> Sequence[FoundLog]:
    """Return the logs that a checked query finds, in chain order. Raises ChainError."""
    # A node that has not got so far answers with what it has, as if that were all.
    await endpoint.block(query.last)
    asked = {
        "address": query.address,
        "topics": [None if topic is None else f"0x{topic.hex()}" for topic in query.topics],
        "fromBlock": hex(query.first),
        "toBlock": hex(query.last),
    }
    answer = endpoint.rpc.call("eth_getLogs", (asked,), list[RpcFoundLog])
    try:
        told = await (undivided(answer) if query.first == query.last else answer)
    except NoAnswerError as error:
        if query.first == query.last:
            raise
        endpoint.note_failure(error)  # another one may be quicker
        raise SpanTooWideError(str(error)) from error  # it told its last block: of fewer it may tell the logs in time
    if told is None:
        raise InconsistentChainError(f"{endpoint.name} answered eth_getLogs with null")
    if len(told) > LOGS_MAX:
        raise SpanTooWideError(f"{len(told)} logs are more than {LOGS_MAX}")
    mined = await _mined(endpoint, setup, list(dict.fromkeys(log.transaction_hash.lower() for log in told)))
    found = [
        FoundLog(tx_id=tx_id, height=one.receipt.block.height, block_hash=one.receipt.block.hash, log=log)
        for tx_id, one in sorted(mined.items(), key=lambda item: (item[1].receipt.block.height, item[1].index))
        for log in one.receipt.logs
        if _matches(log, query)
    ]
    _check_same(endpoint, query, told, found, mined)
    return found


def checked(query: LogQuery) -> LogQuery:
    """Return the query without topics at its end that may be any: nodes are not agreed on what those ask for.

    Raises ValueError where it is none: no node is to blame for that.
    """
    if not 0 <= query.first <= query.last:
        raise ValueError(f"blocks {query.first} to {query.last} are none")
    named = [number for number, topic in enumerate(query.topics, start=1) if topic is not None]
    if len(query.topics) > TOPICS_MAX or any(
        len(topic or bytes(_TOPIC_BYTES)) != _TOPIC_BYTES for topic in query.topics
    ):
        raise ValueError("a query has at most four topics, of 32 bytes each")
    return replace(query, topics=query.topics[: max(named, default=0)])


def _matches(log: Log, query: LogQuery) -> bool:
    pairs = zip(query.topics, log.topics, strict=False)
    alike = all(wanted in {None, topic} for wanted, topic in pairs)
    return log.address == query.address and len(log.topics) >= len(query.topics) and alike


def _check_same(
    endpoint: Endpoint,
    query: LogQuery,
    told: Sequence[RpcFoundLog],
    found: Sequence[FoundLog],
    mined: Mapping[str, _Mined],
) -> None:
    """Raise InconsistentChainError where the answer holds another log than the receipts, or in another place."""
    seen = {_place(one.tx_id, one.height, one.block_hash, one.log) for one in found}
    said = set(_places(told, mined))
    within = all(query.first <= one.height <= query.last for one in found)
    if not within or said != seen or len(told) != len(found):
        raise InconsistentChainError(f"{endpoint.name} found other logs than the receipts hold")


def _places(told: Sequence[RpcFoundLog], mined: Mapping[str, _Mined]) -> Iterator[object]:
    for log in told:
        tx_id = log.transaction_hash.lower()
        ordinal = quantity(log.log_index) - mined[tx_id].first_log_index
        if log.removed or ordinal < 0:
            raise InconsistentChainError(f"a log of {tx_id} is gone by a reorg, or of another transaction")
        yield _place(tx_id, block_number(log.block_number), log.block_hash.lower(), log_of(log, ordinal))


def _place(tx_id: str, height: int, block_hash: str, log: Log) -> object:
    return tx_id, height, block_hash, log


async def _mined(endpoint: Endpoint, setup: ChainSetup, tx_ids: Sequence[str]) -> Mapping[str, _Mined]:
    """Return the receipts of transactions that are in the chain. Raises InconsistentChainError for a missing one."""
    asked: Sequence[tuple[str, Sequence[Any]]] = [("eth_getTransactionReceipt", (tx_id,)) for tx_id in tx_ids]
    receipts = await endpoint.known(asked, RpcFullReceipt)
    blocks = await _best(endpoint, {block_number(one.block_number) for one in receipts if one is not None})
    mined = {}
    for tx_id, receipt in zip(tx_ids, receipts, strict=True):
        if receipt is None:
            raise InconsistentChainError(f"{endpoint.name} has no receipt of {tx_id}, of which it has a log")
        mined[tx_id] = _checked(endpoint, setup, tx_id, receipt, blocks)
    return mined


async def _best(endpoint: Endpoint, heights: set[int]) -> Mapping[str, Block]:
    """Return the blocks of the endpoint's best chain at these heights, by their hashes."""
    return {block.hash: block for block in await endpoint.headers(sorted(heights))}


def _checked(
    endpoint: Endpoint, setup: ChainSetup, tx_id: str, found: RpcFullReceipt, blocks: Mapping[str, Block]
) -> _Mined:
    block, logs = block_of(endpoint, tx_id, found, blocks), logs_of(found)
    done = took_effect(found, logs_known=setup.network.logs_known)
    return _Mined(
        # Some networks themselves log the fee of what failed, or more.
        receipt=Receipt(tx_id=tx_id.lower(), block=block, succeeded=done, logs=tuple(logs) if done else ()),
        index=quantity(found.transaction_index),
        first_log_index=quantity(found.logs[0].log_index) if found.logs else 0,
    )
