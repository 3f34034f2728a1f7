"""The gateway's conformance kit on the example service: what every provider of swaps promises, tested."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random

import pytest

from cambist.plugin import ChainInfo, ChainToken, ExchangeRequest, PluginContext, SwapProvider, Token, Units
from cambist.testing.conformance import ExchangeHarness, SwapConformance
from cambist_florin.config import FlorinConfig
from cambist_florin.plugin import FlorinPlugin
from cambist_florin.testing import CONTRACT, ExampleService

SENDER = "0x0A367B92CF0b037dfD89960eE832D56f7Fc15168"
RECIPIENT = "0x665D0698dbC8fB95AFC25C3A4d9cf280D87a585b"
THIEF = "0x8dd29Add9992F7006F4d0F57Bd9e468d6Cd32012"

COIN = Token(symbol="ETH", contract=None, decimals=18, label="Ether")
USDX = Token(symbol="USDX", contract="0x4fDe2AE17f20A2D4E6774f731bA8e889c7D948B4", decimals=6, label="Example dollar")
HERE, ELSEWHERE = (
    ChainInfo(id=name, name=name, family="evm", tokens=(COIN, USDX), confirmations=12, chain_id_num=number, is_evm=True)
    for name, number in (("here", 1), ("elsewhere", 2))
)

LIES: Mapping[str, Mapping[str, object]] = {
    "another contract": {"to": THIEF},
    "another recipient": {"recipient": THIEF},
    "more than was asked for": {"units": 10**30},
    "an output of one unit": {"units_min": 1},
    "another token": {"buys": THIEF},
    "another token that is taken": {"sells": THIEF},
    "native coin that nobody sells": {"value": "1"},
    "a function that nobody knows": {"data": "0xa9059cbb" + "00" * 160},
}


def request(sells: Token, buys: Token, units: int) -> ExchangeRequest:
    """Return what a merchant would ask for."""
    return ExchangeRequest(
        sells=ChainToken(chain=HERE, token=sells),
        buys=ChainToken(chain=HERE, token=buys),
        units=Units(units),
        sender=SENDER,
        recipient=RECIPIENT,
        slippage_bps=100,
    )


class FlorinHarness(ExchangeHarness[SwapProvider]):
    """The example service, driven from inside."""

    lies = tuple(LIES)

    def __init__(self, provider: SwapProvider, config: FlorinConfig, service: ExampleService) -> None:
        self.provider = provider
        (self.reader,) = FlorinPlugin().readers(config)
        self.chains = {chain.id: chain for chain in (HERE, ELSEWHERE)}
        self.requests = [request(USDX, COIN, 5_000_003), request(COIN, USDX, 10**18 + 1)]
        self.unsupported = (ChainToken(chain=HERE, token=USDX), ChainToken(chain=ELSEWHERE, token=USDX))
        self._service = service

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """Answer nothing for a while."""
        self._service.silent = True
        yield
        self._service.silent = False

    @asynccontextmanager
    async def lying(self, lie: str) -> AsyncIterator[None]:
        """Build calls that are not what was asked for, for a while."""
        self._service.lies = LIES[lie]
        yield
        self._service.lies = {}


class TestFlorinSwaps(SwapConformance):
    """Everything that a provider of swaps promises."""

    @pytest.fixture
    async def harness(self) -> AsyncIterator[ExchangeHarness[SwapProvider]]:
        """Run a service of its own for each test, and connect to it as the gateway does."""
        context = PluginContext(
            now=lambda: datetime.now(UTC), monotonic=time.monotonic, random=Random(1), user_agent="tests"
        )
        async with ExampleService(time.time) as service:
            contracts = {"here": CONTRACT}
            config = FlorinConfig(base_url=service.url, requests_per_second=1000, contracts=contracts)
            async with FlorinPlugin().connect(config, context) as (provider,):
                yield FlorinHarness(provider, config, service)
