"""Reads a span of blocks from one endpoint: several requests at once, each block checked before it is used."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cambist.plugin import (
    Block,
    ChainError,
    ChainUnavailableError,
    RateLimitedError,
    ScanResult,
    Span,
    SpanTooWideError,
    Transfer,
    Watch,
)

from .config import ChainSetup
from .decode import check_header, check_links, check_receipts, transfers_of
from .endpoint import Endpoint
from .rpc import gather_all
from .rpc_errors import MethodUnsupportedError, NoAnswerError
from .traces import Movement, internal_transfers, may_move_inside
from .wire import RpcBlock, RpcReceipt


async def read_span(endpoint: Endpoint, setup: ChainSetup, span: Span, watch: Watch) -> ScanResult:
    """Return every block of the span and its watched transfers, all from this endpoint.

    Memory holds ``requests_at_once_max`` batches at a time, whatever the span.
    """
    slots = asyncio.Semaphore(setup.requests_at_once_max)

    async def read(heights: Sequence[int]) -> tuple[list[Block], list[Transfer]]:
        async with slots:
            try:
                return await _read_batch(endpoint, setup, heights, watch)
            except (SpanTooWideError, RateLimitedError, MethodUnsupportedError, NoAnswerError):
                raise
            except ChainError:
                # One bad answer among hundreds, or a block replaced between two of them, must not cost the span.
                return await _read_batch(endpoint, setup, heights, watch)

    size = setup.batch_calls_max
    starts = range(span.first, span.last + 1, size)
    try:
        batches = await gather_all(*(read(range(start, min(start + size, span.last + 1))) for start in starts))
    except SpanTooWideError as error:
        if span.length > 1:
            raise
        # There is nothing narrower to ask this endpoint for, so it is no use here.
        raise ChainUnavailableError(str(error)) from error
    blocks = [block for batch, _ in batches for block in batch]
    check_links(blocks)
    return ScanResult(blocks=blocks, transfers=[transfer for _, batch in batches for transfer in batch])


async def _read_batch(
    endpoint: Endpoint, setup: ChainSetup, heights: Sequence[int], watch: Watch
) -> tuple[list[Block], list[Transfer]]:
    blocks, by_height = await gather_all(endpoint.blocks(heights), endpoint.receipts(heights))
    found: list[Block] = []
    transfers: list[Transfer] = []
    for position, (height, block) in enumerate(zip(heights, blocks, strict=True)):
        found.append(check_header(block, height))
        if by_height is None:
            receipts = await endpoint.receipts_of([tx.hash for tx in block.transactions])
        else:
            receipts = by_height[position]
        if setup.bor_receipts:
            receipts = await endpoint.completed(block, receipts)
        check_receipts(block, receipts)
        internal = internal_transfers(block, receipts, await _movements(endpoint, block, receipts), watch)
        transfers += transfers_of(block, receipts, setup.contracts, watch, internal)
    return found, transfers


async def _movements(
    endpoint: Endpoint, block: RpcBlock, receipts: Sequence[RpcReceipt]
) -> Sequence[Sequence[Movement]]:
    """Return what moved inside each transaction; nothing where no code ran or the node offers no traces."""
    nothing: Sequence[Sequence[Movement]] = [()] * len(receipts)
    if endpoint.tracing == "none" or not may_move_inside(receipts):
        return nothing
    movements = await endpoint.movements(block)
    return nothing if movements is None else movements
