"""Reading usage, and what it costs."""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from cambist.domain.usage import Operation
from cambist.services.accounting import usage
from cambist.services.actor import Actor
from cambist.services.paging import LIMIT
from cambist_web.context import Web
from cambist_web.parameters import Limit, Page

from .schemas import CalculatorConfig, UsageList, calculator_config, system_credit, usage_view

OperationFilter = Annotated[Operation | None, QueryParameter(description="Records of this operation only.")]


class Usage(Controller):
    """What the merchant used, in the mode of the key."""

    tags = ("Usage",)

    @get("/", summary="List usage")
    async def list(
        self,
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        *,
        operation: OperationFilter = None,
        page: Page = 1,
        limit: Limit = LIMIT,
    ) -> UsageList:
        """Return what cost usage credits (CPT), newest first, and what is left of them."""
        settings = await web.platform.get()
        async with web.db.transaction() as conn:
            left = await usage.balance(conn, actor.merchant_pk, actor.mode)
            found = await usage.list_usage(
                conn, actor.merchant_pk, actor.mode, operation=operation, page=page, limit=limit
            )
        return UsageList(
            system_credit=system_credit(left, settings, actor.mode),
            usage=[usage_view(entry) for entry in found.items],
            page=page,
            limit=limit,
            total=found.total,
        )


class Calculator(Controller):
    """What using the gateway costs, for everybody."""

    tags = ("Discovery",)

    @get("/", summary="Read what usage credits cost")
    async def read(self, web: NamedDependency[Web]) -> CalculatorConfig:
        """Return chains, weights, tiers and packs: the data that usage is metered by. Up to a minute old."""
        return calculator_config(web.gateway.registry, await web.calculator_settings.get())
