"""How it is read what moved inside a block's transactions: all at once, and one by one where that is too long to read.

A call's input costs who makes it next to nothing, and is written down with every call. So anybody can make the trace
of a block longer than it can be read, and must not be able to stop the chain. Only the transaction whose own trace is
too long is passed by: what moved inside it shows up as a balance that nothing explains.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import structlog
from msgspec import Raw
from msgspec.structs import replace

from cambist.plugin import ChainError, ChainUnavailableError, InconsistentChainError, SpanTooWideError
from cambist_chainkit.answers import NestedTooDeeplyError, NoAnswerError, TooLongError, UnsupportedError
from cambist_chainkit.record import MISSING_AGAIN_MAX

from .decode import is_synthetic
from .endpoint import Endpoint
from .quantities import block_number
from .traces import Movement, from_call_frames, from_flat_traces
from .wire import CallFrame, FlatAction, FlatTrace, RpcBlock, RpcTransaction, TracedTransaction

T = TypeVar("T")

log = structlog.get_logger(__name__)

_CALL_TRACER: Final = {"tracer": "callTracer"}
_NO_BLOCK: Final = "0x" + "0" * 64
_NO_HEIGHT: Final = hex(2**48)
_GIVEN_UP: Final = TracedTransaction(error="not told with its block")


async def movements(endpoint: Endpoint, block: RpcBlock) -> list[list[Movement]] | None:
    """Return what moved inside each transaction of the block, or None where the node offers no traces.

    Once a node traced, refusing to is an outage: blocks with and without internal transfers must not alternate.
    """
    if endpoint.tracing == "debug":
        return await _debug(endpoint, block)
    if endpoint.tracing == "trace":
        return await _flat(endpoint, block)
    for tracing, ask in (("debug", _debug), ("trace", _flat)):
        try:
            moved = await ask(endpoint, block)
        except UnsupportedError:
            continue
        endpoint.tracing = "debug" if tracing == "debug" else "trace"
        return moved
    endpoint.note_untraced()
    return None


async def offers_traces(endpoint: Endpoint) -> bool:
    """Return whether the endpoint seems to offer traces, asked for those of a block that is nowhere: they cost nothing.

    Whatever else it answers is no refusal of the question.
    """
    if endpoint.tracing is not None:
        return endpoint.tracing != "none"
    for method, params in (("debug_traceBlockByHash", (_NO_BLOCK, _CALL_TRACER)), ("trace_block", (_NO_HEIGHT,))):
        try:
            await endpoint.rpc.call(method, params, Raw)
        except UnsupportedError:
            continue
        except ChainError:
            return True
        return True
    return False


async def _debug(endpoint: Endpoint, block: RpcBlock) -> list[list[Movement]]:
    listed = block.transactions
    try:
        traced = await _told(endpoint, "debug_traceBlockByHash", (block.hash, _CALL_TRACER), list[TracedTransaction])
    except NestedTooDeeplyError:
        try:
            return await _flat(endpoint, block)
        except UnsupportedError:
            traced = [_GIVEN_UP] * len(listed)
    except (SpanTooWideError, NoAnswerError):  # what is too long to read seldom comes in time
        traced = [_GIVEN_UP] * len(listed)
    # A node gives a transaction up that takes it some seconds. Asked for alone, it has these seconds for itself.
    given_up = [position for position, one in enumerate(traced[: len(listed)]) if one.result is None and one.error]
    if given_up:
        frames = await _one_by_one(endpoint, block, [listed[position] for position in given_up], _debug_alone)
        for position, frame in zip(given_up, frames, strict=True):
            traced[position] = replace(traced[position], result=frame)
    return from_call_frames(block, traced)


async def _flat(endpoint: Endpoint, block: RpcBlock) -> list[list[Movement]]:
    try:
        traces = await _told(endpoint, "trace_block", (block.number,), list[FlatTrace])
    except (SpanTooWideError, NoAnswerError):
        alone = await _one_by_one(endpoint, block, block.transactions, _flat_alone)
        traces = [trace for own in alone for trace in own]
    return from_flat_traces(block, traces)


async def _one_by_one(
    endpoint: Endpoint,
    block: RpcBlock,
    txs: Sequence[RpcTransaction],
    ask: Callable[[Endpoint, RpcTransaction], Awaitable[T]],
) -> list[T]:
    told = [await ask(endpoint, tx) for tx in txs]
    # They were asked for by their own ids, so that another block may hold them by now.
    if (await endpoint.block(block_number(block.number))).hash != block.hash.lower():
        raise InconsistentChainError(f"block {block.number} was replaced while it was traced")
    return told


async def _debug_alone(endpoint: Endpoint, tx: RpcTransaction) -> CallFrame:
    untold = CallFrame(type="CALL")
    return await _alone(endpoint, tx, "debug_traceTransaction", (tx.hash, _CALL_TRACER), CallFrame, untold)


async def _flat_alone(endpoint: Endpoint, tx: RpcTransaction) -> list[FlatTrace]:
    untold = [FlatTrace(type="call", action=FlatAction(), transaction_hash=tx.hash)]
    return await _alone(endpoint, tx, "trace_transaction", (tx.hash,), list[FlatTrace], untold)


async def _alone(  # noqa: PLR0913, PLR0917 - a question, and what stands in its answer's place
    endpoint: Endpoint, tx: RpcTransaction, method: str, params: Sequence[Any], kind: type[T], untold: T
) -> T:
    """Return one transaction's trace, ``untold`` where that is too long to read.

    One that takes the node too long is an error, as any other failure is: the next endpoint may be quicker, or this one
    later, and to pass it by would lose what was paid.
    """
    try:
        return await _told(endpoint, method, params, kind)
    except (TooLongError, NestedTooDeeplyError) as error:
        log.warning("trace_passed_by", chain=endpoint.chain, endpoint=endpoint.name, tx_id=tx.hash, error=str(error))
        return untold
    except UnsupportedError as error:
        # Not to be taken for a node without traces: it told of blocks, or would have.
        raise ChainUnavailableError(str(error)) from error
    except ChainError as error:
        if is_synthetic(tx) and (isinstance(error, InconsistentChainError) or "not found" in str(error)):
            return untold  # not all nodes trace what nobody sent
        raise


async def _told(endpoint: Endpoint, method: str, params: Sequence[Any], kind: type[T]) -> T:
    """Return what a node tells, asking again where one of several behind the address does not offer or know it."""
    refused: ChainError = InconsistentChainError(f"{endpoint.name} answered {method} with null")
    for _ in range(1 + MISSING_AGAIN_MAX):
        try:
            answer = await endpoint.rpc.call(method, params, kind)
        except UnsupportedError as error:
            if endpoint.tracing in {None, "none"}:
                raise
            refused = error
        else:
            if answer is not None:
                return answer
    raise refused
