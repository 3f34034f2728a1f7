"""What operators change of a chain while the gateway runs: its endpoints, and its tokens.

A plugin takes part by two pure methods. ``ChainPlugin.setup`` tells what its configuration says of one chain, and
``ChainPlugin.changed`` writes a configuration of that chain alone with something else in its place. The gateway
connects that beside what is connected, asks it, and only then lets it take over: a plugin needs nothing that changes a
connection. Where a plugin has neither method, its chains stay as the operator's file says until the next start.
"""

from __future__ import annotations

from msgspec import Struct

from .types import Token


class NetworkSetup(Struct, frozen=True, kw_only=True):
    """What of one chain can be changed.

    ``endpoints`` are addresses of nodes in the order of preference, each with whatever key it takes in one text, so
    that it can be handed back. ``quorum`` is how many must agree. ``tokens`` are token contracts beside those that the
    plugin knows by itself.
    """

    endpoints: tuple[str, ...]
    quorum: int = 1
    tokens: tuple[Token, ...] = ()
