"""Balances, transactions' states, and what a reorg does to all of it."""

from __future__ import annotations

from cambist.plugin import Token
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness

from .helpers import a_token, block_at, head_of, needs, scan, some, transfers_above


class StateConformance(Conformance):
    async def test_a_balance_is_what_came_in(self, harness: ChainHarness) -> None:
        """For each token apart, and zero for an address that nobody paid."""
        recipient, stranger = harness.fresh_address(), harness.fresh_address()
        for factor, token in enumerate(harness.chain.info.tokens, start=1):
            await harness.transfer(token, recipient, factor * some(harness))
        await harness.mine()
        for factor, token in enumerate(harness.chain.info.tokens, start=1):
            assert await harness.chain.balance(recipient, token) == factor * some(harness)
            assert await harness.chain.balance(stranger, token) == 0

    async def test_a_past_balance_is_what_it_was(self, harness: ChainHarness) -> None:
        """At the height before the transfer, at its own, and at the next."""
        needs(harness, "past_balances")
        for token in harness.chain.info.tokens[:2]:
            recipient = harness.fresh_address()
            await harness.mine()
            before = await head_of(harness)
            await harness.transfer(token, recipient, some(harness))
            await harness.mine(2)
            balances = [await harness.chain.balance(recipient, token, before.height + n) for n in (0, 1, 2)]
            assert balances == [0, some(harness), some(harness)]

    async def test_an_unheard_of_transaction_is_unknown(self, harness: ChainHarness) -> None:
        """Which is no error, and says nothing of a block."""
        tx_id = await harness.transfer(harness.chain.info.native, harness.fresh_address(), some(harness))
        await harness.mine()
        status = await harness.chain.transaction(tx_id[:-1] + ("0" if tx_id[-1] != "0" else "1"))
        assert (status.state, status.block, status.fee) == ("unknown", None, None)

    async def test_a_waiting_transaction_is_pending(self, harness: ChainHarness) -> None:
        """Until it is mined."""
        needs(harness, "pending")
        tx_id = await harness.transfer(harness.chain.info.native, harness.fresh_address(), some(harness))
        status = await harness.chain.transaction(tx_id)
        assert (status.state, status.block) == ("pending", None)

    async def test_a_mined_transaction_names_its_block(self, harness: ChainHarness) -> None:
        """Its header, and the fee where the chain tells it."""
        before = await head_of(harness)
        tx_id = await harness.transfer(harness.chain.info.native, harness.fresh_address(), some(harness))
        await harness.mine(2)
        status = await harness.chain.transaction(tx_id)
        assert status.state == "succeeded"
        assert status.block == await block_at(harness, before.height + 1)
        assert status.fee is None or status.fee >= 0

    async def test_a_reorg_is_seen_in_the_hashes(self, harness: ChainHarness) -> None:
        """Above the fork every hash is another, below it none, and the new blocks are linked."""
        needs(harness, "reorgs")
        await harness.mine(4)
        head = await head_of(harness)
        old = [await block_at(harness, head.height - back) for back in (3, 2, 1, 0)]
        await harness.reorg(2)
        new = [await block_at(harness, block.height) for block in old]
        assert new[:2] == old[:2]
        assert {block.hash for block in new[2:]}.isdisjoint(block.hash for block in old)
        assert [new[2].parent_hash, new[3].parent_hash] == [new[1].hash, new[2].hash]
        assert (await head_of(harness)).hash not in {block.hash for block in old}

    async def test_a_reorg_takes_transfers_away(self, harness: ChainHarness) -> None:
        """Out of scans, balances and states; what stood below the fork stays."""
        needs(harness, "reorgs")
        for token in harness.chain.info.tokens[:2]:
            recipient, before = harness.fresh_address(), await head_of(harness)
            kept = await harness.transfer(token, recipient, some(harness))
            await harness.mine()
            lost = await harness.transfer(token, recipient, some(harness) + 1)
            await harness.mine()
            assert len(await transfers_above(harness, before.height, recipient)) == 2
            await harness.reorg(1)
            assert [found.tx_id for found in await transfers_above(harness, before.height, recipient)] == [kept]
            assert await harness.chain.balance(recipient, token) == some(harness)
            assert (await harness.chain.transaction(lost)).state in ("unknown", "pending")
            assert (await harness.chain.transaction(kept)).state == "succeeded"

    async def test_a_transfer_that_is_mined_again_keeps_its_identity(self, harness: ChainHarness) -> None:
        """The same transaction and position in another block, of the native coin."""
        needs(harness, "remines")
        await _mined_again(harness, harness.chain.info.native)

    async def test_a_token_transfer_that_is_mined_again_keeps_its_identity(self, harness: ChainHarness) -> None:
        """Although other transfers now stand before it in the block."""
        needs(harness, "remines")
        await _mined_again(harness, a_token(harness))

    async def test_several_transfers_that_are_mined_again_keep_their_identities(self, harness: ChainHarness) -> None:
        """Each of them, in the same order."""
        needs(harness, "remines")
        needs(harness, "several_per_tx")
        token, first, second = a_token(harness), harness.fresh_address(), harness.fresh_address()
        before = await head_of(harness)
        tx_id = await harness.transfer_many(
            token, [(first, some(harness)), (second, some(harness)), (first, some(harness))]
        )
        await harness.mine(2)
        old = await transfers_above(harness, before.height, first, second)
        await harness.remine(2, tx_id)
        new = await transfers_above(harness, before.height, first, second)
        assert [(found.tx_id, found.position, found.recipient, found.amount) for found in new] == [
            (found.tx_id, found.position, found.recipient, found.amount) for found in old
        ]
        assert {found.block_hash for found in new}.isdisjoint(found.block_hash for found in old)


async def _mined_again(harness: ChainHarness, token: Token) -> None:
    recipient, before = harness.fresh_address(), await head_of(harness)
    tx_id = await harness.transfer(token, recipient, some(harness))
    await harness.mine(2)
    old = (await transfers_above(harness, before.height, recipient))[0]
    await harness.remine(2, tx_id)
    found = await transfers_above(harness, before.height, recipient)
    assert [(new.tx_id, new.position, new.amount) for new in found] == [(tx_id, old.position, some(harness))]
    new = found[0]
    assert new.block_hash != old.block_hash
    assert new.block_hash == (await block_at(harness, new.height)).hash
    assert (await scan(harness, new.height, new.height, recipient)).transfers[0] == new
    assert await harness.chain.balance(recipient, token) == some(harness)
    status = await harness.chain.transaction(tx_id)
    assert (status.state, status.block and status.block.hash) == ("succeeded", new.block_hash)
