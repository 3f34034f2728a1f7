"""What collecting would cost, as the chain says, and what is remembered of it: nodes count each question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from cambist.domain.collections import Cost, estimate_holds_for
from cambist.domain.money import value_of
from cambist.plugin import FeeAboveCeilingError, Intent, Plan, Token, Units
from cambist.plugin.text import printable
from cambist.services.addresses.wallets import OwnAddress
from cambist.services.pricing.prices import RateUnavailableError
from cambist.services.sending.context import EngineContext

from .uncollected import Key, Uncollected

REFUSAL_MAX = 400
"""Characters that are kept of why a chain refuses, or of why a check has failed."""
REMEMBERED_MAX = 100_000
"""Estimates that are kept: of more, those that were asked for last."""


class Estimate(Struct, frozen=True, kw_only=True):
    """A chain's answer: the most that a collection may cost, in native units, or why it would not have it.

    ``borrows``: it is of a stake that others may need, too.
    """

    fee: Units = Units(0)
    refused: str | None = None
    above_ceiling: bool = False
    borrows: bool = False


class _Remembered(Struct, frozen=True):
    estimate: Estimate
    units: Units
    until: datetime


class Estimates:
    """Asks a chain what collections would cost, and remembers what it said of those that stay where they are."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._kept: dict[Key, _Remembered] = {}

    async def ask(
        self, found: Sequence[Uncollected], wallets: Mapping[int, OwnAddress], station: str, now: datetime
    ) -> dict[Key, Estimate]:
        """Return the answers, planned together; ``wallets`` has the main wallet of each merchant. Raises ChainError."""
        intents = [
            Intent(source=one.address, to_address=wallets[one.merchant_pk].address, token=one.token, amount=one.units)
            for one in found
        ]
        try:
            plans = await self._context.chain.plan(intents, sponsor=station)
        except FeeAboveCeilingError:
            # Nothing is remembered: prices that high may be gone the next time.
            return {one.key: Estimate(above_ceiling=True) for one in found}
        answers = {one.key: _estimate(plan) for one, plan in zip(found, plans, strict=True)}
        for one in found:
            self._kept.pop(one.key, None)
            until = now + estimate_holds_for(one.holding, now)
            self._kept[one.key] = _Remembered(answers[one.key], one.units, until)
        while len(self._kept) > REMEMBERED_MAX:
            del self._kept[next(iter(self._kept))]
        return answers

    def remembered(self, one: Uncollected, now: datetime) -> Estimate | None:
        """Return what the chain last said, if that was lately and of as much."""
        kept = self._kept.get(one.key)
        return None if kept is None or kept.units != one.units or kept.until <= now else kept.estimate

    def forget(self, one: Uncollected) -> None:
        """Remember nothing of what is collected: what comes there next is something else."""
        self._kept.pop(one.key, None)

    async def cost(self, one: Uncollected, estimate: Estimate) -> Cost:
        """Return an answer in US dollars, at the present prices."""
        if estimate.above_ceiling:
            return Cost(above_ceiling=True)
        value = await self._value(one.token, one.units)
        native = self._context.chain_scope.info.native
        fee = None if estimate.refused is not None else await self._value(native, estimate.fee)
        return Cost(value=value, fee=fee, refused=estimate.refused)

    async def _value(self, token: Token, units: int) -> Decimal | None:
        try:
            rate = await self._context.rates.rate(token.symbol, "usd")
        except RateUnavailableError:
            return None
        return value_of(units, token.decimals, rate.value)


def _estimate(plan: Plan) -> Estimate:
    """Return the fee, and what it costs to bring it there."""
    if plan.above_ceiling is not None:
        return Estimate(above_ceiling=True)
    if plan.refused is not None:
        # What a contract or a plugin says is stored and shown.
        return Estimate(refused=printable(plan.refused)[:REFUSAL_MAX])
    fee = plan.sponsoring + (0 if plan.step is None else plan.step.fee.cost_max)
    return Estimate(fee=Units(fee), borrows=plan.loan > 0)
