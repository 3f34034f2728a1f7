"""A connection that ends by itself is opened again, and whoever holds its chain goes on with the new one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from functools import partial
from importlib.metadata import EntryPoint

import pytest
from msgspec.structs import replace

from cambist.plugin import (
    ChainUnavailableError,
    PricePair,
    PriceSource,
    PriceUnavailableError,
    ProviderUnavailableError,
    SwapProvider,
)
from cambist.registry import ChainConnections, Registry, reopening
from cambist.registry.reopening import REOPEN_MAX_S, STABLE_S
from tests.support import ending_plugin, ending_prices
from tests.support.ending_plugin import EndingPlugin
from tests.support.node_treasury import plugin_context

TABLES = {"ending": {"chains": {"first": {}, "second": {}}}}
PAIR: PricePair = ("ETH", "usd")
FOUND = [EntryPoint(name="ending", value="tests.support.ending_plugin", group="cambist.plugins")]


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def connections(
    time: Time, tables: Mapping[str, object] = TABLES
) -> AsyncIterator[tuple[ChainConnections, EndingPlugin]]:
    registry, context, ended = Registry(tables, found=FOUND), plugin_context(time), set[str]()
    async with registry.connect_chains(context, ended=ended.add) as connected:
        found = ChainConnections(registry, context, connected, ended)
        try:
            yield found, ending_plugin.PLUGINS[-1]
        finally:
            await found.aclose()


async def has_ended(found: ChainConnections, *chains: str) -> None:
    async with asyncio.timeout(5):
        while found.ended != set(chains):  # noqa: ASYNC110  tasks of the plugin's end
            await asyncio.sleep(0)


async def heights(found: ChainConnections) -> list[int]:
    told = []
    for chain in found.chains.values():
        async with chain.view() as view:
            told.append((await view.head()).height)
    return told


async def test_a_connection_that_ended_by_itself_is_opened_again():
    async with connections(Time()) as (found, plugin):
        await found.reopen()
        assert plugin.opened == 1
        plugin.fail()
        await has_ended(found, "first", "second")
        with pytest.raises(ChainUnavailableError):
            await heights(found)
        await found.reopen()
        assert await heights(found) == [0, 0]
        assert (found.ended, plugin.opened) == (set(), 3)
        plugin.fail()  # what was opened again is watched as well
        await has_ended(found, "first", "second")


async def test_one_that_ends_again_and_again_is_opened_less_and_less_often():
    time = Time()
    async with connections(time) as (found, plugin):
        for _ in range(1000):
            plugin.fail()
            await has_ended(found, "first", "second")
            await found.reopen()
            time.now += 1
        assert 8 < plugin.opened < 30
        time.now += STABLE_S
        await found.reopen()
        assert await heights(found) == [0, 0]


async def test_one_that_cannot_be_opened_is_tried_again_later():
    time = Time()
    async with connections(time) as (found, plugin):
        plugin.fail()
        await has_ended(found, "first", "second")
        plugin.refuses = True
        await found.reopen()
        assert found.ended == {"first", "second"}
        plugin.refuses = False
        time.now += REOPEN_MAX_S
        await found.reopen()
        assert await heights(found) == [0, 0]


@pytest.mark.parametrize("chains", [{"first": {}}, TABLES["ending"]["chains"]])
async def test_one_that_ends_while_it_is_opened_is_opened_again_as_well(chains, monkeypatch):
    """It has brought its chains, which nobody knew of yet when it ended."""
    monkeypatch.setattr(ending_plugin, "FAILS_AT_ONCE", [True])
    time = Time()
    async with connections(time, {"ending": {"chains": chains}}) as (found, plugin):
        await has_ended(found, *chains)
        monkeypatch.setattr(ending_plugin, "FAILS_AT_ONCE", [True])
        await found.reopen()
        assert plugin.opened == 1 + len(chains)
        await has_ended(found, "first")
        time.now += REOPEN_MAX_S
        await found.reopen()
        assert await heights(found) == [0] * len(chains)
        assert found.ended == set()


async def test_a_chain_that_is_changed_while_it_is_opened_again_waits_for_nothing_and_stays_changed():
    """A plugin that hangs then has half a minute, in which an operator may take away the endpoint that it hangs at."""
    async with connections(Time()) as (found, plugin):
        plugin.fail()
        await has_ended(found, "first", "second")
        hanging = plugin.hangs = asyncio.Event()
        reopening = asyncio.create_task(found.reopen())
        async with asyncio.timeout(5):
            while plugin.opened < 3:  # noqa: ASYNC110  both are being opened
                await asyncio.sleep(0)
            plugin.hangs = None
            setup = replace(found.setups["first"], endpoints=("memory://other",))
            await found.change("first", setup)
            changed = found.chains["first"].connected
            assert not reopening.done()
            hanging.set()
            await reopening
        assert found.chains["first"].connected is changed
        assert await heights(found) == [0, 0]
        assert found.ended == set()


FOUND_PRICES = [EntryPoint(name="ending", value="tests.support.ending_prices", group="cambist.plugins")]


async def test_price_sources_whose_connection_ended_by_itself_are_opened_again_once(monkeypatch):
    monkeypatch.setattr(reopening, "REOPEN_FIRST_S", 0.0)
    ending_prices.OPENED.clear()
    async with Registry({"ending": {}}, found=FOUND_PRICES).connect_prices(plugin_context()) as sources:
        assert [source.name for source in sources] == ["ending", "beside"]
        for number in (1, 2, 3):
            for source in sources:
                await until(partial(price_of, source), number)
            ending_prices.OPENED[-1].fails.set()
            for source in sources:
                with pytest.raises(PriceUnavailableError):
                    await source.prices([PAIR])
        for source in sources:
            await until(partial(price_of, source), 4)
    assert len(ending_prices.OPENED) == 4  # for two sources on each, and none is left open that nobody asks


async def test_a_swap_provider_whose_connection_ended_by_itself_is_opened_again(monkeypatch):
    monkeypatch.setattr(reopening, "REOPEN_FIRST_S", 0.0)
    ending_prices.SWAPS_OPENED.clear()
    async with Registry({"ending": {}}, found=FOUND_PRICES).connect_swaps(plugin_context()) as (provider,):
        assert isinstance(provider, SwapProvider)
        assert provider.supports(None, None)
        for number in (1, 2):
            await until(partial(units_of, provider), number)
            ending_prices.SWAPS_OPENED[-1].fails.set()
        await until(partial(units_of, provider), 3)


async def until(told: Callable[[], Awaitable[object]], wanted: object) -> None:
    async with asyncio.timeout(5):
        while await told() != wanted:  # noqa: ASYNC110  the registry opens another
            await asyncio.sleep(0)


async def price_of(source: PriceSource) -> Decimal | None:
    try:
        return (await source.prices([PAIR]))[PAIR].value
    except PriceUnavailableError:
        return None


async def units_of(provider: SwapProvider) -> int | None:
    try:
        return (await provider.quote(None)).units
    except ProviderUnavailableError:
        return None
