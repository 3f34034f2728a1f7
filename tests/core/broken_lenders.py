"""Chains in memory that expire, activate and lend, each broken in one way, beside those that are broken elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from cambist.plugin import Broadcast, Effects, Plan, Stake, Step, Units, UnsignedTx
from cambist.testing.memory import MemoryFamily, MemoryHarness, MemoryLendingChain
from tests.core.broken_senders import BROKEN

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
    if not issubclass(broken, MemoryFamily):
        return MemoryHarness.lending(broken)

    class BrokenChain(MemoryLendingChain):
        def __init__(self, *args, **kwargs) -> None:
            super().__init__(*args, family=broken(), **kwargs)

    return MemoryHarness.lending(BrokenChain)


# Transactions that expire.


@caught_by("test_equal_steps_are_two_transactions")
class Forgetful(MemoryLendingChain):
    async def prepare(self, steps) -> Sequence[UnsignedTx]:
        self._prepared_count = 0
        return await super().prepare(steps)


@caught_by("test_what_was_lost_is_dead_when_its_last_block_is_final")
class Impatient(MemoryLendingChain):
    async def expired(self, txs) -> Sequence[bool]:
        return [tx.valid_until < self.seen_time() and not self.is_mined(tx.tx_id) for tx in txs]


@caught_by("test_what_was_mined_is_never_dead")
class FailedIsDead(MemoryLendingChain):
    async def expired(self, txs) -> Sequence[bool]:
        dead = await super().expired(txs)
        states = [status.state for status in await self.transactions([tx.tx_id for tx in txs])]
        return [one or state == "reverted" for one, state in zip(dead, states, strict=True)]


@caught_by("test_what_is_hidden_is_not_dead")
class AsksByName(MemoryLendingChain):
    async def expired(self, txs) -> Sequence[bool]:
        states = [status.state for status in await self.transactions([tx.tx_id for tx in txs])]
        return [tx.valid_until < self.seen_time() and state == "unknown" for tx, state in zip(txs, states, strict=True)]


@caught_by("test_what_a_late_block_holds_is_not_dead")
class TakesItsTimeLightly(MemoryLendingChain):
    def _dated(self, step, sequence, valid_until) -> UnsignedTx:
        unsigned = super()._dated(step, sequence, valid_until + 3600)
        return replace(unsigned, valid_until=valid_until)

    async def expired(self, txs) -> Sequence[bool]:
        return [tx.valid_until < self.seen_time() for tx in txs]


@caught_by("test_what_a_reorg_took_back_is_dead_in_its_time")
class NeverForgets(MemoryLendingChain):
    def reorg(self, depth, **kwargs) -> None:
        mined = dict(self._mined)
        super().reorg(depth, **kwargs)
        self._mined |= mined


@caught_by("test_what_is_dead_stays_dead")
class Welcoming(MemoryLendingChain):
    async def broadcast(self, txs) -> Sequence[Broadcast]:
        await super().broadcast(txs)
        return [Broadcast(state="accepted") for _ in txs]


@caught_by("test_several_are_told_apart")
class AllOrNone(MemoryLendingChain):
    async def expired(self, txs) -> Sequence[bool]:
        dead = await super().expired(txs)
        return [all(dead)] * len(dead)


# Addresses that need activation.


class ChangedSteps(MemoryLendingChain):
    """Whose plans have other steps."""

    async def plan(self, intents, **more) -> Sequence[Plan]:
        plans = await super().plan(intents, **more)
        return [replace(plan, step=plan.step and self.change(plan.step)) for plan in plans]

    def change(self, step: Step) -> Step:
        raise NotImplementedError


@caught_by("test_who_holds_only_tokens_is_planned_what_activates_him")
class NeedsNothing(ChangedSteps):
    def change(self, step):
        return replace(step, fee=replace(step.fee, reserve=Units(0)))


@caught_by("test_the_reserve_alone_activates")
class NeverEnough(ChangedSteps):
    def change(self, step):
        return replace(step, fee=replace(step.fee, reserve=Units(self.accounts.balance(step.sender, None) + 1)))


@caught_by("test_who_activates_an_address_pays_for_it")
class AlwaysNew(ChangedSteps):
    def change(self, step):
        return replace(step, fee=replace(step.fee, extra=Units(self.rules.activation_price)))


@caught_by("test_a_token_activates_nobody")
class TokensActivate(ChangedSteps):
    def change(self, step):
        held = self.accounts.balance(step.to_address, self.info.tokens[1].contract)
        return replace(step, fee=replace(step.fee, extra=Units(0))) if held else step


# Stakes.


@caught_by("test_a_sponsor_with_a_stake_is_planned_to_lend")
class Stingy(MemoryLendingChain):
    async def plan(self, intents, *, sponsor, promised=None) -> Sequence[Plan]:
        del sponsor
        return await super().plan(intents, sponsor=None, promised=promised)


@caught_by("test_no_more_is_lent_than_there_is")
class LendsWhatItHasNot(MemoryLendingChain):
    async def plan(self, intents, **more) -> Sequence[Plan]:
        plans = await super().plan(intents, **more)
        transfers = [replace(intent, action="transfer") for intent in intents]
        return [
            plan if plan.refused is None else instead
            for plan, instead in zip(plans, await super().plan(transfers, **more), strict=True)
        ]


@caught_by("test_several_plans_share_what_is_covered")
class EachAlone(MemoryLendingChain):
    async def plan(self, intents, **more) -> Sequence[Plan]:
        plans: list[Plan] = []
        for intent in intents:
            plans += await super().plan([intent], **more)
        return plans


@caught_by("test_what_is_under_way_has_its_cover")
class BreaksPromises(MemoryLendingChain):
    async def plan(self, intents, *, sponsor, promised=None) -> Sequence[Plan]:
        del promised
        return await super().plan(intents, sponsor=sponsor)


class ChangedStakes(MemoryLendingChain):
    """Which tells something else of stakes."""

    async def stake(self, address) -> Stake:
        return self.change(await super().stake(address))

    def change(self, stake: Stake) -> Stake:
        raise NotImplementedError


@caught_by("test_a_loan_covers_the_fee_and_is_given_back")
class GivesAway(ChangedStakes):
    def change(self, stake):
        return replace(stake, staked=Units(stake.staked - stake.lent))


@caught_by("test_what_was_used_can_be_lent_again_in_time")
class NeverTired(ChangedStakes):
    def change(self, stake):
        return replace(stake, lendable=Units(stake.staked - stake.lent))


@caught_by("test_staking_and_lending_lose_nothing_but_fees")
class OutOfSight(ChangedStakes):
    def change(self, stake):
        return replace(stake, leaving=Units(0))


@caught_by("test_what_was_unstaked_comes_back_in_time")
class AtOnce(ChangedStakes):
    def change(self, stake):
        return replace(stake, leaving=Units(0), withdrawable=Units(stake.leaving + stake.withdrawable))


@caught_by("test_who_never_staked_has_no_stake")
class Starter(ChangedStakes):
    def change(self, stake):
        return replace(stake, staked=Units(stake.staked + 1))


@caught_by("test_what_a_payload_does_with_a_stake_is_read")
class LendsToNobody(MemoryFamily):
    def effects(self, chain, payload) -> Effects:
        effects = super().effects(chain, payload)
        return replace(effects, staking=effects.staking and replace(effects.staking, borrower=None))
