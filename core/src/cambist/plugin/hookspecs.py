"""The whole extension surface: every hook, and when it is called.

Hooks only register. They are called once, when a process starts, for each plugin that the operator's file
names; they are synchronous, do no I/O, and return objects whose methods do the work.
"""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from .chains import AnyChainPlugin
from .exchanges import AnyBridgePlugin, AnySwapPlugin
from .prices import AnyPricePlugin

PROJECT = "cambist"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def register_chains() -> Sequence[AnyChainPlugin]:  # type: ignore[empty-body]
    """Return the chain plugins that this distribution brings."""


@hookspec
def register_price_sources() -> Sequence[AnyPricePlugin]:  # type: ignore[empty-body]
    """Return the price plugins that this distribution brings."""


@hookspec
def register_swap_providers() -> Sequence[AnySwapPlugin]:  # type: ignore[empty-body]
    """Return the plugins for swaps that this distribution brings."""


@hookspec
def register_bridge_providers() -> Sequence[AnyBridgePlugin]:  # type: ignore[empty-body]
    """Return the plugins for bridges that this distribution brings."""
