"""The entry point: what ``cambist.plugins`` finds under the name ``swap_1inch``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import ClassVar

from cambist.plugin import AnySwapPlugin, CallReader, PluginContext, SwapPlugin, SwapProvider, hookimpl
from cambist_chainkit.providers import provider_client

from .api import OneInchApi, setup
from .codec import web3_codec
from .config import OneInchConfig, check_api, routers
from .provider import OneInchSwaps
from .reader import OneInchReader


class OneInchPlugin(SwapPlugin[OneInchConfig]):
    """Swaps over 1inch, on every chain for which a router is known."""

    name: ClassVar[str] = "swap_1inch"
    api_version: ClassVar[int] = 1
    config_type = OneInchConfig

    def readers(self, config: OneInchConfig) -> Sequence[CallReader]:
        return [OneInchReader(routers(config), web3_codec())]

    @asynccontextmanager
    async def connect(self, config: OneInchConfig, context: PluginContext) -> AsyncIterator[Sequence[SwapProvider]]:
        """Open one HTTP session."""
        check_api(config)
        pinned = routers(config)
        async with provider_client(setup(config), context) as client:
            yield [
                OneInchSwaps(
                    OneInchApi(client, config.version),
                    pinned,
                    cache(lambda: OneInchReader(pinned, web3_codec())),
                    # Without it, simple routes come as unoswap, which cannot be read. 6.0 does not know it.
                    compatibility=config.version != "6.0",
                    monotonic=context.monotonic,
                    quote_ttl_s=config.quote_ttl_ms / 1000,
                )
            ]


@hookimpl
def register_swap_providers() -> Sequence[AnySwapPlugin]:
    return [OneInchPlugin()]
