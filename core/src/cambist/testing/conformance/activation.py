"""Activation: addresses that can send nothing before they were sent native coin, and what becomes of their money."""

from __future__ import annotations

from cambist.plugin import Units
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness

from .helpers import a_token, needs, some
from .sends import funded, mined, native_of, planned, signed, told


class ActivationConformance(Conformance):
    async def test_who_holds_only_tokens_is_planned_what_activates_him(self, harness: ChainHarness) -> None:
        """Sent just what the step needs, the address can send, and keeps the reserve."""
        needs(harness, "activation")
        native, token = harness.chain.info.native, a_token(harness)
        sender = await harness.sender((token, some(harness)))
        step = await planned(harness, sender, token, some(harness))
        assert 0 < step.fee.reserve < step.native_needed
        assert (await told(harness, await signed(harness, sender, step))).state == "unfunded"
        await harness.transfer(native, sender.address, step.native_needed)
        await harness.mine()
        again = await planned(harness, sender, token, some(harness))
        assert again.fee.reserve == 0
        assert again.native_needed <= step.native_needed
        status = await mined(harness, await signed(harness, sender, again))
        assert status.state == "succeeded"
        assert await harness.chain.balance(step.to_address, token) + await harness.chain.balance(
            again.to_address, token
        ) == some(harness)
        assert await native_of(harness, sender) == step.native_needed - (status.fee or 0) >= step.fee.reserve

    async def test_the_reserve_alone_activates(self, harness: ChainHarness) -> None:
        """It is what is sent to an address whose fees somebody else covers."""
        needs(harness, "activation")
        native, token = harness.chain.info.native, a_token(harness)
        sender = await harness.sender((token, some(harness)))
        step = await planned(harness, sender, token, some(harness))
        await harness.transfer(native, sender.address, step.fee.reserve)
        await harness.mine()
        assert (await planned(harness, sender, token, some(harness))).fee.reserve == 0
        assert await native_of(harness, sender) == step.fee.reserve

    async def test_who_activates_an_address_pays_for_it(self, harness: ChainHarness) -> None:
        """As much as was planned and no more; the next transfer to it costs less."""
        needs(harness, "activation")
        sender, native = await funded(harness), harness.chain.info.native
        first = await planned(harness, sender, native, some(harness))
        assert first.fee.extra > 0
        paid = (await mined(harness, await signed(harness, sender, first))).fee
        second = await planned(harness, sender, native, some(harness), first.to_address)
        paid_next = (await mined(harness, await signed(harness, sender, second))).fee
        assert paid is not None
        assert paid_next is not None
        assert paid_next < paid <= first.fee.cost_max
        assert second.fee.cost_max < first.fee.cost_max
        assert await harness.chain.balance(first.to_address, native) == 2 * some(harness)

    async def test_a_token_activates_nobody(self, harness: ChainHarness) -> None:
        """Who received one still has to be activated, and whoever does it pays for it."""
        needs(harness, "activation")
        native, token = harness.chain.info.native, a_token(harness)
        sender, holder = await funded(harness), await harness.sender((token, some(harness)))
        to_holder = await planned(harness, sender, native, some(harness), holder.address)
        assert to_holder.fee.extra > 0
        assert (await planned(harness, holder, token, some(harness))).fee.reserve > 0
        await mined(harness, await signed(harness, sender, to_holder))
        assert (await planned(harness, sender, native, some(harness), holder.address)).fee.extra == 0
        assert (await planned(harness, holder, token, some(harness))).fee.reserve == 0
        assert await native_of(harness, holder) == Units(some(harness))
