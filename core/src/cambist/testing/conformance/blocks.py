"""Blocks: heads, headers, spans, and what happens at their edges."""

from __future__ import annotations

import asyncio

import pytest

from cambist.plugin import ChainError, ChainUnavailableError
from cambist.testing.blocking import blocking_noticed
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness

from .helpers import answers_again, block_at, head_of, needs, scan, some


class BlockConformance(Conformance):
    async def test_the_head_is_the_newest_block(self, harness: ChainHarness) -> None:
        """Its height grows by what is mined, and its hash is the block's."""
        before = await head_of(harness)
        await harness.mine(3)
        head = await head_of(harness)
        assert head.height == before.height + 3
        assert head.hash == (await block_at(harness, head.height)).hash

    async def test_a_block_knows_its_height_and_parent(self, harness: ChainHarness) -> None:
        """Each block's parent hash is the hash of the block below."""
        await harness.mine(4)
        head = await head_of(harness)
        blocks = [await block_at(harness, height) for height in range(head.height - 3, head.height + 1)]
        assert [block.height for block in blocks] == list(range(head.height - 3, head.height + 1))
        assert [block.parent_hash for block in blocks[1:]] == [block.hash for block in blocks[:-1]]
        assert len({block.hash for block in blocks}) == len(blocks)

    async def test_time_does_not_run_backwards(self, harness: ChainHarness) -> None:
        """Block times are whole seconds since 1970, not milliseconds."""
        await harness.mine(3)
        head = await head_of(harness)
        times = [(await block_at(harness, height)).time for height in range(head.height - 2, head.height + 1)]
        assert times == sorted(times)
        assert all(1_230_000_000 < time < 20_000_000_000 for time in times)

    async def test_a_block_above_the_head_is_an_error(self, harness: ChainHarness) -> None:
        """Not an invented block, and no other exception than a ChainError."""
        await harness.mine()
        head = await head_of(harness)
        with pytest.raises(ChainError):
            await block_at(harness, head.height + 1)

    async def test_a_scan_above_the_head_is_an_error(self, harness: ChainHarness) -> None:
        """An empty answer would let the gateway's cursor run past blocks that are still to come."""
        await harness.mine()
        head = await head_of(harness)
        with pytest.raises(ChainError):
            await scan(harness, head.height + 1, head.height + 1)

    async def test_a_scan_partly_above_the_head_is_an_error(self, harness: ChainHarness) -> None:
        """A span is answered whole or not at all."""
        await harness.mine()
        head = await head_of(harness)
        with pytest.raises(ChainError):
            await scan(harness, head.height, head.height + 1)

    async def test_a_scan_lists_every_block(self, harness: ChainHarness) -> None:
        """Ascending, without gaps, the first and the last included, empty blocks too, linked by their hashes."""
        before = await head_of(harness)
        await harness.mine(5)
        result = await scan(harness, before.height + 1, before.height + 5, harness.fresh_address())
        assert [block.height for block in result.blocks] == [before.height + n for n in range(1, 6)]
        assert result.blocks[0].parent_hash == before.hash
        assert all(
            block.parent_hash == parent.hash for parent, block in zip(result.blocks, result.blocks[1:], strict=False)
        )

    async def test_a_scan_and_a_look_at_a_block_agree(self, harness: ChainHarness) -> None:
        """Both give the same header."""
        await harness.mine(3)
        head = await head_of(harness)
        result = await scan(harness, head.height - 2, head.height)
        assert list(result.blocks) == [await block_at(harness, block.height) for block in result.blocks]

    async def test_a_span_of_one_block_holds_one(self, harness: ChainHarness) -> None:
        """Both ends of a span are included."""
        await harness.mine()
        head = await head_of(harness)
        result = await scan(harness, head.height, head.height)
        assert [block.height for block in result.blocks] == [head.height]

    async def test_the_longest_span_is_answered(self, harness: ChainHarness) -> None:
        """What the chain says it can scan at once, it can."""
        span = harness.chain.info.span_max
        before = await head_of(harness)
        await harness.mine(span)
        result = await scan(harness, before.height + 1, before.height + span)
        assert len(result.blocks) == span

    async def test_several_views_at_once_do_not_disturb_each_other(self, harness: ChainHarness) -> None:
        """Each gets its own answer."""
        await harness.mine(4)
        head = await head_of(harness)
        heights = [head.height - back for back in (0, 1, 2, 3)] * 2
        blocks = await asyncio.gather(*(block_at(harness, height) for height in heights))
        assert [block.height for block in blocks] == heights

    async def test_nobody_else_waits_while_it_is_asked(self, harness: ChainHarness) -> None:
        """Every chain, merchant and webhook of a process shares its event loop: whoever blocks it stops them all."""
        native, recipient, chain = harness.chain.info.native, harness.fresh_address(), harness.chain
        tx_id = await harness.transfer(native, recipient, some(harness))
        await harness.mine()
        with blocking_noticed() as blocking:
            head = await head_of(harness)
            await block_at(harness, head.height)
            await scan(harness, head.height, head.height, recipient)
            await chain.balance(recipient, native)
            await chain.transaction(tx_id)
        assert blocking == []

    async def test_an_outage_says_so_and_passes(self, harness: ChainHarness) -> None:
        """ChainUnavailableError for every question while nobody answers, and answers again afterwards."""
        needs(harness, "outages")
        before = await head_of(harness)
        address = harness.fresh_address()
        async with harness.outage():
            with pytest.raises(ChainUnavailableError):
                await head_of(harness)
            with pytest.raises(ChainUnavailableError):
                await scan(harness, before.height, before.height, address)
            with pytest.raises(ChainUnavailableError):
                await harness.chain.balance(address, harness.chain.info.native)
        await answers_again(harness)
        assert (await head_of(harness)).height >= before.height
