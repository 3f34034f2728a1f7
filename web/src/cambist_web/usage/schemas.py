"""Answers about usage credits. They are whole numbers, and written as such."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from cambist.domain.usage import DEFAULT_CHAIN, ChainWeights, Pack, Tier, Weights
from cambist.registry import Registry
from cambist.services.accounting.usage import UsageEntry
from cambist.services.platform import PlatformSettings
from cambist_web.schemas import Answer, PageAnswer

CURRENCY = "CPT"


class SystemCredit(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is left of a merchant's usage credits in one mode. Payouts are refused while `balance` is below `floor`."""

    balance: int
    floor: int
    currency: str
    mode: str


def system_credit(balance: int, settings: PlatformSettings, mode: str) -> SystemCredit:
    return SystemCredit(balance=balance, floor=settings.cpt.floor, currency=CURRENCY, mode=mode)


class UsageView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Something that cost credits. `return` gave back what an operation cost that came to nothing."""

    operation: str
    chain: str | None
    reference: str
    amount: int
    created_at: datetime


class UsageList(PageAnswer, frozen=True, kw_only=True):
    """What was used, newest first, and what is left."""

    system_credit: SystemCredit
    usage: Sequence[UsageView]


def usage_view(entry: UsageEntry) -> UsageView:
    return UsageView(
        operation=entry.operation,
        chain=entry.chain,
        reference=entry.reference,
        amount=entry.amount,
        created_at=entry.created_at,
    )


class CalculatorChain(Struct, frozen=True, kw_only=True, rename="camel"):
    """A chain that something can be done on."""

    chain: str
    name: str
    native_symbol: str | None


class CalculatorWeights(Struct, frozen=True, kw_only=True, rename="camel"):
    """What everything costs. `chains` has `default`, and every listed chain with nothing left out."""

    chains: Mapping[str, ChainWeights]
    tracker: int
    api_method: int
    webhook_delivery: int


class CalculatorConfig(Answer, frozen=True, kw_only=True):
    """What a calculator of costs needs."""

    chains: Sequence[CalculatorChain]
    weights: CalculatorWeights
    tiers: Sequence[Tier]
    packs: Sequence[Pack]


def calculator_config(registry: Registry, settings: PlatformSettings) -> CalculatorConfig:
    return CalculatorConfig(
        chains=[
            CalculatorChain(chain=chain.id, name=chain.name, native_symbol=chain.native.symbol)
            for chain in registry.chains.values()
        ],
        weights=_weights([DEFAULT_CHAIN, *registry.chains], settings.cpt.weights),
        tiers=settings.cpt.tiers,
        packs=settings.cpt.packs,
    )


def _weights(chains: Sequence[str], weights: Weights) -> CalculatorWeights:
    return CalculatorWeights(
        chains={chain: weights.on(chain) for chain in chains},
        tracker=weights.tracker,
        api_method=weights.api_method,
        webhook_delivery=weights.webhook_delivery,
    )
