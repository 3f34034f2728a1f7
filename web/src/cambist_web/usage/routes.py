"""Reading usage, and what it costs."""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from cambist.domain.usage import Operation
from cambist.services import usage
from cambist.services.api_keys import Actor
from cambist_web.context import Web

from .schemas import CalculatorConfig, UsageList, calculator_config, system_credit, usage_view

Page = Annotated[int, QueryParameter(ge=1, le=usage.PAGE_MAX)]
PageSize = Annotated[int, QueryParameter(ge=1, le=100)]
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
        limit: PageSize = 25,
    ) -> UsageList:
        """Return what cost usage credits (CPT), newest first, and what is left of them."""
        settings = await web.platform.get()
        async with web.db.transaction() as conn:
            left = await usage.balance(conn, actor.merchant_row, actor.mode)
            found, total = await usage.list_usage(
                conn, actor.merchant_row, actor.mode, operation=operation, page=page, limit=limit
            )
        return UsageList(
            system_credit=system_credit(left, settings, actor.mode),
            usage=[usage_view(entry) for entry in found],
            page=page,
            limit=limit,
            total=total,
        )


class Calculator(Controller):
    """What using the gateway costs, for everybody."""

    tags = ("Discovery",)

    @get("/", summary="Read what usage credits cost")
    async def read(self, web: NamedDependency[Web]) -> CalculatorConfig:
        """Return chains, weights, tiers and packs: the data that usage is metered by. Up to a minute old."""
        return calculator_config(web.gateway.registry, await web.calculator_settings.get())
