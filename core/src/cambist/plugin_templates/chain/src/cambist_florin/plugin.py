"""The entry point: what ``cambist.plugins`` finds under the name ``florin``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar

from cambist.plugin import AddressFamily, AnyChainPlugin, Chain, ChainInfo, ChainPlugin, PluginContext, hookimpl
from cambist_chainkit.http import HttpClient, endpoint_names, open_session
from cambist_chainkit.pool import EndpointPool

from .chain import FlorinChain
from .config import FlorinConfig, chain_info
from .endpoint import Endpoint
from .family import FlorinFamily

RESPONSE_BYTES_MAX = 10_000_000
LAG_BLOCKS_MAX = 3


class FlorinPlugin(ChainPlugin[FlorinConfig]):
    """One network, behind any number of endpoints."""

    name: ClassVar[str] = "florin"
    api_version: ClassVar[int] = 1
    config_type = FlorinConfig

    def families(self) -> Sequence[AddressFamily]:
        """Return the one family."""
        return [FlorinFamily()]

    def chains(self, config: FlorinConfig) -> Sequence[ChainInfo]:
        """Return the one chain."""
        return [chain_info(config)]

    @asynccontextmanager
    async def connect(
        self,
        config: FlorinConfig,
        context: PluginContext,
    ) -> AsyncIterator[Sequence[Chain]]:
        """Open one HTTP session, where there is anybody to ask."""
        info = chain_info(config)
        if info.availability != "live":
            yield []
            return
        async with open_session(context) as session:
            clients = [
                HttpClient(
                    session,
                    url,
                    name,
                    now=context.now,
                    timeout_s=config.request_timeout_ms / 1000,
                    response_bytes_max=RESPONSE_BYTES_MAX,
                )
                for url, name in zip(config.rpc_urls, endpoint_names(config.rpc_urls), strict=True)
            ]
            endpoints = [Endpoint(client) for client in clients]
            pool = EndpointPool(info.id, endpoints, context, lag_blocks_max=LAG_BLOCKS_MAX)
            try:
                yield [FlorinChain(config, pool)]
            finally:
                await pool.close()


@hookimpl
def register_chains() -> Sequence[AnyChainPlugin]:
    """Bring the chain."""
    return [FlorinPlugin()]
