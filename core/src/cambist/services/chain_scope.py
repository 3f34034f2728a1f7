"""One chain, as one scope and mode sees it: what rows of the database are about."""

from __future__ import annotations

from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from cambist.plugin import ChainInfo, InconsistentChainError, Token


def scope_of(mode: str, project_pk: int) -> int:
    """Return on whose chain a project's money moves: 0 for everybody's, or the project for its simulated one."""
    return project_pk if mode == "sandbox" else 0


def deepest(height: int, finalized_height: int | None, *, finality_required: bool) -> int:
    """Return the highest block up to which a transfer can be confirmed, when the chain is known up to ``height``.

    Where the operator asks for finality, that is the finalized height: none (-1) as long as it is unknown.
    """
    if not finality_required:
        return height
    return min(height, -1 if finalized_height is None else finalized_height)


DEEPEST = "least({height}, CASE WHEN {finality_required} THEN coalesce({finalized}, -1) ELSE {height} END)"
"""The same as ``deepest`` returns, in SQL."""


class ChainScope(Struct, frozen=True, kw_only=True):
    """A chain and a scope on it. ``scope`` is 0 for everybody's chain, or the project of a simulated one."""

    info: ChainInfo
    scope: int
    mode: str

    @property
    def key(self) -> tuple[str, int]:
        """Chain and scope, the first columns of every key."""
        return self.info.id, self.scope

    def known_as(self, info: ChainInfo) -> Self:
        """Return the same with what is known of the chain now: tokens are added while the gateway runs."""
        return self if info is self.info else replace(self, info=info)

    def token(self, contract: str | None) -> Token:
        """Return the registered token of this contract. Raises InconsistentChainError."""
        for token in self.info.tokens:
            if token.contract == contract:
                return token
        raise InconsistentChainError(f"{self.info.id}: a transfer of {contract}, which is no registered token")

    def deepest(self, height: int, finalized_height: int | None) -> int:
        """Return what ``deepest`` does, by what the operator asks for on this chain."""
        return deepest(height, finalized_height, finality_required=self.info.finality_required)
