"""A plugin whose connections to prices and to swaps end by themselves; what is on one that ended answers no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal

from msgspec import Struct

from cambist.plugin import (
    AnyPricePlugin,
    AnySwapPlugin,
    Call,
    CallReader,
    ChainToken,
    ExchangeRequest,
    PluginContext,
    Price,
    PricePair,
    PricePlugin,
    PriceSource,
    PriceUnavailableError,
    ProviderUnavailableError,
    Quote,
    SwapPlugin,
    SwapProvider,
    Units,
    hookimpl,
)


class NoSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """There are none."""


class Connection:
    """``fails`` ends it. ``number`` counts those of its kind."""

    def __init__(self, number: int) -> None:
        self.fails = asyncio.Event()
        self.number = number

    async def run(self) -> None:
        await self.fails.wait()
        raise KeyError("result")


OPENED: list[Connection] = []
SWAPS_OPENED: list[Connection] = []


class EndingSource(PriceSource):
    """Its price is the number of its connection."""

    def __init__(self, name: str, connection: Connection) -> None:
        self.name = name  # type: ignore[misc]
        self.connection = connection

    async def prices(self, pairs: Collection[PricePair]) -> Mapping[PricePair, Price]:
        if self.connection.fails.is_set():
            raise PriceUnavailableError("the session is closed")
        return {pair: Price(value=Decimal(self.connection.number), observed_at=datetime.now(UTC)) for pair in pairs}


class EndingSwapper(SwapProvider):
    """What it offers is the number of its connection."""

    name = "ending"

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def supports(self, sells: ChainToken, buys: ChainToken) -> bool:
        del sells, buys
        return True

    async def quote(self, request: ExchangeRequest) -> Quote:
        del request
        if self.connection.fails.is_set():
            raise ProviderUnavailableError("the session is closed")
        units = Units(self.connection.number)
        return Quote(units=units, units_min=units)

    async def build(self, request: ExchangeRequest, units_min: Units) -> Call:
        raise NotImplementedError


@asynccontextmanager
async def _opened(before: list[Connection]) -> AsyncIterator[Connection]:
    """Give one more connection, whose work goes on for as long as it is open."""
    connection = Connection(len(before) + 1)
    before.append(connection)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(connection.run())
        yield connection
        running.cancel()


class EndingPrices(PricePlugin[NoSettings]):
    """Its two sources are on one connection."""

    name = "ending"
    api_version = 1
    config_type = NoSettings

    @asynccontextmanager
    async def connect(self, config: NoSettings, context: PluginContext) -> AsyncIterator[Sequence[PriceSource]]:
        del config, context
        async with _opened(OPENED) as connection:
            yield [EndingSource(name, connection) for name in ("ending", "beside")]


class EndingSwaps(SwapPlugin[NoSettings]):
    """The same, with one provider."""

    name = "ending"
    api_version = 1
    config_type = NoSettings

    @asynccontextmanager
    async def connect(self, config: NoSettings, context: PluginContext) -> AsyncIterator[Sequence[SwapProvider]]:
        del config, context
        async with _opened(SWAPS_OPENED) as connection:
            yield [EndingSwapper(connection)]

    def readers(self, config: NoSettings) -> Sequence[CallReader]:
        del config
        return []


@hookimpl
def register_price_sources() -> Sequence[AnyPricePlugin]:
    """Bring it."""
    return [EndingPrices()]


@hookimpl
def register_swap_providers() -> Sequence[AnySwapPlugin]:
    """Bring it."""
    return [EndingSwaps()]
