"""The kit for chains that sweep: what it brings, what it costs whom, and how its addresses are paid afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from coincurve import PrivateKey

from cambist.plugin import Intent, SweepingChain, SweepPlan, Token, TxStatus
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness, Sender

from .helpers import a_token, needs
from .sends import an_intent, mined, native_of, sealed

AMOUNT = 7_654_321
SOURCES_COUNT = 3


class SweepConformance(Conformance):
    """Subclass it beside ChainConformance, with the same fixture ``harness``."""

    @pytest.fixture
    async def harness(self) -> ChainHarness:
        """Return the network under the kit's control."""
        raise NotImplementedError

    async def test_a_sweep_brings_all_and_its_addresses_pay_nothing(self, harness: ChainHarness) -> None:
        """From addresses that never held native coin; the sponsor pays no more than was planned."""
        sponsor, sources, token = await _ready(harness)
        held, to_address = await native_of(harness, sponsor), harness.fresh_address()
        plan = await _planned(harness, sponsor, _intents(sources, token, to_address))
        status = await _swept(harness, sponsor, sources, plan)
        assert status.state == "succeeded"
        assert plan.sweep is not None
        assert 0 < (status.fee or 0) <= plan.sweep.fee.cost_max
        assert await harness.chain.balance(to_address, token) == AMOUNT * len(sources)
        assert await native_of(harness, sponsor) == held - (status.fee or 0)
        assert [await harness.chain.balance(one.address, token) for one in sources] == [0] * len(sources)

    async def test_who_was_swept_is_paid_and_swept_again(self, harness: ChainHarness) -> None:
        """Transfers arrive as they did before, for the same fee: whoever pays again does not know of the sweep."""
        sponsor, sources, token = await _ready(harness)
        native, to_address = harness.chain.info.native, harness.fresh_address()
        for times in (1, 2):
            plan = await _planned(harness, sponsor, _intents(sources, token, to_address))
            assert (await _swept(harness, sponsor, sources, plan)).state == "succeeded"
            for one in sources:
                await harness.transfer(native, one.address, AMOUNT)
                await harness.transfer(token, one.address, AMOUNT)
            await harness.mine()
            assert [await native_of(harness, one) for one in sources] == [times * AMOUNT] * len(sources)
            assert [await harness.chain.balance(one.address, token) for one in sources] == [AMOUNT] * len(sources)
        for one in sources:
            sweep = await _planned(harness, sponsor, _intents([one], native, to_address, 2 * AMOUNT))
            assert (await _swept(harness, sponsor, sources, sweep)).state == "succeeded"
        assert [await native_of(harness, one) for one in sources] == [0] * len(sources)

    async def test_the_signer_is_told_who_gets_power(self, harness: ChainHarness) -> None:
        """It is what the operator was told to allow; and an authorization does nothing else."""
        sponsor, sources, token = await _ready(harness)
        chain = _sweeping(harness)
        made = chain.sweeper_deployment(sponsor.address)
        assert made.address == chain.info.sweeper
        plan = await _planned(harness, sponsor, _intents(sources, token, harness.fresh_address()))
        assert plan.sweep is not None
        assert {one.address for one in plan.sweep.authorizations} == {one.address for one in sources}
        for one in plan.sweep.authorizations:
            effects = harness.family.effects(chain.info, one.payload)
            assert effects.delegate == (made.delegate or made.address)
            assert (effects.movements, effects.fee_max, effects.allowance, effects.call) == ((), 0, None, None)

    async def test_nobody_else_can_have_it_swept(self, harness: ChainHarness) -> None:
        _, sources, token = await _ready(harness)
        chain, stranger = _sweeping(harness), await harness.sender((harness.chain.info.native, 10**18))
        wanted = _intents(sources, token, harness.fresh_address())
        plan = await chain.plan_sweep(wanted, sponsor=stranger.address)
        assert plan.sweep is None
        assert None not in plan.refused


def _sweeping(harness: ChainHarness) -> SweepingChain:
    chain = harness.chain
    assert isinstance(chain, SweepingChain)
    return chain


async def _ready(harness: ChainHarness) -> tuple[Sender, Sequence[Sender], Token]:
    needs(harness, "sweeping")
    token = a_token(harness)
    return await harness.sweep_sponsor(), [await harness.sender((token, AMOUNT)) for _ in range(SOURCES_COUNT)], token


def _intents(sources: Sequence[Sender], token: Token, to_address: str, amount: int = AMOUNT) -> Sequence[Intent]:
    return [an_intent(one, to_address, token, amount) for one in sources]


async def _planned(harness: ChainHarness, sponsor: Sender, wanted: Sequence[Intent]) -> SweepPlan:
    plan = await _sweeping(harness).plan_sweep(wanted, sponsor=sponsor.address)
    assert plan.refused == (None,) * len(wanted)
    return plan


async def _swept(harness: ChainHarness, sponsor: Sender, sources: Sequence[Sender], plan: SweepPlan) -> TxStatus:
    assert plan.sweep is not None
    keys = {one.address: PrivateKey(one.private_key) for one in sources}
    agreed = [
        keys[one.address].sign_recoverable(harness.family.digest(one.payload), hasher=None)
        for one in plan.sweep.authorizations
    ]
    sequence = await harness.chain.next_sequence(sponsor.address)
    unsigned = await _sweeping(harness).prepare_sweep(plan.sweep, sequence, agreed)
    return await mined(harness, sealed(harness, unsigned, sponsor))
