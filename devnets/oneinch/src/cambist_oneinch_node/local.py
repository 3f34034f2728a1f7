"""A 1inch of one's own on a local chain: a market with real pools, and the API that sells there.

::

    async with AnvilProcess() as anvil, LocalOneInch(anvil.url, [pool]) as oneinch:
        config = OneInchConfig(key=oneinch.key, base_url=oneinch.url, chains={"local": ChainConfig(oneinch.router)})
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final, Self

import aiohttp

from . import amm
from .amm import Amm, Pool
from .api import Api
from .faults import Faults
from .rpc import Rpc

KEY: Final = "a-key-for-development"
REQUESTS_PER_SECOND: Final = 10


class LocalOneInch:
    """Deploys everything on an anvil that runs already, and answers on a loopback port.

    ``monotonic`` counts the seconds of the limit. Asking more than ``requests_per_second`` is answered with 429.
    """

    def __init__(  # noqa: PLR0913 - each is one property of it
        self,
        node_url: str,
        pools: Sequence[Pool] = (),
        *,
        key: str = KEY,
        requests_per_second: int = REQUESTS_PER_SECOND,
        port: int = 0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.key = key
        self.faults = Faults()
        self._node_url = node_url
        self._pools = pools
        self._requests_per_second = requests_per_second
        self._port = port
        self._monotonic = monotonic
        self._stack = AsyncExitStack()
        self._parts: tuple[Amm, Api, int] | None = None

    async def __aenter__(self) -> Self:
        """Deploy the contracts, fill the pools and start to listen."""
        async with AsyncExitStack() as stack:
            session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
            rpc = Rpc(await stack.enter_async_context(session), self._node_url)
            chain_id = await rpc.number("eth_chainId")
            market = await amm.deploy(rpc)
            for pool in self._pools:
                await market.add_pool(pool)
            api = Api(
                market, self.faults, chain_id=chain_id, key=self.key, port=self._port,
                requests_per_second=self._requests_per_second, monotonic=self._monotonic,
            )  # fmt: skip
            await api.start()
            stack.push_async_callback(api.stop)
            stack.callback(self.faults.close)
            self._parts = (market, api, chain_id)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop, and end requests that hang. The contracts stay."""
        await self._stack.aclose()

    async def add_pool(self, pool: Pool) -> None:
        """Add a pool, or liquidity to one. The tokens come from nowhere."""
        await self.amm.add_pool(pool)

    @property
    def amm(self) -> Amm:
        """The market."""
        return self._running[0]

    @property
    def url(self) -> str:
        """What ``base_url`` of the plugin is."""
        return self._running[1].url

    @property
    def router(self) -> str:
        """The contract that is called, and the only spender."""
        return self.amm.router

    @property
    def chain_id(self) -> int:
        return self._running[2]

    @property
    def calls(self) -> Counter[str]:
        """Requests by path."""
        return self._running[1].calls

    @property
    def limited(self) -> int:
        """How many requests were beyond the limit."""
        return self._running[1].limited

    @property
    def _running(self) -> tuple[Amm, Api, int]:
        if self._parts is None:
            raise RuntimeError("it is not running: use async with")
        return self._parts
