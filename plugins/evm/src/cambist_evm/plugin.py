"""The entry point: what ``cambist.plugins`` finds under the name ``evm``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import ClassVar

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
from cambist_chainkit.pool import EndpointPool

from .chain import EvmChain
from .config import ChainSetup, EvmConfig, changed, resolve, setup_of
from .endpoint import Endpoint
from .family import EvmFamily
from .rpc import JsonRpc


class EvmPlugin(ChainPlugin[EvmConfig]):
    """Every chain that speaks Ethereum's protocol. A chain is present exactly when it is configured."""

    name: ClassVar[str] = "evm"
    api_version: ClassVar[int] = 1
    config_type = EvmConfig

    def families(self) -> Sequence[AddressFamily]:
        return [EvmFamily()]

    def chains(self, config: EvmConfig) -> Sequence[ChainInfo]:
        return [setup.info for setup in resolve(config)]

    def setup(self, config: EvmConfig, chain: str) -> NetworkSetup:
        return setup_of(config, chain)

    def changed(self, config: EvmConfig, chain: str, setup: NetworkSetup) -> EvmConfig:
        return changed(config, chain, setup)

    @asynccontextmanager
    async def connect(self, config: EvmConfig, context: PluginContext) -> AsyncIterator[Sequence[Chain]]:
        """Open one HTTP session for all live chains."""
        live = [setup for setup in resolve(config) if setup.info.availability == "live"]
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(open_session(context))
            chains = []
            for setup in live:
                endpoints = _endpoints(setup, session, context)
                pool = EndpointPool(setup.info.id, endpoints, context, lag_blocks_max=setup.lag_blocks_max)
                stack.push_async_callback(pool.close)
                chains.append(EvmChain(setup, pool, context))
            yield chains


def _endpoints(setup: ChainSetup, session: aiohttp.ClientSession, context: PluginContext) -> Sequence[Endpoint]:
    return [
        Endpoint(
            JsonRpc(
                HttpClient(
                    session,
                    url,
                    name,
                    now=context.now,
                    timeout_s=setup.config.request_timeout_ms / 1000,
                    response_bytes_max=setup.config.response_bytes_max,
                ),
                batch_calls_max=setup.config.batch_calls_max,
            ),
            setup,
            context.monotonic,
        )
        for url, name in zip(setup.config.rpc_urls, endpoint_names(setup.config.rpc_urls), strict=True)
    ]


@hookimpl
def register_chains() -> Sequence[AnyChainPlugin]:
    return [EvmPlugin()]
