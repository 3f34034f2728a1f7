"""The entry point: the bridge, and the reader of its calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from cambist.plugin import AnyBridgePlugin, BridgePlugin, BridgeProvider, CallReader, PluginContext, hookimpl
from cambist_chainkit.providers import provider_client

from .bridge import AcrossBridge
from .config import AcrossConfig
from .legacy import LegacyApi, setup
from .reader import AcrossReader


class AcrossPlugin(BridgePlugin[AcrossConfig]):
    """One bridge, ``across``."""

    name = "bridge_across"
    api_version = 1
    config_type = AcrossConfig

    def readers(self, config: AcrossConfig) -> Sequence[CallReader]:
        """Return the reader of deposits. Imports the codec."""
        return [AcrossReader(config)]

    @asynccontextmanager
    async def connect(self, config: AcrossConfig, context: PluginContext) -> AsyncIterator[Sequence[BridgeProvider]]:
        """Open an HTTP session for Across's servers."""
        async with provider_client(setup(config), context) as client:
            yield [AcrossBridge(LegacyApi(client, config.integrator_id), config, context.now)]


@hookimpl
def register_bridge_providers() -> Sequence[AnyBridgePlugin]:
    return [AcrossPlugin()]
