"""A chain in memory on which each account keeps coin for as long as it is there, as XRP's and Stellar's do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from cambist.plugin import Intent, Plan, Units
from cambist.testing.memory import MemoryChain


class ReservingChain(MemoryChain):
    """Plans it as ``reserve`` of each transaction; that somebody sends it all the same is not refused."""

    reserve = Units(10**19)

    async def plan(
        self, intents: Sequence[Intent], *, sponsor: str | None, promised: Mapping[str, int] | None = None
    ) -> Sequence[Plan]:
        plans = await super().plan(intents, sponsor=sponsor, promised=promised)
        return [self._keeping(plan) for plan in plans]

    def _keeping(self, plan: Plan) -> Plan:
        if plan.step is None:
            return plan
        return replace(plan, step=replace(plan.step, fee=replace(plan.step.fee, reserve=self.reserve)))
