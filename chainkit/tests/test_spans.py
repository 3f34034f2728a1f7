"""Spans in batches: all of them, in order, linked, and with one bad answer forgiven."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

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
from cambist_chainkit.answers import NoAnswerError
from cambist_chainkit.spans import read_in_batches

from .scripted import block


class Reader:
    """Reads batches, of which some fail so many times."""

    def __init__(self, errors: Sequence[ChainError] = ()) -> None:
        """Fail with each of these once, at the batch from 11 on."""
        self.errors = list(errors)
        self.read: list[tuple[int, int]] = []
        self.at_once = 0
        self.at_once_max = 0

    async def __call__(self, heights: Sequence[int]) -> tuple[list[Block], list[Transfer]]:
        """Return the blocks of these heights."""
        self.at_once += 1
        self.at_once_max = max(self.at_once_max, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        self.read.append((heights[0], heights[-1]))
        if heights[0] == 11 and self.errors:
            raise self.errors.pop(0)
        return [block(height) for height in heights], []


async def scanned(reader: Reader, first: int = 1, last: int = 33) -> ScanResult:
    return await read_in_batches(Span(first=first, last=last), reader, batch_blocks_max=10, batches_at_once_max=2)


async def test_every_block_of_the_span_comes_once_and_in_order() -> None:
    """Two batches at a time, the last one shorter."""
    reader = Reader()
    assert [one.height for one in (await scanned(reader)).blocks] == list(range(1, 34))
    assert sorted(reader.read) == [(1, 10), (11, 20), (21, 30), (31, 33)]
    assert reader.at_once_max == 2


async def test_a_bad_answer_is_forgiven_once() -> None:
    """One among hundreds must not cost the span; two are no accident."""
    assert len((await scanned(Reader([InconsistentChainError("short")]))).blocks) == 33
    with pytest.raises(InconsistentChainError, match="again"):
        await scanned(Reader([InconsistentChainError("short"), InconsistentChainError("again")]))


@pytest.mark.parametrize(
    "error", [RateLimitedError("slow down"), NoAnswerError("silent"), SpanTooWideError("too wide")]
)
async def test_what_asking_again_does_not_help_against_is_not_asked_again(error: ChainError) -> None:
    """It would only make things worse."""
    reader = Reader([error])
    with pytest.raises(type(error)):
        await scanned(reader)
    assert reader.read.count((11, 20)) == 1


async def test_a_single_block_that_is_too_much_is_an_outage() -> None:
    """There is nothing narrower to ask this endpoint for."""
    with pytest.raises(ChainUnavailableError, match="too wide"):
        await scanned(Reader([SpanTooWideError("too wide")]), 11, 11)


async def test_blocks_that_do_not_stand_on_each_other_are_not_used() -> None:
    """The chain changed between two batches."""

    async def read(heights: Sequence[int]) -> tuple[list[Block], list[Transfer]]:
        return [block(height, "a" if height < 21 else "b") for height in heights], []

    with pytest.raises(InconsistentChainError, match="block 21 does not stand on the block 20"):
        await read_in_batches(Span(first=1, last=30), read, batch_blocks_max=10, batches_at_once_max=2)
