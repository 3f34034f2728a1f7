"""The entry point: what ``cambist.plugins`` finds under the name ``tron``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import ClassVar, Final

import aiohttp

from cambist.plugin import (
    AddressFamily,
    AnyChainPlugin,
    Chain,
    ChainInfo,
    ChainPlugin,
    NetworkSetup,
    PluginContext,
    hookimpl,
)
from cambist_chainkit.http import HttpClient, endpoint_names, open_session
from cambist_chainkit.pace import Pace
from cambist_chainkit.pool import EndpointPool

from .chain import TronChain
from .config import ChainSetup, TronConfig, resolve
from .endpoint import Endpoint
from .family import TronFamily
from .setups import changed, setup_of

KEY_HEADER: Final = "TRON-PRO-API-KEY"


class TronPlugin(ChainPlugin[TronConfig]):
    """TRON: always listed, and asked nothing while it has no endpoint."""

    name: ClassVar[str] = "tron"
    api_version: ClassVar[int] = 1
    config_type = TronConfig

    def families(self) -> Sequence[AddressFamily]:
        return [TronFamily()]

    def chains(self, config: TronConfig) -> Sequence[ChainInfo]:
        """Return the one chain, on whichever of its networks."""
        return [resolve(config).info]

    def setup(self, config: TronConfig, chain: str) -> NetworkSetup | None:
        _ = chain
        return setup_of(config)

    def changed(self, config: TronConfig, chain: str, setup: NetworkSetup) -> TronConfig:
        _ = chain
        return changed(config, setup)

    @asynccontextmanager
    async def connect(self, config: TronConfig, context: PluginContext) -> AsyncIterator[Sequence[Chain]]:
        """Open one HTTP session for all endpoints; none where there are none."""
        setup = resolve(config)
        if setup.info.availability != "live":
            yield []
            return
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(open_session(context))
            endpoints = _endpoints(setup, session, context)
            pool = EndpointPool(setup.info.id, endpoints, context, lag_blocks_max=setup.config.lag_blocks_max)
            stack.push_async_callback(pool.close)
            yield [TronChain(setup, pool, context)]


def _endpoints(setup: ChainSetup, session: aiohttp.ClientSession, context: PluginContext) -> Sequence[Endpoint]:
    asked = zip(setup.rpc_urls, endpoint_names(setup.rpc_urls), setup.api_keys, setup.paces, strict=True)
    return [
        Endpoint(
            HttpClient(
                session,
                url,
                name,
                now=context.now,
                timeout_s=setup.config.request_timeout_ms / 1000,
                response_bytes_max=setup.config.response_bytes_max,
                secret_headers={KEY_HEADER: key} if key else None,
            ),
            setup,
            Pace(pace, context.monotonic) if pace else None,
            context.monotonic,
        )
        for url, name, key, pace in asked
    ]


@hookimpl
def register_chains() -> Sequence[AnyChainPlugin]:
    return [TronPlugin()]
