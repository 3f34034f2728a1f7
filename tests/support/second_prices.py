"""A price plugin with one source more: it says what its table says, of half a minute ago."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct

from cambist.plugin import (
    AnyPricePlugin,
    PluginContext,
    Price,
    PricePair,
    PricePlugin,
    PriceSource,
    hookimpl,
)

AGE_S = 40


class SecondConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices in dollars, by symbol."""

    usd: dict[str, str]


class SecondSource(PriceSource):
    """Always knows the same prices, and each is ``AGE_S`` old."""

    name = "second"

    def __init__(self, usd: Mapping[str, str], now: Callable[[], datetime]) -> None:
        self._usd, self._now = usd, now

    async def prices(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        seen = self._now() - timedelta(seconds=AGE_S)
        return {
            (symbol, fiat): Price(value=Decimal(self._usd[symbol]), observed_at=seen)
            for symbol, fiat in pairs
            if fiat == "usd" and symbol in self._usd
        }


class SecondPlugin(PricePlugin[SecondConfig]):
    """Brings the one source."""

    name = "second"
    api_version = 1
    config_type = SecondConfig

    @asynccontextmanager
    async def connect(self, config: SecondConfig, context: PluginContext) -> AsyncIterator[Sequence[PriceSource]]:
        yield [SecondSource(config.usd, context.now)]


@hookimpl
def register_price_sources() -> Sequence[AnyPricePlugin]:
    return [SecondPlugin()]
