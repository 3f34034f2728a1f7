"""The entry point: what ``cambist.plugins`` finds under the name ``florin``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar

from cambist.plugin import AnyBridgePlugin, BridgePlugin, BridgeProvider, CallReader, PluginContext, hookimpl
from cambist_chainkit.providers import ProviderSetup, provider_client

from .config import FlorinConfig, contracts_of
from .provider import FlorinBridge
from .reader import FlorinReader
from .service import REFUSED, Service

ANSWER_BYTES_MAX = 100_000


class FlorinPlugin(BridgePlugin[FlorinConfig]):
    """One provider, and the reader of its calls."""

    name: ClassVar[str] = "florin"
    api_version: ClassVar[int] = 1
    config_type = FlorinConfig

    def readers(self, config: FlorinConfig) -> Sequence[CallReader]:
        """Return the reader. The signer asks, which talks to nobody."""
        return [FlorinReader(contracts_of(config))]

    @asynccontextmanager
    async def connect(
        self,
        config: FlorinConfig,
        context: PluginContext,
    ) -> AsyncIterator[Sequence[BridgeProvider]]:
        """Open one HTTP session; nobody is asked yet."""
        reader = FlorinReader(contracts_of(config))
        setup = ProviderSetup(
            name="florin",
            table="plugins.florin",
            base_url=config.base_url,
            key=config.key,
            requests_per_second=config.requests_per_second,
            timeout_ms=config.timeout_ms,
            answer_bytes_max=ANSWER_BYTES_MAX,
            refusals=frozenset({REFUSED}),
        )
        async with provider_client(setup, context) as client:
            yield [FlorinBridge(Service(client), reader, context.now)]


@hookimpl
def register_bridge_providers() -> Sequence[AnyBridgePlugin]:
    """Bring the provider."""
    return [FlorinPlugin()]
