"""What can be paid with, for everybody to read.

A chain whose mode is ``simulated`` is listed as any other, since sandbox projects use it; so is one without
endpoints, on which live payments are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from msgspec import Struct

from cambist.plugin import ChainInfo, Token
from cambist.services.supported import find_chain
from cambist_web.auth import public_routes
from cambist_web.context import Web
from cambist_web.schemas import Answer

ChainFilter = Annotated[str | None, QueryParameter(description="Tokens of this chain only.", max_length=64)]


class ChainView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A chain."""

    chain: str
    name: str
    native_symbol: str
    chain_id_num: int | None
    is_evm: bool
    default_confirmations: int


class TokenView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A token. `contractAddress` is null for a chain's own coin."""

    chain: str
    symbol: str
    contract_address: str | None
    decimals: int
    is_native: bool
    label: str


class ChainList(Answer, frozen=True, kw_only=True):
    """Every chain."""

    chains: Sequence[ChainView]


class TokenList(Answer, frozen=True, kw_only=True):
    """Tokens, each chain's own coin first."""

    tokens: Sequence[TokenView]


def chain_view(chain: ChainInfo) -> ChainView:
    return ChainView(
        chain=chain.id,
        name=chain.name,
        native_symbol=chain.native.symbol,
        chain_id_num=chain.chain_id_num if chain.is_evm else None,
        is_evm=chain.is_evm,
        default_confirmations=chain.confirmations,
    )


def token_view(chain: ChainInfo, token: Token) -> TokenView:
    return TokenView(
        chain=chain.id,
        symbol=token.symbol,
        contract_address=token.contract,
        decimals=token.decimals,
        is_native=token.is_native,
        label=token.label,
    )


class Discovery(Controller):
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


controllers = [public_routes("/api/public", Discovery)]
