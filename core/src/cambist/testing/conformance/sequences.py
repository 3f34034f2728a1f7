"""Numbered transactions: counted, mined in order, replaced by a higher fee, and never two under one number."""

from __future__ import annotations

from msgspec.structs import replace

from cambist.plugin import Step, Units
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness, Sender

from .helpers import needs, some
from .sends import an_intent, funded, mined, native_of, planned, prepared, sealed, signed, step_of, told

MANY = 16
"""Geth keeps as many of one sender's transactions waiting without question."""


class SequenceConformance(Conformance):
    async def test_a_sequence_counts_what_is_mined(self, harness: ChainHarness) -> None:
        """One by one, wherever the chain begins; what waits does not count."""
        sender, step = await _ready(harness)
        counts = [await harness.chain.next_sequence(sender.address)]
        assert (await told(harness, await signed(harness, sender, step, 0))).state == "accepted"
        counts.append(await harness.chain.next_sequence(sender.address))
        await harness.mine()
        counts.append(await harness.chain.next_sequence(sender.address))
        assert [(count or 0) - sender.first_sequence for count in counts] == [0, 0, 1]
        assert await harness.chain.witnessed_sequence(sender.address) in (counts[-1], None)

    async def test_many_of_one_sender_are_mined_in_order(self, harness: ChainHarness) -> None:
        """Broadcast at once, each to somebody else."""
        sender, step = await _ready(harness)
        steps = [
            replace(step, to_address=harness.fresh_address(), amount=Units(some(harness) + n)) for n in range(MANY)
        ]
        txs = [await signed(harness, sender, one, sequence) for sequence, one in enumerate(steps)]
        assert (await mined(harness, *txs)).state == "succeeded"
        assert await harness.chain.next_sequence(sender.address) == sender.first_sequence + MANY
        held = await harness.chain.balances([(one.to_address, one.token) for one in steps])
        assert list(held) == [one.amount for one in steps]

    async def test_an_intent_of_nothing_uses_up_a_sequence(self, harness: ChainHarness) -> None:
        """It is planned as any other, and what it moves is its fee; so is a gap filled that nobody else will."""
        sender, _ = await _ready(harness)
        native = harness.chain.info.native
        wanted = an_intent(sender, sender.address, native, 0, "nothing")
        (plan,) = await harness.chain.plan([wanted], sponsor=None)
        step = step_of(plan)
        assert step == wanted.step(step.fee)
        assert step.native_needed == step.fee.cost_max + step.fee.reserve
        unsigned = await prepared(harness, sender, step)
        moved = harness.family.effects(harness.chain.info, unsigned.payload).movements
        assert all(one.recipient == sender.address and not one.amount for one in moved)
        before = await native_of(harness, sender)
        status = await mined(harness, sealed(harness, unsigned, sender))
        assert status.state == "succeeded"
        assert await harness.chain.next_sequence(sender.address) == sender.first_sequence + 1
        assert await native_of(harness, sender) == before - (status.fee or 0)
        assert (status.fee or 0) <= step.fee.cost_max

    async def test_a_gap_waits(self, harness: ChainHarness) -> None:
        """What comes too early is not mined before what it waits for, and is not lost when that comes."""
        sender, step = await _ready(harness)
        first = await signed(harness, sender, step, 0)
        second = await signed(harness, sender, replace(step, to_address=harness.fresh_address()), 1)
        assert (await told(harness, second)).state in ("accepted", "unknown")
        await harness.mine(2)
        assert (await harness.chain.transaction(second.tx_id)).state in ("pending", "unknown")
        assert await harness.chain.next_sequence(sender.address) == sender.first_sequence
        answers = [answer.state for answer in await harness.chain.broadcast([first, second])]
        assert answers == ["accepted", "accepted"]
        await harness.mine(2)
        found = await harness.chain.transactions([first.tx_id, second.tx_id])
        assert [status.state for status in found] == ["succeeded", "succeeded"]
        assert await harness.chain.next_sequence(sender.address) == sender.first_sequence + 2

    async def test_a_higher_fee_is_offered_exactly_where_it_replaces(self, harness: ChainHarness) -> None:
        """Where nothing is ever replaced, the fee stays, and the gateway waits."""
        _, step = await _ready(harness)
        fee = await harness.chain.outbid(step)
        assert (fee != step.fee) == harness.abilities.replacement

    async def test_a_higher_fee_replaces(self, harness: ChainHarness) -> None:
        """Again and again; of all of them one is mined, the last, and moves once."""
        needs(harness, "replacement")
        sender, step = await _ready(harness)
        bids = [step]
        for _ in range(2):
            fee = await harness.chain.outbid(bids[-1])
            assert fee.price > bids[-1].fee.price
            assert fee.limit >= bids[-1].fee.limit
            bids.append(replace(bids[-1], fee=fee))
        txs = [await signed(harness, sender, bid, 0) for bid in bids]
        for tx in txs:
            assert (await told(harness, tx)).state == "accepted"
        await harness.mine(2)
        found = await harness.chain.transactions([tx.tx_id for tx in txs])
        assert [status.state == "succeeded" for status in found] == [False, False, True]
        assert await harness.chain.balance(step.to_address, step.token) == some(harness)
        assert (found[-1].fee or 0) <= bids[-1].fee.cost_max

    async def test_the_same_fee_does_not_replace(self, harness: ChainHarness) -> None:
        """Another transaction under a number that waits is told to offer more, and the first is mined."""
        needs(harness, "replacement")
        sender, step = await _ready(harness)
        first = await signed(harness, sender, step, 0)
        other = await signed(harness, sender, replace(step, to_address=harness.fresh_address()), 0)
        answers = [answer.state for answer in await harness.chain.broadcast([first, other])]
        assert answers == ["accepted", "underpriced"]
        await harness.mine()
        found = await harness.chain.transactions([first.tx_id, other.tx_id])
        assert [status.state for status in found] == ["succeeded", "unknown"]

    async def test_a_used_sequence_is_told(self, harness: ChainHarness) -> None:
        """Whatever is offered for it, and nothing moves."""
        sender, step = await _ready(harness)
        await mined(harness, await signed(harness, sender, step, 0))
        other = replace(step, to_address=harness.fresh_address(), fee=await harness.chain.outbid(step))
        late = await signed(harness, sender, other, 0)
        assert (await told(harness, late)).state == "sequence_used"
        await harness.mine()
        assert (await harness.chain.transaction(late.tx_id)).state == "unknown"
        assert await harness.chain.balance(other.to_address, other.token) == 0


async def _ready(harness: ChainHarness) -> tuple[Sender, Step]:
    needs(harness, "sequences")
    sender = await funded(harness)
    return sender, await planned(harness, sender, harness.chain.info.native, some(harness))
