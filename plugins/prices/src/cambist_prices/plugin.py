"""The entry point: opens the sources that the operator's table names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp

from cambist.plugin import AnyPricePlugin, PluginContext, PricePlugin, PriceSource, hookimpl

from .coingecko import CoinGeckoSource
from .config import PricesConfig
from .kraken import KrakenSource
from .static import StaticSource


class PricesPlugin(PricePlugin[PricesConfig]):
    """Up to three sources: ``static``, ``coingecko``, ``kraken``."""

    name = "prices"
    api_version = 1
    config_type = PricesConfig

    @asynccontextmanager
    async def connect(self, config: PricesConfig, context: PluginContext) -> AsyncIterator[Sequence[PriceSource]]:
        """Open one HTTP session for the sources that need it."""
        headers = {"User-Agent": context.user_agent, "Accept": "application/json"}
        async with aiohttp.ClientSession(headers=headers) as session:
            sources: list[PriceSource] = []
            if config.static:
                sources.append(StaticSource(config.static, context.now))
            if config.coingecko is not None:
                sources.append(CoinGeckoSource(session, config.coingecko))
            if config.kraken is not None:
                sources.append(KrakenSource(session, config.kraken, context))
            yield sources


@hookimpl
def register_price_sources() -> Sequence[AnyPricePlugin]:
    return [PricesPlugin()]
