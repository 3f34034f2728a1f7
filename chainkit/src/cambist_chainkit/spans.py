"""Reads a span of blocks from one endpoint in batches, several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Final

from cambist.plugin import (
    Block,
    ChainError,
    ChainUnavailableError,
    InconsistentChainError,
    RateLimitedError,
    ScanResult,
    Span,
    SpanTooWideError,
    Transfer,
)

from .answers import NoAnswerError, UnsupportedError
from .gathering import gather_all

TIME_MAX: Final = 253_402_300_799
"""The end of the year 9999: the last second that a date can hold, so no block is from later."""

Batch = tuple[Sequence[Block], Sequence[Transfer]]


async def read_in_batches(
    span: Span,
    read: Callable[[Sequence[int]], Awaitable[Batch]],
    *,
    batch_blocks_max: int,
    batches_at_once_max: int,
) -> ScanResult:
    """Return every block of the span and its transfers; ``read`` gets the heights of one batch.

    Memory holds ``batches_at_once_max`` batches at a time, whatever the span. A batch that failed is read once more,
    unless by an error that asking again does not help against.
    """
    permits = asyncio.Semaphore(batches_at_once_max)

    async def patiently(heights: Sequence[int]) -> Batch:
        async with permits:
            try:
                return await read(heights)
            except (SpanTooWideError, RateLimitedError, NoAnswerError, UnsupportedError):
                raise
            except ChainError:
                # One bad answer among hundreds, or a block replaced between two of them, must not cost the span.
                return await read(heights)

    starts = range(span.first, span.last + 1, batch_blocks_max)
    batches: list[Batch]
    try:
        batches = await gather_all(
            *(patiently(range(start, min(start + batch_blocks_max, span.last + 1))) for start in starts)
        )
    except SpanTooWideError as error:
        if span.length > 1:
            raise
        # There is nothing narrower to ask this endpoint for, so it is no use here.
        raise ChainUnavailableError(str(error)) from error
    blocks = [block for batch, _ in batches for block in batch]
    check_links(blocks)
    return ScanResult(blocks=blocks, transfers=[transfer for _, batch in batches for transfer in batch])


def check_links(blocks: Sequence[Block]) -> None:
    """Raise InconsistentChainError unless each block's parent is the one before it."""
    for before, block in pairwise(blocks):
        if block.parent_hash != before.hash:
            message = f"block {block.height} does not stand on the block {before.height} that came with it"
            raise InconsistentChainError(message)
