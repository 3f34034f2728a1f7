# ruff: noqa: ARG002 - what is broken often ignores what it is asked
"""Chains in memory that run contracts, each broken in one way, beside those that are broken elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from cambist.plugin import Call, CallTrial, Effects, FoundLog, LogQuery, Plan, Receipt, Units
from cambist.testing.memory import MemoryChain, MemoryFamily, MemoryHarness
from tests.core.broken_lenders import BROKEN
from tests.core.broken_senders import TooTimid
from tests.support.memory_calls import INFO, MemoryCallFamily, MemoryCallHarness, MemoryContractChain

__all__ = ["BROKEN"]


def caught_by(*tests: str) -> Callable[[type], type]:
    """Register a broken chain or family under the tests that must catch it."""

    def register(broken: type) -> type:
        for test in tests:
            BROKEN[test] = lambda: harness_of(broken)
        return broken

    return register


def harness_of(broken: type) -> MemoryHarness:
    """Build a harness around the one broken part."""
    if issubclass(broken, MemoryFamily):
        return MemoryCallHarness(MemoryContractChain(INFO, family=broken(), finality_lag_blocks=5))
    if not issubclass(broken, MemoryContractChain):
        return MemoryHarness(broken(INFO, finality_lag_blocks=5))
    return MemoryCallHarness(broken(INFO, finality_lag_blocks=5))


# What is tried.


class ChangedTrials(MemoryContractChain):
    """Whose trials are told differently."""

    async def simulate(self, sender: str, calls: Sequence[Call]) -> Sequence[CallTrial]:
        return [self.change(trial) for trial in await super().simulate(sender, calls)]

    def change(self, trial: CallTrial) -> CallTrial:
        raise NotImplementedError


@caught_by("test_a_trial_tells_what_each_call_makes_of_those_before")
class EachAlone(MemoryContractChain):
    async def simulate(self, sender, calls) -> Sequence[CallTrial]:
        return [trial for call in calls for trial in await super(EachAlone, self).simulate(sender, [call])]


@caught_by("test_a_trial_tells_what_tokens_a_call_moves")
class TellsTheCallOnly(ChangedTrials):
    def change(self, trial):
        moved = tuple(replace(one, amount=Units(one.amount + 1)) for one in trial.moved or ())
        return replace(trial, moved=moved)


@caught_by("test_a_trial_tells_why_a_call_is_refused")
class Taciturn(ChangedTrials):
    def change(self, trial):
        return trial if trial.refused is None else replace(trial, refused="it fails")


@caught_by("test_a_trial_needs_no_fee")
class CashOnly(MemoryContractChain):
    async def simulate(self, sender, calls) -> Sequence[CallTrial]:
        if not await self.balance(sender, self.info.native):
            return [CallTrial(refused="insufficient funds") for _ in calls]
        return await super().simulate(sender, calls)


@caught_by("test_what_was_tried_is_what_happens")
class Backwards(ChangedTrials):
    def change(self, trial):
        return replace(trial, logs=trial.logs[::-1])


# What is planned.


class ChangedPlans(MemoryContractChain):
    """Whose plans for calls are others."""

    def _planned(self, intent) -> Plan:
        plan = super()._planned(intent)
        return plan if plan.step is None else self.change(plan)

    def change(self, plan: Plan) -> Plan:
        raise NotImplementedError


@caught_by("test_approvals_and_calls_are_planned")
class Generous(ChangedPlans):
    def change(self, plan):
        more = plan.step.amount + 1 if plan.step.action == "approve" else plan.step.amount
        return replace(plan, step=replace(plan.step, amount=Units(more)))


@caught_by("test_a_call_that_would_fail_is_not_planned")
class Sanguine(MemoryContractChain):
    def _planned(self, intent) -> Plan:
        return Plan(step=intent.step(self.fees.current(60_000)))


@caught_by("test_native_coin_goes_along_with_a_call")
class KeepsTheCoin(ChangedPlans):
    def change(self, plan):
        call = plan.step.call and replace(plan.step.call, value=Units(0))
        return replace(plan, step=replace(plan.step, call=call))


@caught_by("test_a_waiting_call_can_be_outbid")
class Timid(MemoryContractChain):
    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, fees=TooTimid(), **kwargs)


@caught_by("test_nothing_is_called_where_no_contracts_run")
class CallsAnyway(MemoryChain):
    def _refused(self, intent) -> Plan | None:
        return super()._refused(replace(intent, action="transfer"))


# What is read back.


class ChangedReceipts(MemoryContractChain):
    """Whose receipts say something else."""

    async def receipt(self, tx_id: str) -> Receipt | None:
        receipt = await super().receipt(tx_id)
        return receipt and self.change(receipt)

    def change(self, receipt: Receipt) -> Receipt:
        raise NotImplementedError


@caught_by("test_a_receipt_names_its_block")
class OneLater(ChangedReceipts):
    def change(self, receipt):
        return replace(receipt, block=self.seen()[-1].header)


@caught_by("test_a_failed_call_did_nothing")
class AllIsWell(ChangedReceipts):
    def change(self, receipt):
        return replace(receipt, succeeded=True)


@caught_by("test_an_allowance_is_what_was_approved_and_not_yet_taken")
class OnceAllowed(MemoryContractChain):
    async def allowance(self, owner, spender, token) -> Units:
        await self.met("balance")
        return Units(max((amount for _, key, amount in self.accounts.allowed if key[0] == owner), default=0))


@caught_by("test_logs_are_found_by_contract_topics_and_blocks")
class FirstTopicOnly(MemoryContractChain):
    def matches(self, log, query) -> bool:
        return super().matches(log, replace(query, topics=query.topics[:1]))


@caught_by("test_logs_above_the_head_are_an_error")
class Optimist(MemoryContractChain):
    async def logs(self, query: LogQuery) -> Sequence[FoundLog]:
        return await super().logs(replace(query, last=min(query.last, self.height)))


@caught_by("test_a_reorg_takes_receipts_and_logs_away")
class Nostalgic(MemoryContractChain):
    async def receipt(self, tx_id: str) -> Receipt | None:
        memory = self.__dict__.setdefault("memory", {})
        receipt = await super().receipt(tx_id)
        return memory.setdefault(tx_id, receipt) if receipt else memory.get(tx_id)


@caught_by("test_an_outage_is_no_answer_about_calls")
class KnowsByHeart(MemoryContractChain):
    async def allowance(self, owner, spender, token) -> Units:
        return Units(self.accounts.allowance(owner, spender, token.contract))


# What the signer reads.


@caught_by("test_effects_of_an_approval_are_what_the_step_says")
class SmallNumbers(MemoryCallFamily):
    def effects(self, chain, payload) -> Effects:
        effects = super().effects(chain, payload)
        allowed = effects.allowance
        return replace(effects, allowance=allowed and replace(allowed, amount=Units(allowed.amount % 2**64)))


@caught_by("test_effects_of_a_call_are_the_call")
class NothingGoesAlong(MemoryCallFamily):
    def effects(self, chain, payload) -> Effects:
        effects = super().effects(chain, payload)
        return replace(effects, call=effects.call and replace(effects.call, value=Units(0)))
