"""Plugins for swaps and bridges: connected by kind, and their readers asked for by whoever sends or signs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from random import Random

import pytest

from cambist.plugin import PluginContext
from cambist.registry import Registry, RegistryError

CONTEXT = PluginContext(
    now=lambda: datetime(2026, 1, 1, tzinfo=UTC), monotonic=lambda: 0.0, random=Random(1), user_agent="tests"
)

EXCHANGES = """
    from contextlib import asynccontextmanager
    from msgspec import Struct
    from cambist.plugin import BridgePlugin, BridgeProvider, CallReader, SwapPlugin, SwapProvider, hookimpl

    class Config(Struct, frozen=True, forbid_unknown_fields=True):
        router: str = "0xrouter"

    class Reader(CallReader):
        def __init__(self, router):
            self.router = router

        def spenders(self, chain):
            return frozenset({self.router})

        def read(self, chain, sender, call, chains):
            return None

    class Swapper(SwapProvider):
        name = "fair"

        def supports(self, sells, buys):
            return True

        async def quote(self, request): ...
        async def build(self, request, units_min): ...

    class Bridge(BridgeProvider, Swapper):
        def deposit(self, chain, receipt, chains): ...
        def fill_query(self, chain, deposit, origin, first, last): ...
        def fill(self, chain, deposit, origin, found): ...
        def refund_query(self, chain, deposit, first, last): ...
        def refund(self, chain, deposit, receipt): ...
        async def status(self, origin, deposit): ...

    class Common:
        name = "NAME"
        api_version = 1
        config_type = Config

        def readers(self, config):
            return READERS

    class Swaps(Common, SwapPlugin[Config]):
        @asynccontextmanager
        async def connect(self, config, context):
            yield [Swapper()]

    class Bridges(Common, BridgePlugin[Config]):
        @asynccontextmanager
        async def connect(self, config, context):
            yield [Bridge()]

    @hookimpl
    def register_swap_providers():
        return [Swaps()]

    @hookimpl
    def register_bridge_providers():
        return [Bridges()]
"""


async def test_providers_are_connected_by_kind_and_a_second_of_one_name_is_left_out(install):
    install("fair", EXCHANGES.replace("NAME", "fair"))
    install("again", EXCHANGES.replace("NAME", "again"))
    registry = Registry({"fair": {}, "again": {}})
    problems = []
    async with registry.connect_swaps(CONTEXT, report=problems.append) as swaps:
        assert [type(one).__name__ for one in swaps] == ["Swapper"]
    async with registry.connect_bridges(CONTEXT, report=problems.append) as bridges:
        assert [type(one).__name__ for one in bridges] == ["Bridge"]
    assert [(problem.plugin, problem.message) for problem in problems] == [
        ("again", "there is a swap provider 'fair' already"),
        ("again", "there is a bridge provider 'fair' already"),
    ]


def test_readers_are_asked_for_with_the_operators_table(install):
    install("fair", EXCHANGES.replace("NAME", "fair").replace("READERS", "[Reader(config.router)]"))
    readers = Registry({"fair": {"router": "0xmine"}}).call_readers()
    assert [reader.router for reader in readers] == ["0xmine", "0xmine"]


@pytest.mark.parametrize(
    "readers, problem",
    [
        ("['0xrouter']", "readers() returned '0xrouter', which is no CallReader"),
        ("None", "readers() failed with TypeErr"),
    ],
)
def test_what_is_no_reader_is_refused(install, readers, problem):
    install("fair", EXCHANGES.replace("NAME", "fair").replace("READERS", readers))
    with pytest.raises(RegistryError, match=re.escape(problem)):
        Registry({"fair": {}}).call_readers()
