"""Transfers: what is found, what is not taken, and what identifies it."""

from __future__ import annotations

from cambist.plugin import Token, Transfer
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness

from .helpers import a_token, block_at, head_of, needs, scan, some, transfers_above
from .sends import funded, mined, planned, signed


class TransferConformance(Conformance):
    async def test_a_native_transfer_is_found(self, harness: ChainHarness) -> None:
        """Every field of it is right."""
        await _send_and_check(harness, harness.chain.info.native)

    async def test_a_token_transfer_is_found(self, harness: ChainHarness) -> None:
        """Every field of it is right, for each registered token."""
        a_token(harness)
        for token in harness.chain.info.tokens[1:]:
            await _send_and_check(harness, token)

    async def test_the_smallest_amount_is_exact(self, harness: ChainHarness) -> None:
        """One unit, and amounts that no float could hold apart."""
        token = a_token(harness)
        recipient, amounts = harness.fresh_address(), [1, 10**9 + 1, 2**53 + 1]
        before = await head_of(harness)
        for amount in amounts:
            await harness.transfer(token, recipient, amount)
        await harness.mine()
        assert [found.amount for found in await transfers_above(harness, before.height, recipient)] == amounts

    async def test_two_transfers_to_one_recipient_in_one_transaction_are_both_found(
        self, harness: ChainHarness
    ) -> None:
        """Even when they are equal: their positions tell them apart."""
        needs(harness, "several_per_tx")
        await _several(harness, a_token(harness), same_recipient=True)

    async def test_transfers_to_two_recipients_in_one_transaction_are_both_found(self, harness: ChainHarness) -> None:
        """Each with its own recipient and amount, in chain order."""
        needs(harness, "several_per_tx")
        await _several(harness, a_token(harness), same_recipient=False)

    async def test_several_native_transfers_in_one_transaction_are_all_found(self, harness: ChainHarness) -> None:
        """As exchanges and contract wallets send them."""
        needs(harness, "several_native_per_tx")
        await _several(harness, harness.chain.info.native, same_recipient=True)

    async def test_a_position_does_not_depend_on_the_neighbours(self, harness: ChainHarness) -> None:
        """Equal transactions in one block have equal positions, so a position survives another order."""
        token, recipient = a_token(harness), harness.fresh_address()
        before = await head_of(harness)
        tx_ids = [await harness.transfer(token, recipient, some(harness)) for _ in range(3)]
        await harness.mine()
        found = await transfers_above(harness, before.height, recipient)
        assert [transfer.tx_id for transfer in found] == tx_ids
        assert len({transfer.position for transfer in found}) == 1

    async def test_scanning_again_gives_the_same_transfers(self, harness: ChainHarness) -> None:
        """Identity does not change from look to look."""
        before, recipient = await _one_in_each_of_three_blocks(harness)
        first = await scan(harness, before + 1, before + 3, recipient)
        again = await scan(harness, before + 1, before + 3, recipient)
        assert len(first.transfers) == 3
        assert list(first.transfers) == list(again.transfers)

    async def test_a_span_in_parts_gives_the_same_as_the_whole(self, harness: ChainHarness) -> None:
        """Nothing is lost or doubled at the edges, and nothing of the neighbouring blocks gets in."""
        before, recipient = await _one_in_each_of_three_blocks(harness)
        whole = await scan(harness, before + 1, before + 3, recipient)
        parts = [await scan(harness, height, height, recipient) for height in range(before + 1, before + 4)]
        assert [len(part.transfers) for part in parts] == [1, 1, 1]
        assert list(whole.transfers) == [transfer for part in parts for transfer in part.transfers]
        assert [transfer.height for transfer in whole.transfers] == [before + 1, before + 2, before + 3]

    async def test_nobody_watched_gives_nothing(self, harness: ChainHarness) -> None:
        """Blocks are still listed."""
        before, _ = await _one_in_each_of_three_blocks(harness)
        result = await scan(harness, before + 1, before + 3)
        assert list(result.transfers) == []
        assert len(result.blocks) == 3

    async def test_what_nobody_watches_is_left_out(self, harness: ChainHarness) -> None:
        """Of two recipients only the watched one appears, whoever else is paid in the same block."""
        watched, other = harness.fresh_address(), harness.fresh_address()
        before = await head_of(harness)
        for token in harness.chain.info.tokens:
            await harness.transfer(token, other, some(harness))
            await harness.transfer(token, watched, some(harness))
        await harness.mine()
        found = await transfers_above(harness, before.height, watched)
        assert [transfer.recipient for transfer in found] == [watched] * len(harness.chain.info.tokens)

    async def test_what_a_watched_address_sends_is_told(self, harness: ChainHarness) -> None:
        """Once, whoever gets it, also where both ends are watched."""
        for token in harness.chain.info.tokens:
            sender = await funded(harness, *([] if token.is_native else [(token, some(harness))]))
            before = await head_of(harness)
            step = await planned(harness, sender, token, some(harness))
            tx = await signed(harness, sender, step)
            assert (await mined(harness, tx)).state == "succeeded"
            for watched in ([sender.address], [sender.address, step.to_address]):
                found = await transfers_above(harness, before.height, *watched)
                told = [(one.tx_id, one.sender, one.recipient, one.contract, one.amount) for one in found]
                assert told == [(tx.tx_id, sender.address, step.to_address, token.contract, some(harness))]

    async def test_a_failed_transfer_is_not_taken(self, harness: ChainHarness) -> None:
        """Neither of the native coin nor of a token; the status says reverted."""
        needs(harness, "reverts")
        recipient, before = harness.fresh_address(), await head_of(harness)
        tx_ids = [
            await harness.transfer_reverted(token, recipient, some(harness)) for token in harness.chain.info.tokens
        ]
        await harness.mine()
        assert await transfers_above(harness, before.height, recipient) == []
        for tx_id in tx_ids:
            assert (await harness.chain.transaction(tx_id)).state == "reverted"

    async def test_an_impostor_is_not_taken(self, harness: ChainHarness) -> None:
        """A contract that only shares the symbol is worth nothing; the real token beside it is found."""
        needs(harness, "impostors")
        token, recipient, before = a_token(harness), harness.fresh_address(), await head_of(harness)
        await harness.transfer_impostor(token, recipient, some(harness))
        real = await harness.transfer(token, recipient, some(harness))
        await harness.mine()
        assert [found.tx_id for found in await transfers_above(harness, before.height, recipient)] == [real]

    async def test_a_transfer_of_zero_is_not_taken(self, harness: ChainHarness) -> None:
        """Anybody can make one in anybody's name."""
        needs(harness, "zero_transfers")
        recipient, before = harness.fresh_address(), await head_of(harness)
        for token in harness.chain.info.tokens:
            await harness.transfer(token, recipient, 0)
        await harness.mine()
        assert await transfers_above(harness, before.height, recipient) == []


async def _send_and_check(harness: ChainHarness, token: Token) -> None:
    recipient, before = harness.fresh_address(), await head_of(harness)
    tx_id = await harness.transfer(token, recipient, some(harness))
    await harness.mine(2)
    found = await transfers_above(harness, before.height, recipient)
    assert len(found) == 1
    transfer = found[0]
    assert transfer == Transfer(
        tx_id=tx_id,
        position=transfer.position,
        height=before.height + 1,
        block_hash=(await block_at(harness, before.height + 1)).hash,
        sender=transfer.sender,
        recipient=recipient,
        contract=token.contract,
        amount=transfer.amount,
    )
    assert transfer.amount == some(harness)
    assert transfer.position
    assert transfer.sender is None or harness.family.normalize_address(transfer.sender) == transfer.sender


async def _several(harness: ChainHarness, token: Token, *, same_recipient: bool) -> None:
    first, second = harness.fresh_address(), harness.fresh_address()
    payments = [
        (first, some(harness)),
        (first if same_recipient else second, some(harness)),
        (first, some(harness) + 1),
    ]
    before = await head_of(harness)
    tx_id = await harness.transfer_many(token, payments)
    await harness.mine()
    found = await transfers_above(harness, before.height, first, second)
    assert [(transfer.recipient, transfer.amount) for transfer in found] == payments
    assert {transfer.tx_id for transfer in found} == {tx_id}
    assert len({transfer.position for transfer in found}) == len(payments)
    assert {transfer.contract for transfer in found} == {token.contract}


async def _one_in_each_of_three_blocks(harness: ChainHarness) -> tuple[int, str]:
    recipient, before = harness.fresh_address(), await head_of(harness)
    for _ in range(3):
        await harness.transfer(harness.chain.info.native, recipient, some(harness))
        await harness.mine()
    await harness.mine()
    return before.height, recipient
