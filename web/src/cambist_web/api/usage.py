"""Reading usage, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from msgspec import Struct

from cambist.domain.plans import Plan
from cambist.domain.usage import DEFAULT_CHAIN, ChainWeights, Operation, Pack, Tier
from cambist.registry import Registry
from cambist.services.accounting import usage
from cambist.services.accounting.usage import UsageView
from cambist.services.actor import Actor
from cambist.services.identity.plan_catalog import Offers
from cambist.services.listing import Period, Sort
from cambist.services.platform import PlatformSettings
from cambist_web.auth import key_routes, needs, project_routes, public_routes
from cambist_web.context import Limits, Web
from cambist_web.lists import Asked, TimeSort
from cambist_web.schemas import Answer, CursorPageAnswer

CURRENCY = "CPT"
OperationFilter = Annotated[Operation | None, QueryParameter(description="Records of this operation only.")]


class SystemCredit(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is left of a merchant's usage credits in one mode. Payouts are refused while `balance` is below `floor`."""

    balance: int
    floor: int
    currency: str
    mode: str


def system_credit(balance: int, settings: PlatformSettings, mode: str) -> SystemCredit:
    return SystemCredit(balance=balance, floor=settings.cpt.floor, currency=CURRENCY, mode=mode)


class UsageList(CursorPageAnswer, frozen=True, kw_only=True):
    """What was used, newest first, and what is left."""

    system_credit: SystemCredit
    usage: Sequence[UsageView]


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


class PlanOffer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A plan. `chains` are those that trackers may watch, null for every one.

    `maxWebhooks` counts active trackers in each mode, `maxAddresses` is for each of them, and `requestsPerMinute` for
    each API key, null where there is no limit. `cptPerMonth` are usage credits that a month includes; null is none.
    """

    plan_id: str
    name: str
    has_tracker: bool
    chains: Sequence[str] | None
    max_webhooks: int
    max_addresses: int
    requests_per_minute: int | None
    cpt_per_month: int | None
    price_usd: str | None


def plan_offer(plan: Plan, limits: Limits) -> PlanOffer:
    return PlanOffer(
        plan_id=plan.plan_id,
        name=plan.name,
        has_tracker=plan.has_tracker,
        chains=plan.chains,
        max_webhooks=plan.webhooks_max,
        max_addresses=plan.addresses_max,
        requests_per_minute=limits.of_key(plan.requests_per_minute).most or None,
        cpt_per_month=plan.cpt_per_month,
        price_usd=plan.price_usd,
    )


class CalculatorConfig(Answer, frozen=True, kw_only=True):
    """What a calculator of costs needs. The first of `plans` is everybody's who was given no other."""

    chains: Sequence[CalculatorChain]
    weights: CalculatorWeights
    tiers: Sequence[Tier]
    packs: Sequence[Pack]
    plans: Sequence[PlanOffer]


def calculator_config(registry: Registry, offers: Offers, limits: Limits) -> CalculatorConfig:
    settings = offers.settings
    weights = settings.cpt.weights
    return CalculatorConfig(
        chains=[
            CalculatorChain(chain=chain.id, name=chain.name, native_symbol=chain.native.symbol)
            for chain in registry.chains.values()
        ],
        weights=CalculatorWeights(
            chains={chain: weights.on(chain) for chain in (DEFAULT_CHAIN, *registry.chains)},
            tracker=weights.tracker,
            api_method=weights.api_method,
            webhook_delivery=weights.webhook_delivery,
        ),
        tiers=settings.cpt.tiers,
        packs=settings.cpt.packs,
        plans=[plan_offer(plan, limits) for plan in (offers.default, *offers.others)],
    )


class Usage(Controller):
    """What the merchant used, in the mode of the key."""

    tags = ("Usage",)

    @get("/", summary="List usage", opt=needs("read"))
    async def list(  # noqa: PLR0913  every query parameter is one
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        asked: NamedDependency[Asked],
        period: NamedDependency[Period],
        *,
        operation: OperationFilter = None,
        sort: TimeSort = Sort.NEWEST,
    ) -> Response[UsageList]:
        """Return what cost usage credits (CPT), and what is left of them."""
        owner, settings = (actor.merchant_pk, actor.mode), await web.platform.get()
        async with web.db.autocommit() as conn:
            left = await usage.balance(conn, *owner)
        return await asked.of(web, "usage", *owner, sort=sort, filters=(operation, period)).answer(
            UsageList,
            lambda conn, part: usage.list_usage(conn, *owner, part, operation=operation, period=period),
            system_credit=system_credit(left, settings, actor.mode),
        )


class Calculator(Controller):
    tags = ("Discovery",)

    @get("/", summary="Read what usage credits cost")
    async def read(self, web: NamedDependency[Web]) -> CalculatorConfig:
        """Return chains, weights, tiers, packs and plans: the data that usage is metered by. Up to a minute old."""
        return calculator_config(web.gateway.registry, await web.offers.get(), web.limits)


controllers = [
    key_routes("/api/merchant/usage", Usage),
    project_routes("/usage", Usage),
    public_routes("/api/public/cpt-calculator-config", Calculator),
]
