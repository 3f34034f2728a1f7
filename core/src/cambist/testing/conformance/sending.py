"""Sending: what is sent arrives once and costs what was said, and what goes wrong is told as what it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from cambist.plugin import ChainUnavailableError, Dated, LendingChain, SignedTx, Token, Units
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness

from .helpers import a_token, answers_again, head_of, needs, some, transfers_above
from .sends import (
    an_intent,
    cannot_be_prepared,
    funded,
    mined,
    native_of,
    planned,
    prepared,
    sealed,
    signed,
    step_of,
    told,
)


class SendingConformance(Conformance):
    async def test_what_is_sent_arrives(self, harness: ChainHarness) -> None:
        """To the unit, of every token; the sender has so much less, and whoever watches the recipient sees it."""
        for token in harness.chain.info.tokens:
            sender, before = await funded(harness, *_tokens(harness, token)), await head_of(harness)
            step = await planned(harness, sender, token, some(harness))
            tx = await signed(harness, sender, step)
            held = await harness.chain.balance(sender.address, token)
            status = await mined(harness, tx)
            assert status.state == "succeeded"
            assert status.fee is not None
            assert await harness.chain.balance(step.to_address, token) == some(harness)
            lost = held - await harness.chain.balance(sender.address, token)
            assert lost == some(harness) + (status.fee if token.is_native else 0)
            found = await transfers_above(harness, before.height, step.to_address)
            assert [(one.tx_id, one.amount, one.contract) for one in found] == [
                (tx.tx_id, some(harness), token.contract)
            ]

    async def test_the_least_that_can_be_sent_arrives(self, harness: ChainHarness) -> None:
        """At an address that nobody has used: merchants and customers are told that so much is enough."""
        for token in harness.chain.info.tokens:
            least = token.least_units
            assert least >= 1
            sender = await funded(harness, *([] if token.is_native else [(token, max(some(harness), least))]))
            step = await planned(harness, sender, token, least)
            assert (await mined(harness, await signed(harness, sender, step))).state == "succeeded"
            assert await harness.chain.balance(step.to_address, token) == least

    async def test_a_fee_is_what_the_sender_lost_and_no_more_than_planned(self, harness: ChainHarness) -> None:
        """Whatever was sent."""
        for token in harness.chain.info.tokens:
            sender = await funded(harness, *_tokens(harness, token))
            step = await planned(harness, sender, token, some(harness))
            held = await native_of(harness, sender)
            status = await mined(harness, await signed(harness, sender, step))
            lost = held - await native_of(harness, sender) - (some(harness) if token.is_native else 0)
            assert status.fee == lost
            assert 0 <= lost <= step.fee.cost_max

    async def test_a_transaction_is_found_as_it_was_signed(self, harness: ChainHarness) -> None:
        """By its id, once somebody has sent it; of what nobody has sent, and of what is no id, nothing is found."""
        needs(harness, "finding")
        chain = harness.chain
        for token in chain.info.tokens:
            sender = await funded(harness, *_tokens(harness, token))
            unsigned = await prepared(harness, sender, await planned(harness, sender, token, some(harness)))
            tx = sealed(harness, unsigned, sender)
            for unknown in (tx.tx_id, tx.tx_id[:-1], "", "0x", "no id at all"):
                assert await chain.find_tx(unknown) is None
            status = await mined(harness, tx)
            found = await chain.find_tx(tx.tx_id)
            assert found is not None
            assert (found.tx, found.sender, found.payload) == (tx, sender.address, unsigned.payload)
            assert (found.sequence, found.valid_until) == (unsigned.sequence, unsigned.valid_until)
            assert found.fee.cost_max >= (status.fee or 0)
            witnessed = await chain.witnessed(tx.tx_id)
            assert (witnessed.state, witnessed.block) == (status.state, status.block)

    async def test_all_but_the_fee_can_be_sent(self, harness: ChainHarness) -> None:
        """Who holds just what a step needs can send it, and keeps what accounts of the chain keep."""
        native = harness.chain.info.native
        sender = await funded(harness)
        held = await native_of(harness, sender)
        step = await planned(harness, sender, native, some(harness))
        step = replace(step, amount=Units(held - step.fee.cost_max - step.fee.reserve))
        assert step.native_needed == held
        status = await mined(harness, await signed(harness, sender, step))
        assert status.state == "succeeded"
        assert await harness.chain.balance(step.to_address, native) == step.amount
        left = step.fee.cost_max + step.fee.reserve - (status.fee or 0)
        assert await native_of(harness, sender) == left

    async def test_what_is_brought_for_a_fee_is_enough(self, harness: ChainHarness) -> None:
        """It is brought once, as a plan said: having it must not make the fee higher, or more is brought for ever."""
        needs(harness, "sending")
        native = harness.chain.info.native
        for token in harness.chain.info.tokens[:2]:
            sender = await harness.sender((token, some(harness)))
            before = await planned(harness, sender, token, some(harness))
            await harness.transfer(native, sender.address, before.native_needed - await native_of(harness, sender))
            await harness.mine()
            step = await planned(harness, sender, token, some(harness), before.to_address)
            assert step.native_needed <= await native_of(harness, sender)
            assert (await mined(harness, await signed(harness, sender, step))).state == "succeeded"

    async def test_a_plan_is_the_intent_and_no_more(self, harness: ChainHarness) -> None:
        """Each intent of several has its own, in the order of asking."""
        sender = await funded(harness)
        intents = [
            an_intent(sender, harness.fresh_address(), token, some(harness) + number)
            for number, token in enumerate(harness.chain.info.tokens * 2)
        ]
        plans = await harness.chain.plan(intents, sponsor=None)
        assert [plan.refused for plan in plans] == [None] * len(intents)
        steps = [step_of(plan) for plan in plans]
        assert [(step.sender, step.to_address, step.token, step.amount) for step in steps] == [
            (one.source, one.to_address, one.token, one.amount) for one in intents
        ]
        assert all(step.fee.limit > 0 and step.fee.price > 0 for step in steps)

    async def test_money_that_has_yet_to_come_is_no_reason_to_refuse(self, harness: ChainHarness) -> None:
        """A sender with nothing at all is planned for: what is missing is on its way."""
        needs(harness, "sending")
        sender = await harness.sender()
        for token in harness.chain.info.tokens:
            step = await planned(harness, sender, token, some(harness))
            assert (step.to_address != sender.address, step.amount) == (True, some(harness))

    async def test_who_is_emptied_before_the_block_is_paid_where_that_may_be(self, harness: ChainHarness) -> None:
        """Exchanges empty the addresses that they are paid at, and a first balance may take more work than another."""
        token = a_token(harness)
        sender, recipient = (
            await funded(harness, *_tokens(harness, token)),
            await funded(harness, (token, some(harness))),
        )
        wanted = replace(an_intent(sender, recipient.address, token, some(harness)), recipient_may_empty=True)
        (plan,) = await harness.chain.plan([wanted], sponsor=None)
        tx = await signed(harness, sender, step_of(plan))
        away = await planned(harness, recipient, token, some(harness))
        assert (await mined(harness, await signed(harness, recipient, away))).state == "succeeded"
        assert await harness.chain.balance(recipient.address, token) == 0
        status = await mined(harness, tx)
        assert (status.state, await harness.chain.balance(recipient.address, token)) == ("succeeded", some(harness))
        assert (status.fee or 0) <= step_of(plan).fee.cost_max

    async def test_a_transfer_that_would_fail_is_not_planned(self, harness: ChainHarness) -> None:
        """The plan says why it is refused, and those beside it are not."""
        needs(harness, "refusals")
        refused, welcome = harness.fresh_address(), harness.fresh_address()
        token = await harness.refuse(refused)
        sender = await funded(harness, *_tokens(harness, token))
        intents = [an_intent(sender, to_address, token, some(harness)) for to_address in (welcome, refused, welcome)]
        first, second, third = await harness.chain.plan(intents, sponsor=None)
        assert second.refused
        assert second.step is None
        assert [step_of(first).to_address, step_of(third).to_address] == [welcome, welcome]

    async def test_a_sent_transaction_is_known_by_its_id(self, harness: ChainHarness) -> None:
        """Which is known before it is sent; until then nobody knows it."""
        sender = await funded(harness)
        step = await planned(harness, sender, harness.chain.info.native, some(harness))
        tx = await signed(harness, sender, step)
        assert (await harness.chain.transaction(tx.tx_id)).state == "unknown"
        assert (await told(harness, tx)).state == "accepted"
        if harness.abilities.pending:
            assert (await harness.chain.transaction(tx.tx_id)).state == "pending"
        await harness.mine()
        status = await harness.chain.transaction(tx.tx_id)
        assert (status.state, status.block and status.block.height) == ("succeeded", (await head_of(harness)).height)

    async def test_sending_twice_moves_once(self, harness: ChainHarness) -> None:
        """The same bytes are accepted again while they wait, and are no error once they are mined."""
        native = harness.chain.info.native
        sender = await funded(harness)
        step = await planned(harness, sender, native, some(harness))
        tx = await signed(harness, sender, step)
        again = await harness.chain.broadcast([tx, tx])
        assert [answer.state for answer in again] == ["accepted", "accepted"]
        assert (await told(harness, tx)).state == "accepted"
        await harness.mine()
        assert (await told(harness, tx)).state in ("accepted", "sequence_used")
        await harness.mine()
        assert await harness.chain.balance(step.to_address, native) == some(harness)
        assert (await harness.chain.transaction(tx.tx_id)).state == "succeeded"

    async def test_a_failed_transaction_costs_its_fee_and_moves_nothing(self, harness: ChainHarness) -> None:
        """As a token that the sender has not enough of: it is mined, says so, and uses its sequence."""
        token = a_token(harness)
        sender = await funded(harness, (token, some(harness) - 1))
        step = await planned(harness, sender, token, some(harness))
        tx = await signed(harness, sender, step)
        held, before = await native_of(harness, sender), await harness.chain.next_sequence(sender.address)
        status = await mined(harness, tx)
        assert (status.state, status.block is not None) == ("reverted", True)
        assert status.fee == held - await native_of(harness, sender)
        assert 0 < status.fee <= step.fee.cost_max
        assert await harness.chain.balance(step.to_address, token) == 0
        assert await harness.chain.balance(sender.address, token) == some(harness) - 1
        if before is not None:
            assert await harness.chain.next_sequence(sender.address) == before + 1

    async def test_a_sender_who_cannot_pay_is_told(self, harness: ChainHarness) -> None:
        """And the same bytes are accepted once the money is there; where outputs are spent, there are none before."""
        needs(harness, "sending")
        native = harness.chain.info.native
        for token in harness.chain.info.tokens[:2]:
            sender = await harness.sender(*_tokens(harness, token)[:1] if not token.is_native else ())
            step = await planned(harness, sender, token, some(harness))
            tx = None if harness.abilities.outputs else await signed(harness, sender, step)
            if tx is None:
                await cannot_be_prepared(harness, sender, step)
            else:
                assert (await told(harness, tx)).state == "unfunded"
            await harness.transfer(native, sender.address, await harness.coins_held())
            await harness.mine()
            assert (await mined(harness, tx or await signed(harness, sender, step))).state == "succeeded"

    async def test_answers_come_in_the_order_of_the_questions(self, harness: ChainHarness) -> None:
        """One that is refused says nothing about its neighbours."""
        native = harness.chain.info.native
        senders = [await funded(harness) for _ in range(3)]
        # Where outputs are spent nothing is signed for who has none, so one that is fine stands there.
        last = await (funded(harness) if harness.abilities.outputs else harness.sender())
        txs = [
            await signed(harness, one, await planned(harness, one, native, some(harness))) for one in (*senders, last)
        ]
        garbage = SignedTx(tx_id=txs[0].tx_id[:-4] + "0000", raw=txs[0].raw[: len(txs[0].raw) // 2])
        order = [txs[0], garbage, txs[1], txs[3], txs[2]]
        states = [answer.state for answer in await harness.chain.broadcast(order)]
        said, became = ("accepted", "succeeded") if harness.abilities.outputs else ("unfunded", "unknown")
        assert [states[0], states[2], states[3], states[4]] == ["accepted", "accepted", said, "accepted"]
        assert states[1] in ("rejected", "unknown")
        await harness.mine()
        found = await harness.chain.transactions([tx.tx_id for tx in order])
        assert [status.state for status in found] == ["succeeded", "unknown", "succeeded", became, "succeeded"]

    async def test_nothing_asked_is_nothing_answered(self, harness: ChainHarness) -> None:
        """An empty list is no error anywhere."""
        needs(harness, "sending")
        chain = harness.chain
        assert list(await chain.plan([], sponsor=None)) == []
        assert list(await chain.prepare([])) == []
        assert list(await chain.broadcast([])) == []
        assert list(await chain.balances([])) == []
        assert list(await chain.transactions([])) == []
        assert list(await chain.expired([])) == []

    async def test_several_balances_are_the_single_ones(self, harness: ChainHarness) -> None:
        """In the order asked for, repeated where they are asked for twice."""
        tokens, addresses = harness.chain.info.tokens, [harness.fresh_address() for _ in range(3)]
        for factor, token in enumerate(tokens, start=1):
            await harness.transfer(token, addresses[0], factor * some(harness))
            await harness.transfer(token, addresses[1], factor * some(harness) + 1)
        await harness.mine()
        wanted = [(address, token) for address in (*reversed(addresses), addresses[0]) for token in tokens]
        single = [await harness.chain.balance(address, token) for address, token in wanted]
        assert list(await harness.chain.balances(wanted)) == single
        assert len(set(single)) == 2 * len(tokens) + 1

    async def test_several_states_are_the_single_ones(self, harness: ChainHarness) -> None:
        """In the order asked for, repeated where they are asked for twice."""
        native = harness.chain.info.native
        tx_ids = [await harness.transfer(native, harness.fresh_address(), some(harness)) for _ in range(2)]
        await harness.mine()
        tx_ids += [await harness.transfer(native, harness.fresh_address(), some(harness)), tx_ids[0]]
        tx_ids.insert(1, tx_ids[0][:-4] + ("0000" if tx_ids[0][-4:] != "0000" else "1111"))
        single = [await harness.chain.transaction(tx_id) for tx_id in tx_ids]
        assert list(await harness.chain.transactions(tx_ids)) == single
        assert len({status.state for status in single}) >= 2

    async def test_an_outage_leaves_a_broadcast_unknown(self, harness: ChainHarness) -> None:
        """It does not raise; and the same bytes are accepted once there is a node again."""
        needs(harness, "outages")
        sender = await funded(harness)
        tx = await signed(harness, sender, await planned(harness, sender, harness.chain.info.native, some(harness)))
        async with harness.outage():
            assert [answer.state for answer in await harness.chain.broadcast([tx, tx])] == ["unknown", "unknown"]
        await answers_again(harness)
        assert (await mined(harness, tx)).state == "succeeded"

    async def test_an_outage_is_no_answer(self, harness: ChainHarness) -> None:
        """Nothing is planned, counted or looked up by guessing."""
        needs(harness, "outages")
        sender, chain, native = await funded(harness), harness.chain, harness.chain.info.native
        wanted = an_intent(sender, harness.fresh_address(), chain.info.tokens[-1], some(harness))
        asked: list[Callable[[], Awaitable[object]]] = [
            lambda: chain.plan([wanted], sponsor=None),
            lambda: chain.balances([(sender.address, native)]),
            lambda: chain.transactions(["0" * 64]),
        ]
        if harness.abilities.sequences:
            asked.append(lambda: chain.next_sequence(sender.address))
        if harness.abilities.expiry:
            asked.append(lambda: chain.expired([Dated(tx_id="0" * 64, valid_until=1)]))
        if isinstance(chain, LendingChain):
            asked.append(lambda: chain.stake(sender.address))
        async with harness.outage():
            for ask in asked:
                with pytest.raises(ChainUnavailableError):
                    await ask()

    async def test_a_reorg_takes_back_what_was_sent(self, harness: ChainHarness) -> None:
        """The sequence is free again, and the same bytes can be sent once more; they move once."""
        needs(harness, "reorgs")
        native = harness.chain.info.native
        sender = await funded(harness)
        await harness.mine(2)
        step = await planned(harness, sender, native, some(harness))
        before = await harness.chain.next_sequence(sender.address)
        tx = await signed(harness, sender, step)
        assert (await mined(harness, tx)).state == "succeeded"
        await harness.reorg(1)
        assert (await harness.chain.transaction(tx.tx_id)).state in ("unknown", "pending")
        assert await harness.chain.next_sequence(sender.address) == before
        assert await harness.chain.balance(step.to_address, native) == 0
        assert (await mined(harness, tx)).state == "succeeded"
        assert await harness.chain.balance(step.to_address, native) == some(harness)


def _tokens(harness: ChainHarness, token: Token) -> list[tuple[Token, int]]:
    return [] if token.is_native else [(token, 3 * some(harness))]
