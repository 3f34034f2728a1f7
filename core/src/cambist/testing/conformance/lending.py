"""Lending: stakes whose use is lent, fees that are covered by it, and everything given back."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args

from msgspec.structs import replace

from cambist.plugin import Action, Intent, LendingChain, Plan, Stake, Staking, Token, TxStatus, Units
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness, Sender

from .helpers import a_token, needs
from .sends import an_intent, funded, mined, native_of, prepared, sealed, signed, step_of

AMOUNT = 7_890_123


class LendingConformance(Conformance):
    async def test_a_sponsor_with_a_stake_is_planned_to_lend(self, harness: ChainHarness) -> None:
        """The step then costs its sender less than without one; who has no stake is planned to lend nothing."""
        chain, sponsor, borrower, token = await _ready(harness)
        poor = await funded(harness)
        intent = _transfer(harness, borrower, token)
        lent = await _planned(chain, intent, sponsor)
        for other in (await _planned(chain, intent, None), await _planned(chain, intent, poor)):
            assert other.loan == 0
            assert step_of(lent).fee.cost_max < step_of(other).fee.cost_max
        assert 0 < lent.loan <= (await chain.stake(sponsor.address)).lendable

    async def test_a_loan_covers_the_fee_and_is_given_back(self, harness: ChainHarness) -> None:
        """What the plan promised comes true, step by step; in the end nothing is lent and the stake is whole."""
        chain, sponsor, borrower, token = await _ready(harness)
        before = await chain.stake(sponsor.address)
        promised = await _planned(chain, _transfer(harness, borrower, token), sponsor)
        await _act(harness, sponsor, "lend", borrower.address, promised.loan)
        during = await chain.stake(sponsor.address)
        assert (during.staked, during.lent) == (before.staked, before.lent + promised.loan)
        assert during.lendable <= before.lendable - promised.loan

        plan = await _planned(chain, _transfer(harness, borrower, token), sponsor)
        assert plan.loan == 0
        assert step_of(plan).fee.covered > 0
        assert step_of(plan).fee.cost_max <= step_of(promised).fee.cost_max
        held = await native_of(harness, borrower)
        status = await mined(harness, await signed(harness, borrower, step_of(plan)))
        assert status.state == "succeeded"
        assert status.fee == held - await native_of(harness, borrower) <= step_of(plan).fee.cost_max

        await _act(harness, sponsor, "reclaim", borrower.address, promised.loan)
        after = await chain.stake(sponsor.address)
        assert (after.staked, after.lent, after.total) == (before.staked, before.lent, before.total)
        left = step_of(await _planned(chain, _transfer(harness, borrower, token), None)).fee
        assert left.cost_max > step_of(plan).fee.cost_max

    async def test_what_was_used_can_be_lent_again_in_time(self, harness: ChainHarness) -> None:
        """All of it."""
        chain, sponsor, borrower, token = await _ready(harness)
        before = await chain.stake(sponsor.address)
        plan = await _planned(chain, _transfer(harness, borrower, token), sponsor)
        await _act(harness, sponsor, "lend", borrower.address, plan.loan)
        await mined(harness, await signed(harness, borrower, step_of(plan)))
        await _act(harness, sponsor, "reclaim", borrower.address, plan.loan)
        assert (await chain.stake(sponsor.address)).lendable < before.lendable
        await harness.ripen()
        assert (await chain.stake(sponsor.address)).lendable == before.lendable

    async def test_no_more_is_lent_than_there_is(self, harness: ChainHarness) -> None:
        """Nor by who has no stake, nor reclaimed than was lent; and a plan beside it goes on."""
        chain, sponsor, borrower, _ = await _ready(harness)
        native, lendable = chain.info.native, (await chain.stake(sponsor.address)).lendable
        poor = await funded(harness)
        await _act(harness, sponsor, "lend", borrower.address, lendable // 2)
        wanted = [
            an_intent(sponsor, borrower.address, native, lendable, "lend"),
            an_intent(sponsor, borrower.address, native, lendable // 2 + 1, "reclaim"),
            an_intent(sponsor, poor.address, native, _coin(native), "reclaim"),
            an_intent(sponsor, borrower.address, native, lendable // 2, "reclaim"),
        ]
        plans = await chain.plan(wanted, sponsor=sponsor.address)
        assert [(bool(plan.refused), plan.step is None) for plan in plans] == [*[(True, True)] * 3, (False, False)]
        assert (await _planned(chain, an_intent(poor, borrower.address, native, _coin(native), "lend"), poor)).refused

    async def test_several_plans_share_what_is_covered(self, harness: ChainHarness) -> None:
        """None of them is mined yet, so a loan for one does not cover two, and no stake is promised twice."""
        chain, sponsor, borrower, token = await _ready(harness)
        wanted = [_transfer(harness, borrower, token) for _ in range(2)]
        plan = await _planned(chain, wanted[0], sponsor)
        await _act(harness, sponsor, "lend", borrower.address, plan.loan)
        first, second = await chain.plan(wanted, sponsor=sponsor.address)
        assert first.loan == 0
        assert second.loan > 0 or step_of(second).fee.cost_max > step_of(first).fee.cost_max
        lendable = (await chain.stake(sponsor.address)).lendable
        many = await chain.plan([_transfer(harness, borrower, token) for _ in range(50)], sponsor=sponsor.address)
        assert sum(one.loan for one in many) <= lendable

    async def test_what_is_under_way_has_its_cover(self, harness: ChainHarness) -> None:
        """Where the gateway says what was promised already, it is not promised again."""
        chain, sponsor, borrower, token = await _ready(harness)
        wanted = _transfer(harness, borrower, token)
        plan = await _planned(chain, wanted, sponsor)
        await _act(harness, sponsor, "lend", borrower.address, plan.loan)
        free = step_of(await _planned(chain, wanted, None)).fee
        (busy,) = await chain.plan([wanted], sponsor=None, promised={borrower.address: free.covered})
        assert step_of(busy).fee.covered < free.covered
        assert step_of(busy).fee.cost_max > free.cost_max
        (idle,) = await chain.plan([wanted], sponsor=None, promised={borrower.address: 0})
        assert step_of(idle).fee.covered == free.covered
        assert step_of(idle).fee.cost_max >= free.cost_max

    async def test_staking_and_lending_lose_nothing_but_fees(self, harness: ChainHarness) -> None:
        """Balance, stake and what leaves it are one sum, whatever is done with them."""
        chain, sponsor, borrower, _ = await _ready(harness)
        before = await _worth(harness, chain, sponsor)
        held = await chain.stake(sponsor.address)
        coin, fees = _coin(chain.info.native), 0
        deeds: list[tuple[Action, str, int]] = [
            ("stake", sponsor.address, coin),
            ("lend", borrower.address, held.lendable // 2),
            ("reclaim", borrower.address, held.lendable // 2),
            ("unstake", sponsor.address, coin),
        ]
        for action, to_address, amount in deeds:
            fees += (await _act(harness, sponsor, action, to_address, amount)).fee or 0
            assert await _worth(harness, chain, sponsor) == before - fees
        after = await chain.stake(sponsor.address)
        assert (after.staked, after.lent, after.leaving) == (held.staked, held.lent, held.leaving + coin)

    async def test_what_was_unstaked_comes_back_in_time(self, harness: ChainHarness) -> None:
        """First it waits, and can be neither lent nor sent; then it is withdrawn, and is native coin again."""
        chain, sponsor, _, _ = await _ready(harness)
        native, staked = chain.info.native, (await chain.stake(sponsor.address)).staked
        amount = Units(staked // 2)
        await _act(harness, sponsor, "unstake", sponsor.address, amount)
        waiting = await chain.stake(sponsor.address)
        assert (waiting.staked, waiting.leaving, waiting.withdrawable) == (staked - amount, amount, 0)
        assert waiting.free_at is None or waiting.free_at.utcoffset() == timedelta(0)
        early = await _planned(chain, an_intent(sponsor, sponsor.address, native, amount, "withdraw"), sponsor)
        assert early.refused
        await harness.ripen()
        ripe = await chain.stake(sponsor.address)
        assert (ripe.staked, ripe.leaving, ripe.withdrawable, ripe.free_at) == (staked - amount, 0, amount, None)
        held = await native_of(harness, sponsor)
        status = await _act(harness, sponsor, "withdraw", sponsor.address, amount)
        assert await native_of(harness, sponsor) == held + amount - (status.fee or 0)
        after = await chain.stake(sponsor.address)
        assert (after.staked, after.total) == (ripe.staked, ripe.total - amount)

    async def test_what_a_payload_does_with_a_stake_is_read(self, harness: ChainHarness) -> None:
        """The signer sees action, amount and borrower, no movement, and what it may cost."""
        chain, sponsor, borrower, _ = await _ready(harness)
        step = step_of(await _planned(chain, _transfer(harness, sponsor, chain.info.native), None))
        for action in set(get_args(Action)) - {"transfer", "nothing", "approve", "call"}:
            lends = action in ("lend", "reclaim")
            to_address = borrower.address if lends else sponsor.address
            one = replace(step, action=action, to_address=to_address, amount=Units(AMOUNT))
            unsigned = await prepared(harness, sponsor, one)
            effects = harness.family.effects(chain.info, unsigned.payload)
            assert effects.movements == ()
            assert effects.staking is not None
            # A withdrawal takes all that there is, on some chains, and names no amount.
            amount = effects.staking.amount if action == "withdraw" else Units(AMOUNT)
            wanted = Staking(action=action, amount=amount, borrower=borrower.address if lends else None)
            assert effects.staking == wanted
            assert effects.tx_id == sealed(harness, unsigned, sponsor).tx_id

    async def test_who_never_staked_has_no_stake(self, harness: ChainHarness) -> None:
        """Which is no error, also where the address was never heard of."""
        chain, _, borrower, _ = await _ready(harness)
        assert await chain.stake(borrower.address) == Stake()
        assert await chain.stake(harness.fresh_address()) == Stake()


async def _ready(harness: ChainHarness) -> tuple[LendingChain, Sender, Sender, Token]:
    """Return a sponsor, and an active account that holds a token and next to nothing for fees."""
    needs(harness, "lending")
    assert isinstance(harness.chain, LendingChain), "a chain with the ability 'lending' is a LendingChain"
    token = a_token(harness)
    sponsor = await harness.sponsor()
    return harness.chain, sponsor, await harness.sender((harness.chain.info.native, 1), (token, 100 * AMOUNT)), token


def _transfer(harness: ChainHarness, sender: Sender, token: Token) -> Intent:
    return an_intent(sender, harness.fresh_address(), token, AMOUNT)


async def _planned(chain: LendingChain, intent: Intent, sponsor: Sender | None) -> Plan:
    (plan,) = await chain.plan([intent], sponsor=None if sponsor is None else sponsor.address)
    return plan


async def _act(harness: ChainHarness, sponsor: Sender, action: Action, to_address: str, amount: int) -> TxStatus:
    """Do something with the sponsor's stake, which must succeed."""
    assert isinstance(harness.chain, LendingChain)
    intent = an_intent(sponsor, to_address, harness.chain.info.native, amount, action)
    step = step_of(await _planned(harness.chain, intent, sponsor))
    assert (step.sender, step.to_address, step.amount, step.action) == (sponsor.address, to_address, amount, action)
    status = await mined(harness, await signed(harness, sponsor, step))
    assert status.state == "succeeded"
    return status


def _coin(native: Token) -> int:
    return int(10**native.decimals)


async def _worth(harness: ChainHarness, chain: LendingChain, sponsor: Sender) -> int:
    return await native_of(harness, sponsor) + (await chain.stake(sponsor.address)).total
