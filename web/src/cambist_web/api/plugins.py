"""The plugins of this gateway, as operators see them: what is there, what it brings, and how its chains do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from litestar import Controller, get
from litestar.di import NamedDependency
from msgspec import Struct

from cambist.plugin import API_VERSION, ChainInfo
from cambist.registry import BroughtPlugin, PluginSetting
from cambist.services.chains import states
from cambist.services.chains.states import ChainStateRow
from cambist_web.context import Web
from cambist_web.operator_auth import admin_routes
from cambist_web.permissions import permits
from cambist_web.schemas import Answer

PluginState = Literal["disabled", "loaded", "failing"]


class PluginView(Struct, frozen=True, kw_only=True, rename="camel"):
    """An installed plugin. `loaded` ones work as far as anybody knows.

    `problems` are of chains that fail now, and begin with the chain's name.
    What is `disabled` stands in no table of the operator's file, and is not even looked into.
    """

    name: str
    state: PluginState
    distribution: str | None
    version: str | None
    contract_version: int | None
    kinds: Sequence[str]
    chains: Sequence[str]
    problems: Sequence[str]
    settings: Sequence[PluginSetting]


class PluginList(Answer, frozen=True, kw_only=True):
    """Every installed plugin, by name. `contractVersion` is the gateway's own, which all that are enabled have."""

    contract_version: int
    plugins: Sequence[PluginView]


class Plugins(Controller):
    tags = ("Operator",)

    @get("/", summary="List plugins", opt=permits("plugins.read"))
    async def list(self, web: NamedDependency[Web]) -> PluginList:
        """Return what is installed, with the settings that differ from their defaults.

        Numbers, switches and choices are shown; of a text only that it is set, since it may be a key or hold one.
        """
        async with web.db.autocommit() as conn:
            known = await states.load(conn)
        registry = web.gateway.registry
        found = registry.inventory()
        return PluginList(contract_version=API_VERSION, plugins=[_view(one, known, registry.chains) for one in found])


def _view(one: BroughtPlugin, known: Mapping[str, ChainStateRow], infos: Mapping[str, ChainInfo]) -> PluginView:
    problems = []
    for chain in one.chains:
        state = known.get(chain)
        text = None if state is None else state.problem or (state.error if state.failing_since else None)
        if text is not None:
            problems.append(f"{infos[chain].name if chain in infos else chain}: {text}")
    working: PluginState = "failing" if problems else "loaded"
    return PluginView(
        name=one.name,
        state=working if one.enabled else "disabled",
        distribution=one.distribution,
        version=one.version,
        contract_version=one.api_version,
        kinds=one.kinds,
        chains=one.chains,
        problems=problems,
        settings=one.settings,
    )


controllers = [admin_routes("/api/admin/plugins", Plugins)]
