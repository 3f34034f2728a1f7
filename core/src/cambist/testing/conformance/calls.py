"""Contract calls that were sent: read back from what was mined, and told to the signer as they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from random import Random

import pytest
from msgspec.structs import replace

from cambist.plugin import Allowance, Call, ChainError, ChainUnavailableError, FoundLog, LogQuery, Units
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness

from .calling import (
    AMOUNT,
    HELD,
    a_payment,
    an_approval,
    approved,
    calls_ready,
    found_in,
    planned_step,
    sequence_for,
    taken,
)
from .helpers import answers_again, head_of, needs
from .sends import funded, mined, native_of, prepared, signed, told

STEPS_COUNT = 100
DATA_BYTES_MAX = 1_200


class CallConformance(Conformance):
    async def test_a_receipt_names_its_block(self, harness: ChainHarness) -> None:
        """The one that the status names, and before that there is none; nor one of what nobody sent."""
        chain, callee, sender = await calls_ready(harness)
        tx = await signed(harness, sender, await planned_step(harness, an_approval(callee, sender, AMOUNT)))
        assert await chain.receipt(tx.tx_id) is None
        assert (await told(harness, tx)).state == "accepted"
        assert await chain.receipt(tx.tx_id) is None
        await harness.mine(2)
        receipt, status = await chain.receipt(tx.tx_id), await chain.transaction(tx.tx_id)
        assert receipt is not None
        assert (receipt.tx_id, receipt.block, receipt.succeeded) == (tx.tx_id, status.block, True)
        assert status.state == "succeeded"

    async def test_native_coin_goes_along_with_a_call(self, harness: ChainHarness) -> None:
        """To the unit, and nothing else but the fee."""
        chain, callee, sender = await calls_ready(harness)
        native, before = chain.info.native, await chain.balance(callee.address, chain.info.native)
        step = await planned_step(harness, a_payment(harness, callee, sender, AMOUNT))
        assert step.native_needed == step.fee.cost_max + step.fee.reserve + AMOUNT
        held = await native_of(harness, sender)
        status = await mined(harness, await signed(harness, sender, step))
        assert status.state == "succeeded"
        assert await chain.balance(callee.address, native) == before + AMOUNT
        assert held - await native_of(harness, sender) == AMOUNT + (status.fee or 0)
        assert (status.fee or 0) <= step.fee.cost_max

    async def test_a_failed_call_did_nothing(self, harness: ChainHarness) -> None:
        """It is mined, costs its fee, and its receipt says so and tells no logs."""
        chain, callee, sender = await calls_ready(harness)
        step = await planned_step(harness, a_payment(harness, callee, sender, AMOUNT))
        failing = replace(step, call=replace(callee.refuse, value=Units(AMOUNT)))
        tx = await signed(harness, sender, failing)
        held = await native_of(harness, sender)
        status = await mined(harness, tx)
        receipt = await chain.receipt(tx.tx_id)
        assert receipt is not None
        assert (status.state, receipt.succeeded, receipt.logs, receipt.block) == ("reverted", False, (), status.block)
        assert held - await native_of(harness, sender) == status.fee

    async def test_an_allowance_is_what_was_approved_and_not_yet_taken(self, harness: ChainHarness) -> None:
        """Of this owner to this spender; another approval is instead of it, and zero takes it back."""
        chain, callee, sender = await calls_ready(harness)
        stranger = harness.fresh_address()
        seen = [await chain.allowance(sender.address, callee.address, callee.token)]
        await approved(harness, callee, sender, AMOUNT)
        seen.append(await chain.allowance(sender.address, callee.address, callee.token))
        await taken(harness, callee, sender, AMOUNT - 7)
        seen.append(await chain.allowance(sender.address, callee.address, callee.token))
        await approved(harness, callee, sender, 2)
        seen.append(await chain.allowance(sender.address, callee.address, callee.token))
        others = [(stranger, callee.address), (sender.address, stranger), (callee.address, sender.address)]
        assert [await chain.allowance(*one, callee.token) for one in others] == [0, 0, 0]
        await approved(harness, callee, sender, 0)
        seen.append(await chain.allowance(sender.address, callee.address, callee.token))
        assert seen == [0, AMOUNT, 7, 2, 0]

    async def test_logs_are_found_by_contract_topics_and_blocks(self, harness: ChainHarness) -> None:
        """All that fit, in the order of the chain, where their receipts say; and no other."""
        chain, callee, sender = await calls_ready(harness)
        other = await funded(harness, (callee.token, HELD))
        receipts = []
        for who, amount in ((sender, AMOUNT), (other, AMOUNT), (sender, AMOUNT + 1), (sender, AMOUNT)):
            await approved(harness, callee, who, amount)
            receipts.append(await taken(harness, callee, who, amount))
        first, last = receipts[0].block.height, receipts[-1].block.height
        own = [found_in(receipt, receipt.logs[-1]) for receipt in receipts]
        topics, others = own[0].log.topics, own[1].log.topics
        assert topics != others

        async def found(*wanted: bytes | None, first: int = first, last: int = last) -> Sequence[FoundLog]:
            query = LogQuery(address=callee.address, topics=wanted, first=first, last=last)
            return list(await chain.logs(query))

        assert await found() == own == await found(None) == await found(topics[0])
        assert await found(*topics) == [own[0], own[3]]
        assert await found(*others) == [own[1]]
        differing = next(index for index, topic in enumerate(topics) if topic != others[index])
        assert await found(*([None] * differing), others[differing]) == [own[1]]
        assert await found(bytes(len(topics[0]))) == []
        assert await found(first=first + 1) == own[1:]
        assert await found(last=last - 1) == own[:-1]
        assert await found(first=first, last=first) == own[:1]
        assert await found(first=first - 1, last=first - 1) == []
        token = LogQuery(address=str(callee.token.contract), topics=(), first=last, last=last)
        assert list(await chain.logs(token)) == [found_in(receipts[-1], log) for log in receipts[-1].logs[:-1]]

    async def test_logs_above_the_head_are_an_error(self, harness: ChainHarness) -> None:
        """That there are none yet must not be taken for that there are none."""
        chain, callee, _ = await calls_ready(harness)
        head = await head_of(harness)
        query = LogQuery(address=callee.address, topics=(), first=head.height, last=head.height + 5)
        with pytest.raises(ChainError):
            await chain.logs(query)

    async def test_a_reorg_takes_receipts_and_logs_away(self, harness: ChainHarness) -> None:
        """With the allowance, too."""
        needs(harness, "reorgs")
        chain, callee, sender = await calls_ready(harness)
        await harness.mine(2)
        receipt = await approved(harness, callee, sender, AMOUNT)
        height = receipt.block.height
        query = LogQuery(address=str(callee.token.contract), topics=(), first=height, last=height)
        assert [one.tx_id for one in await chain.logs(query)] == [receipt.tx_id]
        await harness.reorg(1)
        assert await chain.receipt(receipt.tx_id) is None
        assert list(await chain.logs(query)) == []
        assert await chain.allowance(sender.address, callee.address, callee.token) == 0

    async def test_a_waiting_call_can_be_outbid(self, harness: ChainHarness) -> None:
        """By the same call for a higher fee, and one of the two is mined."""
        needs(harness, "sequences")
        chain, callee, sender = await calls_ready(harness)
        for intent in (an_approval(callee, sender, AMOUNT), a_payment(harness, callee, sender, AMOUNT)):
            step = await planned_step(harness, intent)
            higher = replace(step, fee=await chain.outbid(step))
            assert higher.fee.price > step.fee.price
            txs = [await signed(harness, sender, one) for one in (step, higher)]
            assert (await mined(harness, *txs)).state == "succeeded"
            assert await chain.receipt(txs[0].tx_id) is None
        assert await chain.allowance(sender.address, callee.address, callee.token) == AMOUNT

    async def test_effects_of_an_approval_are_what_the_step_says(self, harness: ChainHarness) -> None:
        """Whoever may take, and how much, to the unit: it is no movement, and no call that somebody else must read."""
        _, callee, sender = await calls_ready(harness)
        likely, chance, seen = await planned_step(harness, an_approval(callee, sender, AMOUNT)), Random(2), set()
        for number in range(STEPS_COUNT):
            amount = chance.choice((0, 1, 2**8, 2**64, 2**128, harness.units_max(callee.token)))
            step = replace(likely, to_address=harness.fresh_address(), amount=Units(amount))
            payload = (await prepared(harness, sender, step, sequence_for(harness, number))).payload
            effects = harness.family.effects(harness.chain.info, payload)
            allowed = Allowance(contract=str(callee.token.contract), spender=step.to_address, amount=step.amount)
            assert effects.allowance == allowed
            seen.add(effects.allowance)
            assert (effects.movements, effects.call, effects.delegate, effects.staking) == ((), None, None, None)
        assert len(seen) == STEPS_COUNT

    async def test_effects_of_a_call_are_the_call(self, harness: ChainHarness) -> None:
        """Byte for byte, with what goes along: somebody else reads it, and must read just what is signed."""
        _, callee, sender = await calls_ready(harness)
        likely, chance = await planned_step(harness, a_payment(harness, callee, sender, AMOUNT)), Random(3)
        for number in range(STEPS_COUNT):
            call = Call(
                to_address=harness.fresh_address(),
                data=chance.randbytes(chance.choice((1, 4, 36, 68, chance.randrange(1, DATA_BYTES_MAX)))),
                value=Units(chance.choice((0, 1, 2**64, harness.units_max(likely.token)))),
            )
            step = replace(likely, to_address=call.to_address, amount=call.value, call=call)
            payload = (await prepared(harness, sender, step, sequence_for(harness, number))).payload
            effects = harness.family.effects(harness.chain.info, payload)
            assert effects.call == call
            assert (effects.movements, effects.allowance, effects.delegate, effects.staking) == ((), None, None, None)

    async def test_an_outage_is_no_answer_about_calls(self, harness: ChainHarness) -> None:
        """Nothing is tried, allowed, found or mined by guessing."""
        needs(harness, "outages")
        chain, callee, sender = await calls_ready(harness)
        receipt = await approved(harness, callee, sender, AMOUNT)
        query = LogQuery(address=callee.address, topics=(), first=receipt.block.height, last=receipt.block.height)
        asked: list[Callable[[], Awaitable[object]]] = [
            lambda: chain.simulate(sender.address, [callee.refuse]),
            lambda: chain.receipt(receipt.tx_id),
            lambda: chain.logs(query),
            lambda: chain.allowance(sender.address, callee.address, callee.token),
        ]
        async with harness.outage():
            for ask in asked:
                with pytest.raises(ChainUnavailableError):
                    await ask()
        await answers_again(harness)
        assert await chain.receipt(receipt.tx_id) == receipt
