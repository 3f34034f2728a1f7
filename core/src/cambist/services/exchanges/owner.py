"""For whom something is exchanged."""

from __future__ import annotations

from msgspec import Struct

from cambist.domain.intents import AskedBy
from cambist.services.chain_scope import scope_of


class Owner(Struct, frozen=True, kw_only=True):
    """For whom something is exchanged, and who asked for it. ``scope`` is as in ``ChainScope``."""

    project_pk: int
    merchant_pk: int
    mode: str
    asked_by: AskedBy = AskedBy.PLATFORM

    @property
    def scope(self) -> int:
        return scope_of(self.mode, self.project_pk)
