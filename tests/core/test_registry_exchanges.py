"""Plugins for swaps and bridges: connected by kind, and their readers asked for by whoever sends or signs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from random import Random

import pytest

from cambist.plugin import BridgeProvider, PluginContext, SwapProvider
from cambist.registry import Registry, RegistryError
from tests.support.exchange_plugin import exchange_plugin

CONTEXT = PluginContext(
    now=lambda: datetime(2026, 1, 1, tzinfo=UTC), monotonic=lambda: 0.0, random=Random(1), user_agent="tests"
)


async def test_providers_are_connected_by_kind_and_a_second_of_one_name_is_left_out(install):
    install("fair", exchange_plugin("fair"))
    install("again", exchange_plugin("again"))
    registry = Registry({"fair": {}, "again": {}})
    problems = []
    async with registry.connect_swaps(CONTEXT, report=problems.append) as swaps:
        assert [isinstance(one, SwapProvider) for one in swaps] == [True]
    async with registry.connect_bridges(CONTEXT, report=problems.append) as bridges:
        assert [isinstance(one, BridgeProvider) for one in bridges] == [True]
    assert [(problem.plugin, problem.message) for problem in problems] == [
        ("again", "there is a swap provider 'fair' already"),
        ("again", "there is a bridge provider 'fair' already"),
    ]


def test_readers_are_asked_for_with_the_operators_table(install):
    install("fair", exchange_plugin("fair", "[Reader(config.router)]"))
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
    install("fair", exchange_plugin("fair", readers))
    with pytest.raises(RegistryError, match=re.escape(problem)):
        Registry({"fair": {}}).call_readers()
