"""A price plugin whose connections end by themselves, and a source on one that ended has no price any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal

from msgspec import Struct

from cambist.plugin import (
    AnyPricePlugin,
    PluginContext,
    Price,
    PricePair,
    PricePlugin,
    PriceSource,
    PriceUnavailableError,
    hookimpl,
)

OPENED: list[EndingSource] = []


class NoSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """There are none."""


class EndingSource(PriceSource):
    """``fails`` ends its connection."""

    name = "ending"

    def __init__(self) -> None:
        self.fails = asyncio.Event()
        OPENED.append(self)

    async def prices(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        if self.fails.is_set():
            raise PriceUnavailableError("the session is closed")
        return {pair: Price(value=Decimal(len(OPENED)), observed_at=datetime.now(UTC)) for pair in pairs}


class EndingPrices(PricePlugin[NoSettings]):
    """Its background task fails when its source does."""

    name = "ending"
    api_version = 1
    config_type = NoSettings

    @asynccontextmanager
    async def connect(self, config: NoSettings, context: PluginContext) -> AsyncIterator[Sequence[PriceSource]]:
        del config, context
        source = EndingSource()

        async def run() -> None:
            await source.fails.wait()
            raise KeyError("result")

        async with asyncio.TaskGroup() as group:
            group.create_task(run())
            yield [source]


@hookimpl
def register_price_sources() -> Sequence[AnyPricePlugin]:
    """Bring it."""
    return [EndingPrices()]
