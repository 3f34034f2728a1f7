"""Contract calls before they are sent: tried one on the other, planned, and refused for what the contract says."""

from __future__ import annotations

from msgspec.structs import replace

from cambist.plugin import Call, ContractChain, Movement, Units
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness

from .calling import AMOUNT, HELD, a_call, a_payment, an_approval, approved, calls_ready, check_logs, taken
from .helpers import some
from .sends import an_intent, funded, step_of


class TrialConformance(Conformance):
    async def test_a_trial_tells_what_each_call_makes_of_those_before(self, harness: ChainHarness) -> None:
        """What is taken must be allowed first; and after the trial nothing is, for nothing was sent."""
        chain, callee, sender = await calls_ready(harness)
        approval = chain.approval(callee.token, callee.address, Units(AMOUNT))
        (alone,) = await chain.simulate(sender.address, [callee.take(AMOUNT)])
        assert alone.refused
        trials = await chain.simulate(sender.address, [approval, callee.take(AMOUNT - 1), callee.take(1)])
        assert [trial.refused for trial in trials] == [None, None, None]
        assert all(trial.work and trial.logs for trial in trials)
        (more,) = [*await chain.simulate(sender.address, [approval, callee.take(AMOUNT + 1)])][1:]
        assert more.refused
        await harness.mine()
        assert await chain.allowance(sender.address, callee.address, callee.token) == 0
        assert await chain.balance(sender.address, callee.token) == HELD
        assert not await chain.next_sequence(sender.address)

    async def test_a_trial_tells_what_tokens_a_call_moves(self, harness: ChainHarness) -> None:
        """From whom, to whom and how much, by the token's own logs; an approval moves none."""
        chain, callee, sender = await calls_ready(harness)
        approval = chain.approval(callee.token, callee.address, Units(AMOUNT))
        first, second = await chain.simulate(sender.address, [approval, callee.take(AMOUNT - 3)])
        moved = Movement(
            contract=callee.token.contract, source=sender.address, recipient=callee.address, amount=Units(AMOUNT - 3)
        )
        assert (first.moved, second.moved) == ((), (moved,))

    async def test_a_trial_tells_why_a_call_is_refused(self, harness: ChainHarness) -> None:
        """In the contract's own words; and what follows it is refused with it, whatever it is."""
        chain, callee, sender = await calls_ready(harness)
        approval = chain.approval(callee.token, callee.address, Units(AMOUNT))
        (alone,) = await chain.simulate(sender.address, [callee.refuse])
        assert callee.reason in str(alone.refused)
        assert (alone.work, alone.logs) == (None, ())
        first, second, third = await chain.simulate(sender.address, [approval, callee.refuse, approval])
        assert first.refused is None
        assert callee.reason in str(second.refused)
        assert third.refused

    async def test_a_trial_needs_no_fee(self, harness: ChainHarness) -> None:
        """It is tried before the fee is brought there. Nothing asked is nothing answered."""
        chain, callee, _ = await calls_ready(harness)
        poor = await harness.sender((callee.token, AMOUNT))
        approval = chain.approval(callee.token, callee.address, Units(AMOUNT))
        trials = await chain.simulate(poor.address, [approval, callee.take(AMOUNT)])
        assert [trial.refused for trial in trials] == [None, None]
        assert list(await chain.simulate(poor.address, [])) == []

    async def test_what_was_tried_is_what_happens(self, harness: ChainHarness) -> None:
        """The approval and the call leave the logs that the trial told, and the receipt tells them in order."""
        chain, callee, sender = await calls_ready(harness)
        approval = chain.approval(callee.token, callee.address, Units(AMOUNT))
        trials = await chain.simulate(sender.address, [approval, callee.take(AMOUNT)])
        before = await chain.balance(callee.address, callee.token)
        receipts = [await approved(harness, callee, sender, AMOUNT), await taken(harness, callee, sender, AMOUNT)]
        assert [receipt.logs for receipt in receipts] == [trial.logs for trial in trials]
        for receipt in receipts:
            check_logs(harness, receipt.logs)
        assert [log.address for log in receipts[0].logs] == [callee.token.contract]
        assert receipts[1].logs[-1].address == callee.address
        assert len(receipts[1].logs) > 1
        assert await chain.balance(callee.address, callee.token) == before + AMOUNT

    async def test_approvals_and_calls_are_planned(self, harness: ChainHarness) -> None:
        """Each as what was wanted, at a fee; also while the money for it has yet to come."""
        chain, callee, sender = await calls_ready(harness)
        await approved(harness, callee, sender, AMOUNT)
        poor = await harness.sender()
        intents = [
            an_approval(callee, sender, AMOUNT + 1),
            an_approval(callee, poor, AMOUNT),
            an_approval(callee, sender, 0),
            a_call(callee, sender, callee.take(AMOUNT), callee.token, AMOUNT),
            a_payment(harness, callee, sender, AMOUNT),
            a_payment(harness, callee, poor, AMOUNT),
        ]
        plans = await chain.plan(intents, sponsor=None)
        assert [plan.refused for plan in plans] == [None] * len(intents)
        for intent, step in zip(intents, map(step_of, plans), strict=True):
            assert step == intent.step(step.fee)
            assert step.fee.limit > 0
            assert step.fee.price > 0

    async def test_a_call_that_would_fail_is_not_planned(self, harness: ChainHarness) -> None:
        """The plan says why, in the contract's own words, and those beside it are not refused."""
        chain, callee, sender = await calls_ready(harness)
        intents = [
            an_approval(callee, sender, AMOUNT),
            a_call(callee, sender, callee.refuse, callee.token, AMOUNT),
            a_call(callee, sender, callee.take(AMOUNT), callee.token, AMOUNT),
            a_payment(harness, callee, sender, AMOUNT),
        ]
        first, second, third, fourth = await chain.plan(intents, sponsor=None)
        assert (step_of(first).action, step_of(fourth).action) == ("approve", "call")
        assert (second.step, third.step) == (None, None)
        assert callee.reason in str(second.refused)
        assert third.refused

    async def test_nothing_is_called_where_no_contracts_run(self, harness: ChainHarness) -> None:
        """Approvals and calls are refused with a sentence, and what is planned beside them is not.

        Whether contracts run is known without any node, too.
        """
        sender = await funded(harness)
        assert harness.chain.info.runs_contracts is isinstance(harness.chain, ContractChain)
        if harness.chain.info.runs_contracts:
            return
        native, token = harness.chain.info.native, harness.chain.info.tokens[-1]
        call = Call(to_address=harness.fresh_address(), data=b"\1")
        approve = an_intent(sender, harness.fresh_address(), token, AMOUNT, "approve")
        calling = replace(an_intent(sender, call.to_address, token, AMOUNT, "call"), call=call)
        transfer = an_intent(sender, harness.fresh_address(), native, some(harness))
        first, second, third = await harness.chain.plan([approve, calling, transfer], sponsor=None)
        assert (bool(first.refused), first.step, bool(second.refused), second.step) == (True, None, True, None)
        assert step_of(third).action == "transfer"
