"""Follows what is in force of chains, in every process: see ``setups``."""

from __future__ import annotations

from cambist.db.engine import Database
from cambist.registry import ChainConnections, Registry
from cambist.secrets import SecretsBox

from .rules import TokenRules, load_rules
from .setups import Refreshed, Setups, load

INTERVAL_S = 2.0
"""How soon every process follows, at the latest, where no hint came."""


class Follower:
    """Brings one process up to date."""

    def __init__(
        self, db: Database, connections: ChainConnections, registry: Registry, box: SecretsBox, rules: TokenRules
    ) -> None:
        self._db = db
        self._setups = Setups(connections, registry, box)
        self._rules = rules

    async def follow(self) -> Refreshed:
        """Follow what rows say now."""
        async with self._db.autocommit() as conn:
            changes, rules = await load(conn), await load_rules(conn)
        self._rules.replace(rules)
        return await self._setups.refresh(changes)
