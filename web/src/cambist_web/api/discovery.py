"""What can be paid with, for everybody to read.

Live projects are told of the chains that are read, and of those that are always there, though they may have no endpoint
yet and live payments on them are refused then. Sandbox projects have the simulated ones besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from msgspec import UNSET, Struct, UnsetType

from cambist.domain.money import format_units
from cambist.plugin import ChainInfo, Token
from cambist.registry import Registry
from cambist.services.supported import find_chain
from cambist_web.auth import public_routes
from cambist_web.context import Web
from cambist_web.schemas import Answer

Mode: TypeAlias = Literal["live", "sandbox"]
ModeChoice = Annotated[Mode, QueryParameter(description="For which projects.")]
ChainFilter = Annotated[str | None, QueryParameter(description="Tokens of this chain only.", max_length=64)]


class ChainView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A chain. `chainIdNum` is null where it runs no EVM; `sandboxOnly` is there with chains for sandbox projects.

    `hasTags` says whether a payee may be named by a tag beside the address.
    """

    chain: str
    name: str
    native_symbol: str
    chain_id_num: int | None
    is_evm: bool
    default_confirmations: int
    has_tags: bool
    sandbox_only: bool | UnsetType = UNSET


class TokenView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A token. `contractAddress` is null for a chain's own coin.

    `leastAmount` is there where less than that does not arrive, and is refused.
    """

    chain: str
    symbol: str
    contract_address: str | None
    decimals: int
    is_native: bool
    label: str
    least_amount: str | UnsetType = UNSET


class ChainList(Answer, frozen=True, kw_only=True):
    """Every chain."""

    chains: Sequence[ChainView]


class TokenList(Answer, frozen=True, kw_only=True):
    """Tokens, each chain's own coin first."""

    tokens: Sequence[TokenView]


def chains_of(registry: Registry, mode: Mode) -> Mapping[str, ChainInfo]:
    """Return what projects of a mode can name, by id."""
    if mode == "sandbox":
        return registry.chains
    listed = registry.always_listed
    return {
        name: chain for name, chain in registry.chains.items() if chain.availability != "simulated" or name in listed
    }


def chain_view(registry: Registry, chain: ChainInfo, mode: Mode) -> ChainView:
    return ChainView(
        chain=chain.id,
        name=chain.name,
        native_symbol=chain.native.symbol,
        chain_id_num=chain.chain_id_num if chain.is_evm else None,  # TRON has one, which no wallet is told of so
        is_evm=chain.is_evm,
        default_confirmations=chain.confirmations,
        has_tags=registry.families[chain.family].tags,
        sandbox_only=chain.availability == "simulated" if mode == "sandbox" else UNSET,
    )


def least_amount(token: Token) -> str | UnsetType:
    """Return the least that can be sent of a token, where that is more than its smallest unit."""
    return format_units(token.least_units, token.decimals) if token.least_units > 1 else UNSET


def token_view(chain: ChainInfo, token: Token) -> TokenView:
    return TokenView(
        chain=chain.id,
        symbol=token.symbol,
        contract_address=token.contract,
        decimals=token.decimals,
        is_native=token.is_native,
        label=token.label,
        least_amount=least_amount(token),
    )


class Discovery(Controller):
    tags = ("Discovery",)

    @get("/chains", summary="List chains")
    async def chains(self, web: NamedDependency[Web], mode: ModeChoice = "live") -> ChainList:
        """Return the chains for live projects, or with `mode=sandbox` those for sandbox projects, with a flag."""
        registry = web.gateway.registry
        return ChainList(chains=[chain_view(registry, chain, mode) for chain in chains_of(registry, mode).values()])

    @get("/tokens", summary="List tokens")
    async def tokens(
        self, web: NamedDependency[Web], chain: ChainFilter = None, mode: ModeChoice = "live"
    ) -> TokenList:
        """Return every token that new payments can ask for, or those of one chain.

        400 `Unsupported chain` for a chain that is not listed.
        """
        chains = chains_of(web.gateway.registry, mode)
        chosen = chains.values() if chain is None else [find_chain(chains, chain)]
        is_open = web.gateway.token_rules.is_open
        return TokenList(
            tokens=[
                token_view(info, token) for info in chosen for token in info.tokens if is_open(info.id, token.contract)
            ]
        )


controllers = [public_routes("/api/public", Discovery)]
