"""Imports plugins and asks their hooks what they bring: the only module that drives pluggy."""

from __future__ import annotations

import difflib
import inspect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy
from msgspec import Struct

from cambist.plugin import API_VERSION, BridgePlugin, ChainPlugin, PricePlugin, SwapPlugin, hookspecs

from .checks import guarded, plugin_error

GROUP = "cambist.plugins"

ALWAYS: Mapping[str, str] = {"tron": "cambist-tron"}
"""Plugins that are enabled by being installed, and the distribution that must have brought them.

Merchants are promised these chains whatever the operator has configured. One that merely takes the name is loaded
as all others are: where the operator names it.
"""

_HOOKS: Mapping[str, type] = {
    "register_chains": ChainPlugin,
    "register_price_sources": PricePlugin,
    "register_swap_providers": SwapPlugin,
    "register_bridge_providers": BridgePlugin,
}
"""Each hook, and what it must return a sequence of."""


def points_by_name(found: Iterable[EntryPoint] | None) -> dict[str, list[EntryPoint]]:
    """Return what is installed, by name; a name that several distributions bring has several."""
    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP) if found is None else found:
        points.setdefault(point.name, []).append(point)
    return points


def enabled_tables(tables: Mapping[str, object], points: Mapping[str, Sequence[EntryPoint]]) -> Mapping[str, object]:
    """Return a table for each enabled plugin: the operator's, and empty ones for those that are always enabled."""
    always: dict[str, object] = {
        name: {}
        for name, distribution in ALWAYS.items()
        if any(point.dist is not None and point.dist.name == distribution for point in points.get(name, ()))
    }
    return {**always, **tables}


def check_names(tables: Mapping[str, object]) -> None:
    """Refuse tables of plugins that cannot be found. Imports none, so that it costs next to nothing."""
    points = points_by_name(None)
    for name in tables:
        _point_of(name, points)


def _point_of(name: str, points: Mapping[str, Sequence[EntryPoint]]) -> EntryPoint:
    if not (candidates := points.get(name)):
        installed = ", ".join(sorted(points)) or "none"
        nearest = difflib.get_close_matches(name, points, n=1)
        hint = f", did you mean {nearest[0]!r}?" if nearest else ""
        raise plugin_error(
            name, f"[plugins.{name}] names a plugin that is not installed{hint} (installed: {installed})"
        )
    if len(candidates) > 1:
        brought = Counter(point.dist.name if point.dist else point.value for point in candidates)
        raise plugin_error(name, f"several distributions bring a plugin of this name: {', '.join(sorted(brought))}")
    return candidates[0]


def plugin_objects(name: str, points: Mapping[str, Sequence[EntryPoint]]) -> list[Any]:
    """Import the plugin of this name and return what its hooks register."""
    point = _point_of(name, points)
    module = guarded(name, f"the import of {point.value}", point.load)
    _check_hooks(name, module)
    # One manager per plugin, so that each result is known to be this plugin's.
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module, name)
        manager.check_pending()
    except (pluggy.PluginValidationError, ValueError) as error:
        raise plugin_error(name, f"pluggy refuses it: {error}") from error
    return [
        plugin
        for hook in _HOOKS
        if any(caller.name == hook for caller in manager.get_hookcallers(module) or ())
        for plugin in _called(name, hook, manager)
    ]


def _called(name: str, hook: str, manager: pluggy.PluginManager) -> list[Any]:
    results = guarded(name, f"{hook}()", getattr(manager.hook, hook))
    expected = _HOOKS[hook]
    # pluggy leaves out a result that is None.
    result = results[0] if results else None
    if not isinstance(result, Sequence):
        raise plugin_error(name, f"{hook}() returned {result!r}, not a sequence of {expected.__name__} objects")
    for plugin in result:
        if isinstance(plugin, type):
            raise plugin_error(name, f"{hook}() returned the class {plugin.__name__}, not an object of it")
        if not isinstance(plugin, expected):
            raise plugin_error(name, f"{hook}() returned {plugin!r}, which is no {expected.__name__}")
    return list(result)


def _check_hooks(name: str, module: object) -> None:
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    implemented = 0
    for attribute in dir(module):
        options = manager.parse_hookimpl_opts(module, attribute)
        if options is None:
            continue
        hook = options.get("specname") or attribute
        if hook not in _HOOKS:
            nearest = difflib.get_close_matches(hook, _HOOKS, n=1, cutoff=0.4)
            hint = f", did you mean {nearest[0]!r}?" if nearest else f" (hooks: {', '.join(_HOOKS)})"
            raise plugin_error(name, f"it implements {hook!r}, which is no hook{hint}")
        accepted = set(inspect.signature(getattr(hookspecs, hook)).parameters)
        surplus = set(inspect.signature(getattr(module, attribute)).parameters) - accepted
        if surplus:
            raise plugin_error(name, f"its {hook}() takes the argument {min(surplus)!r}, which the hook does not have")
        implemented += 1
    if not implemented:
        raise plugin_error(name, f"it implements no hook (hooks: {', '.join(_HOOKS)})")


def check_plugin(name: str, plugin: Any) -> None:  # noqa: ANN401 - it is yet to be seen what it is
    guarded(name, f"looking at {type(plugin).__name__}", partial(_check_plugin, name, plugin))


def _check_plugin(name: str, plugin: Any) -> None:  # noqa: ANN401 - likewise
    kind = type(plugin).__name__
    api_version = getattr(plugin, "api_version", None)
    if type(api_version) is not int:
        raise plugin_error(
            name, f"{kind} states no api_version; it is a whole number, and this gateway's is {API_VERSION}"
        )
    if api_version != API_VERSION:
        text = f"{kind} was written for plugin API version {api_version}, and this gateway has version {API_VERSION}"
        raise plugin_error(name, text)
    if (stated := getattr(plugin, "name", None)) != name:
        raise plugin_error(name, f"{kind} calls itself {stated!r}; a plugin is named like its entry point")
    config_type = getattr(plugin, "config_type", None)
    if not (isinstance(config_type, type) and issubclass(config_type, Struct)):
        raise plugin_error(name, f"{kind} has no config_type, a msgspec Struct")
    rules = config_type.__struct_config__
    if not (rules.frozen and rules.forbid_unknown_fields):
        raise plugin_error(name, f"{config_type.__name__} must be frozen and forbid unknown fields")
