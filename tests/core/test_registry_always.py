"""Plugins that need not be named: listed and usable in sandboxes from the moment they are installed."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest

from cambist.plugin import PluginContext
from cambist.registry import Registry, RegistryError, installed_plugins

CONTEXT = PluginContext(
    now=lambda: datetime(2026, 1, 1, tzinfo=UTC), monotonic=lambda: 0.0, random=Random(1), user_agent="tests"
)


def test_no_tables_mean_no_plugins_but_those_that_are_always_there():
    registry = Registry({})
    assert (list(registry.chains), list(registry.families)) == (["tron"], ["tron"])
    assert registry.chains["tron"].availability == "unconfigured"
    assert [row.name for row in installed_plugins({}) if row.enabled] == ["tron"]


def test_what_is_always_there_has_the_operators_table_where_he_gives_one():
    registry = Registry({"tron": {"simulated": True}})
    assert registry.chains["tron"].availability == "simulated"
    with pytest.raises(RegistryError) as refused:
        Registry({"tron": {"rpc_url": "http://node.example"}})
    assert str(refused.value) == (
        "plugin 'tron': [plugins.tron] has an unknown field 'rpc_url', did you mean 'rpc_urls'?"
    )


async def test_what_is_always_there_makes_no_connection_without_a_table():
    problems = []
    async with Registry({}).connect_chains(CONTEXT, report=problems.append) as chains:
        assert (chains, problems) == ({}, [])
