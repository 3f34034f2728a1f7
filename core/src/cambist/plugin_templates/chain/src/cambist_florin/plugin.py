"""The entry point: what ``cambist.plugins`` finds under the name ``florin``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar

from msgspec.structs import replace

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
from cambist_chainkit.tokens import own_tokens, table_of

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

    def setup(self, config: FlorinConfig, chain: str) -> NetworkSetup:
        """Return what the operator may change while the gateway runs."""
        _ = chain
        return NetworkSetup(
            endpoints=config.rpc_urls,
            quorum=config.quorum,
            tokens=own_tokens(chain_info(config).tokens, config.tokens),
        )

    def changed(self, config: FlorinConfig, chain: str, setup: NetworkSetup) -> FlorinConfig:
        """Put that into the table. A plugin of several networks leaves the others out."""
        _ = chain
        found = replace(config, rpc_urls=setup.endpoints, quorum=setup.quorum, tokens=table_of(setup.tokens))
        chain_info(found)
        return found

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
