"""The entry point: what ``cambist.plugins`` finds under the name ``florin``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar

import aiohttp

from cambist.plugin import AnyPricePlugin, PluginContext, PricePlugin, PriceSource, hookimpl

from .config import FlorinConfig, check
from .source import FlorinSource


class FlorinPlugin(PricePlugin[FlorinConfig]):
    """One source."""

    name: ClassVar[str] = "florin"
    api_version: ClassVar[int] = 1
    config_type = FlorinConfig

    @asynccontextmanager
    async def connect(
        self,
        config: FlorinConfig,
        context: PluginContext,
    ) -> AsyncIterator[Sequence[PriceSource]]:
        """Open one HTTP session; nobody is asked yet."""
        check(config)
        headers = {"User-Agent": context.user_agent, "Accept": "application/json"}
        if config.api_key is not None:
            headers["Authorization"] = f"Bearer {config.api_key}"
        async with aiohttp.ClientSession(headers=headers) as session:
            timeout_s = config.timeout_ms / 1000
            yield [FlorinSource(session, config.url, timeout_s=timeout_s, now=context.now)]


@hookimpl
def register_price_sources() -> Sequence[AnyPricePlugin]:
    """Bring the source."""
    return [FlorinPlugin()]
