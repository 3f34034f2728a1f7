"""How the kit's tests look at a chain, and what they need of the harness."""

from __future__ import annotations

import asyncio

import pytest

from cambist.plugin import Block, ChainUnavailableError, Head, ScanResult, Span, Token, Transfer
from cambist.testing.harness import ChainHarness
from cambist.testing.watch import watching

FINALITY_BLOCKS_MAX = 256

SOME_UNITS = 9_876_543
"""What the kit's tests transfer, where nothing depends on how much, and one unit arrives."""


def needs(harness: ChainHarness, ability: str) -> None:
    """Skip the test where the harness cannot do this."""
    if not getattr(harness.abilities, ability):
        pytest.skip(f"the harness has no ability {ability!r}")


def a_token(harness: ChainHarness) -> Token:
    """Return a registered token that is not the native coin, or skip the test."""
    for token in harness.chain.info.tokens:
        if not token.is_native:
            return token
    pytest.skip("the chain has no token but its native coin")


def some(harness: ChainHarness) -> int:
    """Return how much of any token a test transfers: so much arrives wherever it goes."""
    return SOME_UNITS + max(token.least_units for token in harness.chain.info.tokens) - 1


async def head_of(harness: ChainHarness) -> Head:
    """Return the newest block."""
    async with harness.chain.view() as view:
        return await view.head()


async def block_at(harness: ChainHarness, height: int) -> Block:
    """Return the block at a height."""
    async with harness.chain.view() as view:
        return await view.block(height)


async def scan(harness: ChainHarness, first: int, last: int, *watched: str) -> ScanResult:
    """Scan a span for these addresses."""
    async with harness.chain.view() as view:
        return await view.scan(Span(first=first, last=last), watching(harness.family, *watched))


async def transfers_above(harness: ChainHarness, height: int, *watched: str) -> list[Transfer]:
    """Return the transfers to these addresses in every block above the height."""
    head = await head_of(harness)
    found: list[Transfer] = []
    while height < head.height:
        last = min(head.height, height + harness.chain.info.span_max)
        found += (await scan(harness, height + 1, last, *watched)).transfers
        height = last
    return found


async def finalized(harness: ChainHarness, height: int) -> Head:
    """Mine until this height is final, and return the head of then."""
    for _ in range(FINALITY_BLOCKS_MAX):
        head = await head_of(harness)
        assert head.finalized_height is not None
        if head.finalized_height >= height:
            return head
        await harness.mine()
    pytest.fail(f"{height} is not final {FINALITY_BLOCKS_MAX} blocks later")


async def answers_again(harness: ChainHarness) -> None:
    """Wait until the chain is asked again after an outage."""
    # A chain may leave an endpoint alone for a moment after it failed, but not for long.
    for _ in range(100):
        try:
            await head_of(harness)
        except ChainUnavailableError:
            await asyncio.sleep(0.1)
        else:
            return
