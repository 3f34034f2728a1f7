"""Finality: what the chain calls final rises with its head, and is never taken back."""

from __future__ import annotations

from cambist.plugin import StateUnavailableError
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness

from .helpers import block_at, finalized, head_of, needs, some


class FinalityConformance(Conformance):
    async def test_the_finalized_height_is_not_above_the_head(self, harness: ChainHarness) -> None:
        """And it never goes back."""
        needs(harness, "finality")
        before = -1
        for _ in range(4):
            await harness.mine(2)
            head = await head_of(harness)
            assert head.finalized_height is not None
            assert before <= head.finalized_height <= head.height
            before = head.finalized_height

    async def test_what_is_mined_becomes_final(self, harness: ChainHarness) -> None:
        """Sooner or later, and then it is still the same block."""
        needs(harness, "finality")
        await harness.mine()
        head = await head_of(harness)
        await finalized(harness, head.height)
        assert (await block_at(harness, head.height)).hash == head.hash

    async def test_a_reorg_leaves_what_is_final(self, harness: ChainHarness) -> None:
        """However much of the rest it replaces, and whatever the new branch's height."""
        needs(harness, "finality")
        needs(harness, "reorgs")
        await harness.mine(2)
        head = await finalized(harness, (await head_of(harness)).height)
        assert head.finalized_height is not None
        final = await block_at(harness, head.finalized_height)
        await harness.reorg(head.height - final.height)
        assert await block_at(harness, final.height) == final
        for _ in range(2):
            assert ((await head_of(harness)).finalized_height or 0) >= final.height
            await harness.mine()

    async def test_a_balance_at_the_finalized_height_is_told(self, harness: ChainHarness) -> None:
        """By every node, also by one that keeps no other state than the newest: books are compared there."""
        needs(harness, "finality")
        recipient, later = harness.fresh_address(), harness.fresh_address()
        tokens = harness.chain.info.tokens
        for token in tokens:
            await harness.transfer(token, recipient, some(harness))
        await harness.mine()
        final = (await finalized(harness, (await head_of(harness)).height)).finalized_height
        head = await head_of(harness)
        if head.finalized_height != head.height:
            for token in tokens:
                await harness.transfer(token, later, some(harness))
        wanted = [(address, token) for token in tokens for address in (recipient, later)]
        assert list(await harness.chain.balances(wanted, final)) == [some(harness), 0] * len(tokens)

    async def test_a_past_balance_is_exact_or_refused(self, harness: ChainHarness) -> None:
        """A node that keeps no old states says so, and never tells a newer balance for an older one."""
        recipient, before = harness.fresh_address(), await head_of(harness)
        token = harness.chain.info.tokens[-1]
        for _ in range(3):
            await harness.transfer(token, recipient, some(harness))
            await harness.mine()
        for count in range(4):
            try:
                told = await harness.chain.balance(recipient, token, before.height + count)
            except StateUnavailableError:
                assert not harness.abilities.past_balances
            else:
                assert told == count * some(harness)
        assert await harness.chain.balance(recipient, token) == 3 * some(harness)
