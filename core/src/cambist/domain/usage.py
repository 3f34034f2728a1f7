"""Usage credits (CPT): what costs how many, and what many of them cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

from .money import AmountError, parse_fiat

CREDITS_MAX = 10**12
"""Bound of every number of credits: far from what JSON readers can hold exactly, and every sum must fit, too."""

TIERS_MAX = 50
CHAINS_MAX = 500
DEFAULT_CHAIN = "default"
"""Stands in the weights for every chain that has none of its own."""

Credits = Annotated[int, Meta(ge=0, le=CREDITS_MAX)]
Weight = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Label = Annotated[str, Meta(min_length=1, max_length=64)]
Free = Annotated[int, Meta(ge=0, le=0)]
UsdText = Annotated[str, Meta(min_length=1, max_length=40)]


class Operation(StrEnum):
    """What is metered. The first seven have a weight on each chain."""

    PAYMENT = "payment"
    PAYOUT = "payout"
    REFUND = "refund"
    WITHDRAWAL = "withdrawal"
    COLLECTION = "collection"
    SWAP = "swap"
    BRIDGE = "bridge"
    WEBHOOK_DELIVERY = "webhook_delivery"
    API_METHOD = "api_method"
    TRACKER = "tracker"
    RETURN = "return"
    """Gives credits back: its rows count the other way, and have no weight of their own."""


class Group(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the settings; in JSON its fields are written as merchants are used to.

    What is stored under a name that is not known is not passed over: it may have been what restricts where money goes.
    """


class ChainWeights(Group, frozen=True, kw_only=True, omit_defaults=True):
    """What operations cost on one chain. None: as on other chains."""

    payment: Weight | None = None
    payout: Weight | None = None
    refund: Weight | None = None
    withdrawal: Weight | None = None
    collection: Weight | None = None
    swap: Weight | None = None
    bridge: Weight | None = None


USUAL = ChainWeights(payment=10, payout=50, refund=50, withdrawal=50, collection=50, swap=100, bridge=150)
"""What operations cost where the operator says nothing."""


class Weights(Group, frozen=True, kw_only=True):
    """What everything costs. ``chains`` holds ``default``, and what differs from it on single chains.

    Calls of the API cost nothing: most of them write nothing that a record could be committed with.
    """

    chains: Annotated[Mapping[str, ChainWeights], Meta(max_length=CHAINS_MAX)] = field(
        default_factory=lambda: {DEFAULT_CHAIN: USUAL}
    )
    tracker: Weight = 1
    api_method: Free = 0
    webhook_delivery: Weight = 1

    def of(self, operation: str, chain: str | None = None) -> int:
        """Return what one costs; 0 costs nothing and is not recorded. Raises ValueError for what is no operation."""
        match Operation(operation):
            case Operation.TRACKER:
                return self.tracker
            case Operation.API_METHOD:
                return self.api_method
            case Operation.WEBHOOK_DELIVERY:
                return self.webhook_delivery
            case Operation.RETURN:
                raise ValueError("what is given back has no weight of its own")
            case on_chain:
                return self._on_chain(on_chain, chain)

    def on(self, chain: str) -> ChainWeights:
        """Return what every operation costs on a chain, with nothing left out."""
        names = ChainWeights.__struct_fields__
        return ChainWeights(**{name: self._on_chain(Operation(name), chain) for name in names})

    def _on_chain(self, operation: Operation, chain: str | None) -> int:
        for weights in (self.chains.get(chain or DEFAULT_CHAIN), self.chains.get(DEFAULT_CHAIN)):
            weight: int | None = None if weights is None else getattr(weights, operation)
            if weight is not None:
                return weight
        usual: int = getattr(USUAL, operation)
        return usual


class Tier(Group, frozen=True, kw_only=True):
    """What credits cost, by how many are used. ``max_cpt`` belongs to the tier; None has no end."""

    name: Label
    min_cpt: Credits
    max_cpt: Credits | None
    price_per_10k_usd: UsdText = field(name="pricePer10kUsd")


class Pack(Group, frozen=True, kw_only=True):
    """Credits that are sold together."""

    name: Label
    cpt: Annotated[int, Meta(ge=1, le=CREDITS_MAX)]
    price_usd: UsdText


Tiers = Annotated[tuple[Tier, ...], Meta(max_length=TIERS_MAX)]
Packs = Annotated[tuple[Pack, ...], Meta(max_length=TIERS_MAX)]
Floor = Annotated[int, Meta(ge=-CREDITS_MAX, le=0)]

TIERS = (
    Tier(name="Starter", min_cpt=0, max_cpt=1_000_000, price_per_10k_usd="1.00"),
    Tier(name="Growth", min_cpt=1_000_001, max_cpt=10_000_000, price_per_10k_usd="0.80"),
    Tier(name="Scale", min_cpt=10_000_001, max_cpt=None, price_per_10k_usd="0.60"),
)
PACKS = (
    Pack(name="100k", cpt=100_000, price_usd="10.00"),
    Pack(name="1M", cpt=1_000_000, price_usd="95.00"),
    Pack(name="10M", cpt=10_000_000, price_usd="800.00"),
)


class CptSettings(Group, frozen=True, kw_only=True):
    """Everything about usage credits. ``floor`` is how far below zero a merchant may get before payouts are refused."""

    initial_allowance: Credits = 1_000_000
    floor: Floor = -100_000
    weights: Weights = field(default_factory=Weights)
    tiers: Tiers = TIERS
    packs: Packs = PACKS


def problem_of_tiers(tiers: Sequence[Tier]) -> tuple[str, str] | None:
    """Return which field of the tiers is wrong, and what is: they start at 0, ascend, and leave no gap."""
    begins = 0
    for number, tier in enumerate(tiers):
        path = f"[{number}]"
        if tier.min_cpt != begins:
            return f"{path}.minCpt", f"must be {begins}, so that the tiers leave no gap and do not overlap"
        if tier.max_cpt is None:
            if number + 1 < len(tiers):
                return f"{path}.maxCpt", "can be null in the last tier only"
        elif tier.max_cpt < tier.min_cpt:
            return f"{path}.maxCpt", "must not be less than minCpt"
        else:
            begins = tier.max_cpt + 1
        if (problem := _problem_of_usd(tier.price_per_10k_usd)) is not None:
            return f"{path}.pricePer10kUsd", problem
    return _problem_of_names([tier.name for tier in tiers])


def problem_of_packs(packs: Sequence[Pack]) -> tuple[str, str] | None:
    """Return which field of the packs is wrong, and what is."""
    for number, pack in enumerate(packs):
        if (problem := _problem_of_usd(pack.price_usd)) is not None:
            return f"[{number}].priceUsd", problem
    return _problem_of_names([pack.name for pack in packs])


def _problem_of_usd(text: str) -> str | None:
    try:
        parse_fiat(text, "usd")
    except AmountError as error:
        return str(error)
    return None


def _problem_of_names(names: Sequence[str]) -> tuple[str, str] | None:
    twice = next((number for number, name in enumerate(names) if name in names[:number]), None)
    return None if twice is None else (f"[{twice}].name", "is there twice")
