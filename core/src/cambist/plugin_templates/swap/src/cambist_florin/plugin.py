"""The entry point: what ``cambist.plugins`` finds under the name ``florin``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar

from cambist.plugin import AnySwapPlugin, CallReader, PluginContext, SwapPlugin, SwapProvider, hookimpl
from cambist_chainkit.http import HttpClient, endpoint_names, open_session

from .config import FlorinConfig, contracts_of
from .provider import FlorinSwaps
from .reader import FlorinReader
from .service import Service

ANSWER_BYTES_MAX = 100_000


class FlorinPlugin(SwapPlugin[FlorinConfig]):
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
    ) -> AsyncIterator[Sequence[SwapProvider]]:
        """Open one HTTP session; nobody is asked yet."""
        reader = FlorinReader(contracts_of(config))
        async with open_session(context) as session:
            client = HttpClient(
                session,
                config.url.rstrip("/"),
                endpoint_names([config.url])[0],
                now=context.now,
                timeout_s=config.timeout_ms / 1000,
                response_bytes_max=ANSWER_BYTES_MAX,
                secret_headers=None if config.api_key is None else {"Authorization": f"Bearer {config.api_key}"},
            )
            yield [FlorinSwaps(Service(client), reader)]


@hookimpl
def register_swap_providers() -> Sequence[AnySwapPlugin]:
    """Bring the provider."""
    return [FlorinPlugin()]
