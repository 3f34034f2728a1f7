"""What can be paid with, for everybody to read.

A chain whose mode is ``simulated`` is listed as any other, since sandbox projects use it; so is one without
endpoints, on which live payments are refused.
"""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from cambist.services.supported import find_chain
from cambist_web.context import Web

from .schemas import ChainList, TokenList, chain_view, token_view

ChainFilter = Annotated[str | None, QueryParameter(description="Tokens of this chain only.", max_length=64)]


class Discovery(Controller):
    """Chains and tokens."""

    tags = ("Discovery",)

    @get("/chains", summary="List chains")
    async def chains(self, web: NamedDependency[Web]) -> ChainList:
        """Return every chain of this gateway."""
        return ChainList(chains=[chain_view(chain) for chain in web.gateway.registry.chains.values()])

    @get("/tokens", summary="List tokens")
    async def tokens(self, web: NamedDependency[Web], chain: ChainFilter = None) -> TokenList:
        """Return every token, or those of one chain. 400 `Unsupported chain` for a chain that is not listed."""
        registry = web.gateway.registry
        chosen = registry.chains.values() if chain is None else [find_chain(registry.chains, chain)]
        return TokenList(tokens=[token_view(info, token) for info in chosen for token in info.tokens])
